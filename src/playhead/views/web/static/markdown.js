// Markdown as nodes: headings, lists, code, quotes, tables, emphasis, links. What it does not know stays
// as it was written. No markup is ever read: every node is made here, and its text is text.

import { h } from "./dom.js";
import { languageNamed, tokens } from "./syntax.js";

const MOST = 200_000;
const DEEPEST = 6;

export function markdown(text) {
  const lines = text.slice(0, MOST).replace(/\r\n?/g, "\n").split("\n");
  const node = h("div", { class: "prose" }, blocks(lines, 0));
  if (text.length > MOST)
    node.append(h("p", { class: "quiet" }, `… ${text.length - MOST} more characters: see Raw.`));
  return node;
}

const FENCE = /^\s{0,3}(```+|~~~+)\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^\s{0,3}([-*_])(?:\s*\1){2,}\s*$/;
const BULLET = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const ROW = /^\s*\|.*\|\s*$/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function blocks(lines, depth) {
  const out = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const step =
      line.trim() === ""
        ? null
        : BLOCKS.map((read) => read(lines, at, depth)).find((found) => found !== null);
    if (line.trim() === "") {
      at += 1;
    } else {
      out.push(step.node);
      at = step.next;
    }
  }
  return out;
}

function fence(lines, at) {
  const found = FENCE.exec(lines[at]);
  if (!found) return null;
  let end = at + 1;
  while (end < lines.length && !lines[end].trim().startsWith(found[1])) end += 1;
  const code = h("code", {}, coloured(lines.slice(at + 1, end), found[2]));
  return { node: h("pre", { "data-language": found[2] || null }, code), next: end + 1 };
}

function coloured(lines, language) {
  const painted = language ? tokens(lines, languageNamed(language)) : null;
  if (painted === null) return lines.join("\n");
  return painted.map((line, at) => [
    at ? "\n" : "",
    line.map(([kind, text]) => (kind ? h("span", { class: `s-${kind}` }, text) : text)),
  ]);
}

function heading(lines, at) {
  const found = HEADING.exec(lines[at]);
  return found
    ? { node: h(`h${Math.min(6, Math.max(3, found[1].length + 1))}`, {}, inline(found[2])), next: at + 1 }
    : null;
}

function rule(lines, at) {
  return RULE.test(lines[at]) ? { node: h("hr"), next: at + 1 } : null;
}

function quote(lines, at, depth) {
  if (!/^\s{0,3}>/.test(lines[at]) || depth >= DEEPEST) return null;
  let end = at;
  while (end < lines.length && /^\s{0,3}>/.test(lines[end])) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(/^\s{0,3}>\s?/, ""));
  return { node: h("blockquote", {}, blocks(inner, depth + 1)), next: end };
}

function list(lines, at, depth) {
  const first = BULLET.exec(lines[at]);
  if (!first || depth >= DEEPEST) return null;
  const isOrdered = /\d/.test(first[2]);
  const margin = first[1].length;
  const items = [];
  let end = at;
  while (end < lines.length) {
    const found = BULLET.exec(lines[end]);
    if (found && found[1].length <= margin + 1 && /\d/.test(found[2]) === isOrdered) items.push([found[3]]);
    else if (lines[end].trim() !== "" && /^\s+/.exec(lines[end])?.[0].length > margin)
      items.at(-1).push(lines[end].slice(margin + 2));
    else if (lines[end].trim() === "" && BULLET.test(lines[end + 1] ?? "")) items.at(-1).push("");
    else break;
    end += 1;
  }
  const nodes = items.map(([head, ...rest]) =>
    h("li", {}, inline(head), rest.length ? blocks(rest, depth + 1) : null),
  );
  return {
    node: h(isOrdered ? "ol" : "ul", { start: isOrdered ? Number.parseInt(first[2], 10) : null }, nodes),
    next: end,
  };
}

function table(lines, at) {
  if (!ROW.test(lines[at]) || !DIVIDER.test(lines[at + 1] ?? "")) return null;
  let end = at + 2;
  while (end < lines.length && ROW.test(lines[end])) end += 1;
  const cells = (line, tag) =>
    h(
      "tr",
      {},
      line
        .trim()
        .replace(/^\||\|$/g, "")
        .split("|")
        .map((one) => h(tag, {}, inline(one.trim()))),
    );
  const body = lines.slice(at + 2, end).map((line) => cells(line, "td"));
  return {
    node: h(
      "div",
      { class: "wide" },
      h("table", {}, h("thead", {}, cells(lines[at], "th")), h("tbody", {}, body)),
    ),
    next: end,
  };
}

function paragraph(lines, at, depth) {
  let end = at + 1;
  while (
    end < lines.length &&
    lines[end].trim() !== "" &&
    !BLOCKS.slice(0, -1).some((read) => read(lines, end, depth))
  )
    end += 1;
  const words = lines
    .slice(at, end)
    .flatMap((line, index) => (index ? [h("br"), ...inline(line)] : inline(line)));
  return { node: h("p", {}, words), next: end };
}

const BLOCKS = [fence, heading, rule, quote, list, table, paragraph];

const INLINE =
  /(`+)([^`]|[^`].*?[^`])\1(?!`)|\*\*(?=\S)([^*]+?)\*\*|__(?=\S)([^_]+?)__|(?<![\w*])\*(?=\S)([^*]+?)\*(?!\*)|(?<!\w)_(?=\S)([^_]+?)_(?!\w)|\[([^\]\n]+)\]\(([^)\s]+)\)|\b(https?:\/\/[^\s<>()"']+)/g;

function inline(text) {
  const out = [];
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    out.push(text.slice(from, found.index));
    const [all, , code, bold, bold2, italic, italic2, label, target, bare] = found;
    if (code !== undefined) out.push(h("code", {}, code.trim() || code));
    else if (bold ?? bold2) out.push(h("strong", {}, bold ?? bold2));
    else if (italic ?? italic2) out.push(h("em", {}, italic ?? italic2));
    else out.push(link(label ?? bare, target ?? bare, all));
    from = found.index + all.length;
  }
  out.push(text.slice(from));
  return out;
}

// Only addresses of the web become links, and say where they lead.
function link(label, target, written) {
  if (!/^https?:\/\//i.test(target)) return written;
  return h("a", { href: target, title: target, target: "_blank", rel: "noopener noreferrer" }, label);
}
