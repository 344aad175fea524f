// Line difference of two texts: kept, removed and added lines. `lines` is pure; `diffView` draws it.

import { h } from "./dom.js";

// Up to this many pairs of lines are compared exactly. Longer texts are first split at lines that occur once in
// both; a part without such lines counts as all gone and all new, because a page must open.
const EXACT = 300_000;
const MOST_WORK = 6_000_000;
export const AROUND = 3;

// [{kind: "same" | "gone" | "new", text}] of two lists of lines.
export function compared(a, b) {
  let top = 0;
  while (top < a.length && top < b.length && a[top] === b[top]) top += 1;
  let end = 0;
  while (end < a.length - top && end < b.length - top && a[a.length - 1 - end] === b[b.length - 1 - end])
    end += 1;
  return [
    ...a.slice(0, top).map(same),
    ...middle(a.slice(top, a.length - end), b.slice(top, b.length - end)),
    ...a.slice(a.length - end).map(same),
  ];
}

export function lines(before, after) {
  return compared(before.split("\n"), after.split("\n"));
}

const same = (text) => ({ kind: "same", text });
const gone = (text) => ({ kind: "gone", text });
const fresh = (text) => ({ kind: "new", text });

function middle(a, b) {
  const work = a.length * b.length;
  if (a.length && b.length && work > EXACT) {
    const pairs = anchors(a, b);
    if (pairs.length) return split(a, b, pairs);
  }
  if (!work || work > MOST_WORK) return [...a.map(gone), ...b.map(fresh)];
  return exact(a, b);
}

// Pairs of indices of lines that occur once in both texts, in the longest order that both have.
function anchors(a, b) {
  const places = (list) => {
    const found = new Map();
    list.forEach((text, at) => found.set(text, found.has(text) ? -1 : at));
    return found;
  };
  const inA = places(a);
  const inB = places(b);
  const ends = [];
  for (const [text, i] of inA) {
    const j = inB.get(text) ?? -1;
    if (i < 0 || j < 0) continue;
    let [low, high] = [0, ends.length];
    while (low < high) {
      const half = (low + high) >> 1;
      if (ends[half].j < j) low = half + 1;
      else high = half;
    }
    ends[low] = { i, j, before: low ? ends[low - 1] : null };
  }
  const chain = [];
  for (let one = ends.at(-1); one; one = one.before) chain.push([one.i, one.j]);
  return chain.reverse();
}

function split(a, b, pairs) {
  const out = [];
  let [i, j] = [0, 0];
  for (const [x, y] of [...pairs, [a.length, b.length]]) {
    for (const one of compared(a.slice(i, x), b.slice(j, y))) out.push(one);
    if (x < a.length) out.push(same(a[x]));
    [i, j] = [x + 1, y + 1];
  }
  return out;
}

function exact(a, b) {
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
      out.push(same(a[i]));
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
