// Line difference of two texts: kept, removed and added lines. `lines` is pure; `diffView` draws it.

import { h } from "./dom.js";

// Beyond this the middle of the two is shown as all gone and all new: a page must open.
const MOST_WORK = 6_000_000;
const AROUND = 3;

// [{kind: "same" | "gone" | "new", text}]
export function lines(before, after) {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let top = 0;
  while (top < a.length && top < b.length && a[top] === b[top]) top += 1;
  let end = 0;
  while (end < a.length - top && end < b.length - top && a[a.length - 1 - end] === b[b.length - 1 - end])
    end += 1;
  const same = (text) => ({ kind: "same", text });
  return [
    ...a.slice(0, top).map(same),
    ...middle(a.slice(top, a.length - end), b.slice(top, b.length - end)),
    ...a.slice(a.length - end).map(same),
  ];
}

function middle(a, b) {
  const gone = (text) => ({ kind: "gone", text });
  const fresh = (text) => ({ kind: "new", text });
  if (!a.length || !b.length || a.length * b.length > MOST_WORK) return [...a.map(gone), ...b.map(fresh)];
  const wide = b.length + 1;
  const best = new Uint32Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      best[i * wide + j] =
        a[i] === b[j]
          ? best[(i + 1) * wide + j + 1] + 1
          : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
    }
  }
  const out = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      out.push({ kind: "same", text: a[i] });
      i += 1;
      j += 1;
    } else if (best[(i + 1) * wide + j] >= best[i * wide + j + 1]) out.push(gone(a[i++]));
    else out.push(fresh(b[j++]));
  }
  return [...out, ...a.slice(i).map(gone), ...b.slice(j).map(fresh)];
}

export function diffView(before, after) {
  const all = lines(before, after);
  const changes = all.filter((one) => one.kind !== "same").length;
  if (!changes) return h("p", { class: "quiet" }, "Nothing differs.");
  const near = new Uint8Array(all.length);
  all.forEach((one, at) => {
    if (one.kind !== "same") near.fill(1, Math.max(0, at - AROUND), at + AROUND + 1);
  });
  const view = h("div", { class: "diff", role: "region", "aria-label": "Differences", tabindex: 0 });
  for (let at = 0; at < all.length;) {
    if (near[at]) {
      view.append(line(all[at]));
      at += 1;
      continue;
    }
    let end = at;
    while (end < all.length && !near[end]) end += 1;
    view.append(folded(all.slice(at, end)));
    at = end;
  }
  return view;
}

function line({ kind, text }) {
  const tag = { same: "div", gone: "del", new: "ins" }[kind];
  return h(
    tag,
    { class: "diff-line" },
    h("span", { class: "diff-sign" }, { same: " ", gone: "−", new: "+" }[kind]),
    h("span", {}, text || " "),
  );
}

function folded(hidden) {
  const more = h(
    "button",
    { type: "button", class: "diff-fold", onclick: () => more.replaceWith(...hidden.map(line)) },
    `${hidden.length} unchanged ${hidden.length === 1 ? "line" : "lines"}`,
  );
  return more;
}
