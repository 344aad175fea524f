// Program output with its terminal colours. Knows SGR escape sequences; every other sequence is left out.

import { h } from "./dom.js";

// SGR sequences (colours, bold); then the sequences that move the cursor, set titles or make links.
const SGR = new RegExp("\\u001b\\[([0-9;:]*)m");
const OTHER = new RegExp(
  "\\u001b(?:\\[[0-?]*[ -/]*[@-ln-~]|\\][^\\u0007\\u001b]*(?:\\u0007|\\u001b\\\\)|[@-Z\\\\^_])",
  "g",
);
// The sixteen colours as red, green and blue, to find the nearest one for a colour of a larger palette. Only the sixteen
// are drawn: the style sheet has a legible shade of each for the dark and the light theme.
const SIXTEEN = [
  [0, 0, 0],
  [205, 0, 0],
  [0, 205, 0],
  [205, 205, 0],
  [0, 0, 238],
  [205, 0, 205],
  [0, 205, 205],
  [229, 229, 229],
  [127, 127, 127],
  [255, 0, 0],
  [0, 255, 0],
  [255, 255, 0],
  [92, 92, 255],
  [255, 0, 255],
  [0, 255, 255],
  [255, 255, 255],
];
const STEPS = [0, 95, 135, 175, 215, 255];

export const PLAIN = { front: null, back: null, bold: false, faint: false, italic: false, underlined: false };

// The nodes of a text, and the style at its end: the next piece of the same stream starts with it.
export function styled(text, start = PLAIN) {
  const parts = text.replace(/\r\n/g, "\n").replace(OTHER, "").split(SGR);
  const nodes = [];
  let style = start;
  parts.forEach((part, at) => {
    if (at % 2) style = applied(style, part);
    else if (part) nodes.push(drawn(part, style));
  });
  return { nodes, style };
}

function drawn(text, style) {
  const names = [
    style.front === null ? null : `ansi-${style.front}`,
    style.back === null ? null : `ansi-on-${style.back}`,
    ...["bold", "faint", "italic", "underlined"].map((name) => (style[name] ? `ansi-${name}` : null)),
  ].filter(Boolean);
  return names.length ? h("span", { class: names.join(" ") }, text) : text;
}

function applied(style, codes) {
  const numbers = codes.split(/[;:]/).map(Number);
  let next = { ...style };
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at];
    if (code === 0) next = { ...PLAIN };
    else if (code === 1) next.bold = true;
    else if (code === 2) next.faint = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underlined = true;
    else if (code === 22) next.bold = next.faint = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underlined = false;
    else if (code >= 30 && code <= 37) next.front = code - 30;
    else if (code >= 90 && code <= 97) next.front = code - 82;
    else if (code === 39) next.front = null;
    else if (code >= 40 && code <= 47) next.back = code - 40;
    else if (code >= 100 && code <= 107) next.back = code - 92;
    else if (code === 49) next.back = null;
    else if (code === 38 || code === 48) {
      const [colour, used] = large(numbers.slice(at + 1));
      if (colour !== null) next[code === 38 ? "front" : "back"] = colour;
      at += used;
    }
  }
  return next;
}

// A colour of the palette of 256 (5;N) or of red, green and blue (2;R;G;B), and how many numbers it takes.
function large([kind, ...rest]) {
  if (kind === 5) return [ofPalette(rest[0]), 2];
  if (kind === 2) return [nearest(rest.slice(0, 3)), 4];
  return [null, 1];
}

function ofPalette(number) {
  if (!(number >= 0 && number <= 255)) return null;
  if (number < 16) return number;
  if (number > 231) return nearest(Array(3).fill((number - 232) * 10 + 8));
  const at = number - 16;
  return nearest([Math.floor(at / 36), Math.floor(at / 6) % 6, at % 6].map((step) => STEPS[step]));
}

function nearest(colour) {
  if (colour.length < 3 || colour.some(Number.isNaN)) return null;
  const far = SIXTEEN.map((one) => one.reduce((sum, part, at) => sum + (part - colour[at]) ** 2, 0));
  return far.indexOf(Math.min(...far));
}
