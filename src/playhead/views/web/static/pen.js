// Helpers for canvas drawing: theme colours, axis steps, texts that fit.

import { visible } from "./dom.js";
import { position } from "./format.js";

export function read(node) {
  const style = getComputedStyle(node);
  const names = [
    "text",
    "quiet",
    "line",
    "back",
    "accent",
    "failed",
    "llm",
    "tool",
    "http",
    "process",
    "state",
    "note",
    "seam",
    "output",
    "ink",
  ];
  const colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  return {
    ...colours,
    turnBack: style.getPropertyValue("--turn").trim(),
    person: colours.quiet,
    hook: colours.note,
  };
}

export function tick(at, step) {
  if (step >= 1e5) return position(at);
  return step >= 1000 ? `${Math.round(at / 1000)} ms` : `${Math.round(at)} µs`;
}

export function nice(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  for (const factor of [1, 2, 5, 10]) if (factor * power >= step) return factor * power;
  return step;
}

export function hatch(pen, colour, x, y, wide, high) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, wide, high);
  pen.clip();
  pen.strokeStyle = colour;
  pen.globalAlpha *= 0.5;
  pen.lineWidth = 2;
  pen.beginPath();
  for (let at = x - high; at < x + Math.min(wide, 4000); at += 7) {
    pen.moveTo(at, y + high);
    pen.lineTo(at + high, y);
  }
  pen.stroke();
  pen.restore();
}

export function fitted(pen, text, room) {
  if (room < 14) return "";
  const shown = visible(text.slice(0, 80));
  if (pen.measureText(shown).width <= room) return shown;
  let low = 0;
  let high = shown.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${shown.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? `${shown.slice(0, low)}…` : "";
}
