// The report of a replay: verdict, coverage, and each divergence beside the expected call. Knows the JSON
// of the report.

import { rooted } from "./address.js";
import { fill, h } from "./dom.js";
import { divergence } from "./divergence.js";
import { count, duration } from "./format.js";
import { value } from "./rendered.js";

const RUNGS = ["exact", "normalised", "fuzzy", "live", "blocked", "missed", "unused"];

export class ReportPage {
  constructor({ source, id }) {
    Object.assign(this, { source, id });
    this.node = h("main", { class: "page report", id: "main" });
  }

  async open() {
    document.title = "Replay · Playhead";
    fill(this.node, h("p", { class: "loading", role: "status" }, "Reading the report…"));
    const told = await this.source.report(this.id);
    fill(this.node, reportView(told, false));
    this.node.dataset.ready = "true";
  }
}

export function reportView(told, isEmbedded) {
  const isSame = told.verdict === "identical";
  const link = (id) =>
    isEmbedded ? h("code", {}, id) : h("a", { href: rooted(`/run/${encodeURIComponent(id)}`) }, id);
  const facts = [
    ["recorded", link(told.run)],
    ["replayed", link(told.replay)],
    ["exit code", `${told.exit_code.recorded ?? "–"} → ${told.exit_code.replayed ?? "–"}`],
    ["output", told.output_same === null ? "nothing printed" : told.output_same ? "the same" : "differs"],
    [
      "state",
      told.state?.same === null || told.state === undefined
        ? "none watched"
        : told.state.same
          ? "the same"
          : "differs",
    ],
    ["time", `${seconds(told.duration_s.recorded)} → ${seconds(told.duration_s.replayed)}`],
  ];
  return [
    h(
      "div",
      { class: "page-head" },
      h("h1", { class: isSame ? "good" : "bad" }, isSame ? "✓ Identical" : "✗ Diverged"),
      h("p", { class: "quiet" }, told.command?.join(" ") ?? ""),
    ),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, one]) => h("div", {}, h("dt", {}, name), h("dd", {}, one))),
    ),
    coverage(told.coverage),
    told.divergences.length
      ? [
          h("h2", {}, `Divergences (${told.divergences.length})`),
          told.divergences.slice(0, 200).map((one, at) => divergence(one, { isOpen: at === 0, value })),
        ]
      : null,
    part("Answered by a similar call", told.inexact),
    part("Blocked", told.blocked),
    part("Allowed to run", told.allowed),
    part("Faults that fired", told.faults),
    told.notes?.length
      ? [
          h("h2", {}, "Notes"),
          h(
            "ul",
            {},
            told.notes.map((one) => h("li", {}, one)),
          ),
        ]
      : null,
  ];
}

function seconds(s) {
  return s === null || s === undefined ? "–" : duration(s * 1e6);
}

function coverage(rows) {
  const used = RUNGS.filter((rung) => Object.values(rows).some((row) => row[rung]));
  if (!used.length) return h("p", { class: "quiet" }, "No calls were made.");
  const body = Object.entries(rows).map(([boundary, row]) => {
    const total = used.reduce((sum, rung) => sum + (row[rung] ?? 0), 0) || 1;
    const bar = h(
      "div",
      { class: "coverage-bar", "aria-hidden": "true" },
      used
        .filter((rung) => row[rung])
        .map((rung) => {
          const share = h("i", { class: `rung-${rung}`, title: `${rung}: ${row[rung]}` });
          share.style.width = `${(row[rung] / total) * 100}%`;
          return share;
        }),
    );
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, boundary),
      h("td", { class: "coverage-cell" }, bar),
      used.map((rung) => h("td", { class: "n" }, row[rung] ? count(row[rung]) : "")),
    );
  });
  return [
    h("h2", {}, "Coverage"),
    h(
      "div",
      { class: "wide" },
      h(
        "table",
        { class: "coverage" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "boundary"),
            h("td", {}),
            used.map((rung) =>
              h("th", { scope: "col", class: "n" }, h("span", { class: `dot rung-${rung}` }), rung),
            ),
          ),
        ),
        h("tbody", {}, body),
      ),
    ),
  ];
}

function part(title, rows) {
  return rows?.length ? [h("h2", {}, title), value(rows)] : null;
}
