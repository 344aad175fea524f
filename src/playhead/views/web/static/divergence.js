// A divergence beside the nearest taped call: for the report and for a step of the run. Knows the JSON of one.

import { h } from "./dom.js";
import { diffView } from "./diff.js";
import { markdown } from "./markdown.js";

// What differs, in the words of the terminal.
function title({ kind, step, boundary, name, detail }) {
  const call = [boundary, name].filter(Boolean).join(" ");
  if (kind === "missed") return `no taped call matches step ${step}: ${call}`;
  if (kind === "unused") return `taped call ${step} was never made: ${call}`;
  return String((boundary ? [kind, call].join(" ") : detail) || kind);
}

// `value` draws a request: this module does not know how.
export function divergence(one, { isOpen, value }) {
  return h(
    "details",
    { class: "divergence", open: isOpen },
    h(
      "summary",
      {},
      h("span", { class: "sign sign-changed" }, "≠"),
      h("strong", {}, title(one)),
      one.lane ? h("span", { class: "quiet" }, ` lane ${one.lane}`) : null,
      one.at ? h("span", { class: "quiet" }, ` ${one.at}`) : null,
    ),
    one.detail && one.boundary ? h("p", {}, String(one.detail)) : null,
    one.nearest ? differences(one.nearest) : null,
    one.request === null || one.request === undefined
      ? null
      : [h("h3", {}, one.kind === "unused" ? "Taped" : "Request now"), value(one.request)],
    one.advice ? markdown(one.advice) : null,
  );
}

// Compares a call with the nearest taped call field by field: taped left, requested right.
function differences(nearest) {
  const served = nearest.served ? ", served already" : "";
  if (!nearest.differences?.length)
    return h("p", {}, `Nearest is taped call ${nearest.number}: the same request${served}.`);
  const rows = nearest.differences.map((one) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, one.path),
      h("td", {}, h("del", {}, text(one.taped))),
      h("td", {}, h("ins", {}, text(one.asked))),
    ),
  );
  const long = nearest.differences.filter(
    (one) =>
      typeof one.taped === "string" &&
      typeof one.asked === "string" &&
      (one.taped + one.asked).includes("\n"),
  );
  return [
    h("p", {}, `Nearest is taped call ${nearest.number}${served}:`),
    h(
      "div",
      { class: "wide" },
      h(
        "table",
        { class: "side-by-side" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["field", "on the tape", "request now"].map((name) => h("th", { scope: "col" }, name)),
          ),
        ),
        h("tbody", {}, rows),
      ),
    ),
    long.map((one) => [h("h3", {}, one.path), diffView(one.taped, one.asked)]),
  ];
}

function text(one) {
  return typeof one === "string" ? one : JSON.stringify(one);
}
