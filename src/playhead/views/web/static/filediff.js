// Draws two versions of a file: as a diff with line numbers and syntax colours, or whole. Knows texts, not runs.

import { button, h } from "./dom.js";
import { AROUND, compared } from "./diff.js";
import { count, plural, size } from "./format.js";
import { languageOf, tokens } from "./syntax.js";

// Lines that are drawn at once; a button draws as many again.
const BATCH = 2000;
// Lines that share less than this are shown as two different lines.
const ALIKE = 0.35;

// Lines without their ends. A last line without an end is marked by `open`.
function linesOf(text) {
  const all = text.split("\n");
  const open = all.at(-1) !== "";
  if (!open) all.pop();
  return { all, open: open && text !== "" };
}

// `before`, `after`: {content, size, text} as the API gives them, or null: there is no file.
export function fileDiff(path, before, after) {
  const excuse = notShown(before, after);
  if (excuse) return excuse;
  const [old, now] = [linesOf(before?.text ?? ""), linesOf(after?.text ?? "")];
  const changes = numbered(compared(old.all, now.all));
  if (changes.every((one) => one.kind === "same"))
    return h(
      "p",
      { class: "quiet file-note" },
      old.open === now.open ? "The content is the same." : "Only the newline at the end of the file differs.",
    );
  const language = languageOf(path, after?.text ?? before?.text ?? "");
  const paint = { same: tokens(now.all, language), gone: tokens(old.all, language) };
  pairChanged(changes);
  const missing = { gone: old.open ? old.all.length : 0, new: now.open ? now.all.length : 0 };
  const draw = (one) => drawLine(one, paint, missing);
  const longest = Math.max(old.all.length, now.all.length);
  return scrolled(batches(hunks(changes, draw)), "Differences", longest);
}

export function wholeFile(path, version) {
  const excuse = notShown(null, version);
  if (excuse) return excuse;
  const { all } = linesOf(version?.text ?? "");
  if (!all.length) return h("p", { class: "quiet file-note" }, version ? "The file is empty." : "There is no file.");
  const paint = { same: tokens(all, languageOf(path, version.text)) };
  const rows = all.map((text, at) => () => drawLine({ kind: "same", text, now: at + 1 }, paint, {}));
  return scrolled(batches(rows), "Content", all.length);
}

const REASONS = {
  binary: "A binary file.",
  "too large": "This file is too large to be shown as text.",
  "not stored":
    "Its content is not on the tape: it is named like a secret, contains one, or could not be read. Only its hash was recorded.",
  missing: "The store does not have this version: the tape came without its files, or they were removed.",
  "left out": "This version is not in the page, which holds a limited amount of text.",
};

function notShown(before, after) {
  const bad = [after, before].find((one) => one && one.text === null);
  if (!bad) return null;
  if (bad.content === "folder") return h("p", { class: "quiet file-note" }, "A folder.");
  const sizes = [before, after].filter(Boolean).map((one) => size(one.size));
  return h(
    "div",
    { class: "file-note" },
    h("p", {}, REASONS[bad.content] ?? "This version cannot be shown."),
    h("p", { class: "quiet" }, [...new Set(sizes)].join(" → ")),
  );
}

function numbered(changes) {
  let [old, now] = [0, 0];
  return changes.map(({ kind, text }) => ({
    kind,
    text,
    old: kind === "new" ? null : (old += 1),
    now: kind === "gone" ? null : (now += 1),
  }));
}

// In a block with as many removed as added lines, marks the part of each pair that differs.
function pairChanged(changes) {
  for (let at = 0; at < changes.length;) {
    let middle = at;
    while (changes[middle]?.kind === "gone") middle += 1;
    let end = middle;
    while (changes[end]?.kind === "new") end += 1;
    if (middle > at && middle - at === end - middle)
      for (let one = 0; one < middle - at; one++) markChange(changes[at + one], changes[middle + one]);
    at = Math.max(end, at + 1);
  }
}

