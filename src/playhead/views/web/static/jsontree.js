// A JSON value as a tree that can be folded; branches are made when they are opened. Knows no runs.

import { h } from "./dom.js";

const LONG = 600;
const MANY = 200;

export function jsonTree(value, { open = 2 } = {}) {
  return h("div", { class: "json" }, node(null, value, open));
}

function node(name, value, open) {
  const key = name === null ? null : h("span", { class: "json-key" }, name);
  if (value === null || typeof value !== "object") {
    return h("div", { class: "json-leaf" }, key, key ? ": " : null, leaf(value));
  }
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  if (!entries.length) return h("div", { class: "json-leaf" }, key, key ? ": " : null, isList ? "[]" : "{}");
  const summary = h(
    "summary",
    {},
    key,
    key ? ": " : null,
    h("span", { class: "json-count" }, preview(value, isList, entries)),
  );
  const branch = h("details", { class: "json-branch" }, summary);
  const grow = () => {
    if (branch.childElementCount > 1) return;
    branch.append(h("div", { class: "json-below" }, many(entries, isList, open - 1)));
  };
  branch.addEventListener("toggle", grow);
  if (open > 0) {
    grow();
    branch.open = true;
  }
  return branch;
}

function many(entries, isList, open) {
  const shown = entries
    .slice(0, MANY)
    .map(([name, value]) => node(isList ? String(name) : name, value, open));
  if (entries.length > MANY) {
    const more = h(
      "button",
      {
        type: "button",
        class: "link",
        onclick: () => more.replaceWith(...entries.slice(MANY).map(([name, value]) => node(name, value, 0))),
      },
      `${entries.length - MANY} more`,
    );
    shown.push(more);
  }
  return shown;
}

function preview(value, isList, entries) {
  if (isList) return `[${entries.length}]`;
  const names = entries
    .slice(0, 4)
    .map(([name]) => name)
    .join(", ");
  return `{${names}${entries.length > 4 ? ", …" : ""}}`;
}

function leaf(value) {
  if (typeof value !== "string") return h("span", { class: "json-word" }, String(value));
  if (value.length <= LONG) return h("span", { class: "json-text" }, quoted(value));
  const text = h("span", { class: "json-text" }, `${quoted(value.slice(0, LONG)).slice(0, -1)}…`);
  const more = h(
    "button",
    {
      type: "button",
      class: "link",
      onclick: () => {
        text.replaceChildren();
        text.append(h("span", {}, quoted(value)));
        more.remove();
      },
    },
    `${value.length - LONG} more`,
  );
  return [text, " ", more];
}

// As in JSON, but lines end where the text has line ends: prompts and verdicts are texts that people read.
function quoted(value) {
  const lines = value.split("\n").map((line) => JSON.stringify(line).slice(1, -1));
  return `"${lines.join("\n")}"`;
}

export function parsed(text) {
  const begin = text.trimStart()[0];
  if (begin !== "{" && begin !== "[") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
