// The pieces of a call's streams and when each came. Knows items in full.

import { h } from "./dom.js";
import { count, duration, size } from "./format.js";

const MANY = 400;

export function streamView(item) {
  const names = Object.keys(item.streams);
  const bytes = names.map((name) => bytesOf(item.streams[name]));
  const offsets = names.map(() => 0);
  const reader = new TextDecoder("utf-8", { fatal: false });
  const rows = [];
  let before = 0;
  for (const [stream, atNs, length] of item.pieces) {
    const raw = bytes[stream].subarray(offsets[stream], offsets[stream] + length);
    offsets[stream] += length;
    rows.push({
      stream: names[stream],
      at: atNs / 1000,
      pause: Math.max(0, atNs / 1000 - before),
      length,
      text: () => reader.decode(raw),
    });
    before = atNs / 1000;
  }
  return [summary(item, rows), strip(item, rows), table(rows)];
}

function bytesOf(stream) {
  if (stream.text !== undefined) return new TextEncoder().encode(stream.text);
  return Uint8Array.from(atob(stream.b64 ?? ""), (one) => one.charCodeAt(0));
}

function summary(item, rows) {
  const came = rows.filter((row) => row.stream !== "sent");
  const facts = [
    ["pieces", count(rows.length)],
    ["bytes", size(rows.reduce((sum, row) => sum + row.length, 0))],
    ["first after", duration(came[0]?.at)],
    ["last after", duration(came.at(-1)?.at)],
    ["longest pause", duration(Math.max(0, ...came.map((row) => row.pause)))],
  ];
  const out = item.usage?.[0]?.output_tokens;
  const took = came.length > 1 ? came.at(-1).at - came[0].at : 0;
  if (out && took > 0) facts.push(["tokens a second", (out / (took / 1e6)).toFixed(0)]);
  return h(
    "dl",
    { class: "facts" },
    facts.map(([name, told]) => h("div", {}, h("dt", {}, name), h("dd", {}, told))),
  );
}

// One line for the time of the call, a mark for each piece: bursts and pauses at a glance.
function strip(item, rows) {
  const total = Math.max(1, (item.took_ns ?? 0) / 1000, rows.at(-1)?.at ?? 0);
  const marks = rows.slice(0, 4000).map((row) => {
    const mark = h("i", {});
    mark.style.left = `${(row.at / total) * 100}%`;
    return mark;
  });
  return h("div", { class: "strip", "aria-hidden": "true" }, marks);
}

function table(rows) {
  const body = h("tbody", {}, rows.slice(0, MANY).map(line));
  const view = h(
    "div",
    { class: "wide" },
    h(
      "table",
      { class: "pieces" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["at", "pause", "bytes", "stream", "piece"].map((name) => h("th", { scope: "col" }, name)),
        ),
      ),
      body,
    ),
  );
  if (rows.length <= MANY) return view;
  const more = h(
    "button",
    {
      type: "button",
      class: "link",
      onclick: () => {
        body.append(...rows.slice(MANY).map(line));
        more.remove();
      },
    },
    `${count(rows.length - MANY)} more pieces`,
  );
  return [view, more];
}

function line(row) {
  const told = row.text();
  return h(
    "tr",
    {},
    h("td", { class: "n" }, duration(row.at)),
    h("td", { class: "n" }, `+${duration(row.pause)}`),
    h("td", { class: "n" }, count(row.length)),
    h("td", {}, row.stream),
    h("td", { class: "piece" }, told.length > 1200 ? `${told.slice(0, 1200)}…` : told),
  );
}