function markChange(gone, fresh) {
  const [a, b] = [gone.text, fresh.text];
  const shortest = Math.min(a.length, b.length);
  let start = 0;
  while (start < shortest && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < shortest - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  if (start + end < ALIKE * Math.max(a.length, b.length)) return;
  gone.marked = [start, a.length - end];
  fresh.marked = [start, b.length - end];
}

// Functions that draw the rows: changed lines with a few around them, and buttons for the lines between.
function hunks(changes, draw) {
  const near = new Uint8Array(changes.length);
  changes.forEach((one, at) => {
    if (one.kind !== "same") near.fill(1, Math.max(0, at - AROUND), at + AROUND + 1);
  });
  const rows = [];
  for (let at = 0; at < changes.length;) {
    if (near[at]) {
      const one = changes[at];
      rows.push(() => draw(one));
      at += 1;
      continue;
    }
    let end = at;
    while (end < changes.length && !near[end]) end += 1;
    const hidden = changes.slice(at, end);
    rows.push(() => folded(hidden, draw));
    at = end;
  }
  return rows;
}

function folded(hidden, draw) {
  const open = () => more.replaceWith(...batches(hidden.map((one) => () => draw(one))));
  const more = h(
    "button",
    { type: "button", class: "diff-fold", onclick: open },
    plural(hidden.length, "unchanged line"),
  );
  return more;
}

// The first rows as nodes; a button at their end draws the next ones.
function batches(rows) {
  const nodes = rows.slice(0, BATCH).map((draw) => draw());
  const left = rows.slice(BATCH);
  if (left.length) {
    const more = button(
      `${count(left.length)} more lines`,
      { class: "diff-fold", onclick: () => more.replaceWith(...batches(left)) },
    );
    nodes.push(more);
  }
  return nodes;
}

// `longest` is the largest line number: the columns of numbers have room for it.
function scrolled(nodes, label, longest) {
  const view = h("div", { class: "diff file-diff", role: "region", "aria-label": label, tabindex: 0 }, nodes);
  view.style.setProperty("--digits", String(Math.max(3, String(longest).length)));
  return view;
}

const TAGS = { same: "div", gone: "del", new: "ins" };
const SIGNS = { same: "", gone: "−", new: "+" };

function drawLine(one, paint, missing) {
  const { kind, text, old = null, now } = one;
  const painted = (kind === "gone" ? paint.gone?.[old - 1] : paint.same?.[now - 1]) ?? [["", text]];
  const isLast = kind !== "same" && missing[kind] === (kind === "gone" ? old : now);
  return h(
    TAGS[kind],
    { class: "diff-line" },
    old === null && kind === "same" ? null : h("span", { class: "line-number" }, old ?? ""),
    h("span", { class: "line-number" }, now ?? ""),
    h("span", { class: "diff-sign" }, SIGNS[kind]),
    h(
      "span",
      { class: "code" },
      text ? coloured(painted, one.marked) : " ",
      kind !== "same" && text.endsWith("\r") ? h("span", { class: "quiet" }, "␍") : null,
      isLast ? h("span", { class: "quiet no-newline" }, " no newline at the end") : null,
    ),
  );
}

// Tokens as nodes. `marked` is the range of characters that differs from the other line of the pair.
function coloured(painted, marked) {
  const out = [];
  let at = 0;
  for (const [kind, text] of painted) {
    for (const [from, to, isMarked] of cuts(at, at + text.length, marked)) {
      const part = text.slice(from - at, to - at);
      const classes = [kind ? `s-${kind}` : "", isMarked ? "differs" : ""].filter(Boolean).join(" ");
      out.push(classes ? h("span", { class: classes }, part) : part);
    }
    at += text.length;
  }
  return out;
}

function cuts(from, to, marked) {
  if (!marked || marked[0] >= marked[1]) return [[from, to, false]];
  const [low, high] = [Math.max(from, Math.min(marked[0], to)), Math.max(from, Math.min(marked[1], to))];
  return [
    [from, low, false],
    [low, high, true],
    [high, to, false],
  ].filter(([start, end]) => start < end);
}
