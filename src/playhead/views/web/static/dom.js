// Nodes made from values. All text goes in as text; nothing here reads markup. Knows nothing of runs.

// Characters that hide or reorder text: tapes are untrusted. Joiners stay, emoji need them.
const CONTROL = new RegExp(
  "[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f" +
    "\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\ud800-\\udfff\\u{e0000}-\\u{e007f}]",
  "gu",
);
const SVG = "http://www.w3.org/2000/svg";

export function visible(text) {
  return text.replace(CONTROL, picture);
}

function picture(found) {
  const code = found.codePointAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? "␡" : `\\u${code.toString(16).padStart(4, "0")}`;
}

// `on…` is a listener, `class` a class name, anything else an attribute; null and false leave it out.
export function h(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === "") continue;
    if (Array.isArray(child)) add(node, child);
    else node.append(child instanceof Node ? child : visible(String(child)));
  }
}

// Marks every occurrence of `wanted` in a text, case-insensitive.
export function marked(text, wanted) {
  if (!wanted) return text;
  const parts = [];
  const lower = text.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0 && parts.length < 40; at = lower.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), h("mark", {}, text.slice(at, at + wanted.length)));
    from = at + wanted.length;
  }
  return [...parts, text.slice(from)];
}

export function fill(node, ...children) {
  node.replaceChildren();
  add(node, children);
  return node;
}

const ICONS = {
  play: "M5 3.5v9l7.5-4.5z",
  pause: "M4.5 3.5h2.5v9H4.5zM9 3.5h2.5v9H9z",
  back: "M10 3 5 8l5 5",
  next: "M6 3l5 5-5 5",
  down: "M3.5 6 8 10.5 12.5 6",
  first: "M4 3.5v9M12 3.5 6 8l6 4.5z",
  last: "M12 3.5v9M4 3.5 10 8l-6 4.5z",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  link: "M6.5 9.5l3-3M7 4.5l1.5-1.5a2.8 2.8 0 0 1 4 4L11 8.5M9 11.5 7.5 13a2.8 2.8 0 0 1-4-4L5 7.5",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7 14 14",
  close: "M4 4l8 8M12 4l-8 8",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z",
  flag: "M4 14V2.5h8l-2 3 2 3H4",
  plus: "M8 3.5v9M3.5 8h9",
  minus: "M3.5 8h9",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  tape: "M2.5 5v6M5.5 3v10M8.5 6v4M11.5 4v8M14 7v2",
};
const SOLID = new Set(["play", "pause"]);

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", SOLID.has(name) ? "icon solid" : "icon");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

export function button(label, props, ...children) {
  const words = children.length ? children : [label];
  return h("button", { type: "button", title: label, "aria-label": label, ...props }, ...words);
}

// Also works without the clipboard API: in a page opened from a file, in an old browser.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return;
  } catch {
    const area = h("textarea", { class: "offscreen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

export function announce(text) {
  let place = document.getElementById("announcer");
  if (!place) {
    place = h("div", { id: "announcer", class: "toast", role: "status", "aria-live": "polite" });
    document.body.append(place);
  }
  fill(place, text);
  place.classList.add("shown");
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => place.classList.remove("shown"), 1800);
}
