// The results of a batch: which tapes still hold. Knows the JSON of `playhead batch --json`.

import { rooted } from "./address.js";
import { fill, h } from "./dom.js";
import { count, duration, money } from "./format.js";
import { Latest } from "./latest.js";

const SIGNS = { passed: "✓", diverged: "≠", broken: "✗", unusable: "!", error: "!" };

// `extra`: hidden on narrow screens.
const COLUMNS = [
  ["tape", ""],
  ["verdict", ""],
  ["passes", "n"],
  ["answers", "n extra"],
  ["steps", "n extra"],
  ["tokens", "n extra"],
  ["cost", "n extra"],
  ["alike", "n extra"],
  ["took", "n"],
];

export class BatchPage {
  constructor() {
    this.node = h("main", { class: "page batch", id: "main" });
  }

  async open() {
    document.title = "Batch · Playhead";
    this.#ask("");
    this.node.dataset.ready = "true";
  }

  // Results are a file of the person's own; the browser reads it, nothing is sent.
  #ask(problem) {
    const reading = new Latest();
    const file = h("input", {
      type: "file",
      accept: ".json,application/json",
      "aria-label": "Results of a batch",
      onchange: async () => {
        const isLatest = reading.begin();
        try {
          const text = await file.files[0].text();
          if (!isLatest()) return;
          const told = JSON.parse(text);
          if (!Array.isArray(told.cases)) throw new Error("it has no cases");
          fill(this.node, this.#results(told));
        } catch (error) {
          this.#ask(`This file does not contain the results of a batch: ${error.message}.`);
        }
      },
    });
    fill(
      this.node,
      h("div", { class: "page-head" }, h("h1", {}, "Batch results")),
      h(
        "p",
        {},
        "Write them with ",
        h("code", {}, "playhead batch tests/tapes/ --json results.json"),
        " and open the file here:",
      ),
      file,
      problem ? h("p", { class: "bad", role: "alert" }, problem) : null,
    );
  }

  #results(told) {
    const sums = Object.entries(told.counts)
      .filter(([, number]) => number)
      .map(([name, number]) =>
        h("span", { class: `outcome outcome-${name}` }, `${SIGNS[name]} ${number} ${name}`),
      );
    const failing = told.cases.filter((one) => one.outcome !== "passed");
    const rows = told.cases.map((one) => this.#row(one));
    return [
      h(
        "div",
        { class: "page-head" },
        h("h1", {}, `${count(told.cases.length)} tapes`),
        h("p", { class: "outcomes" }, sums),
        h(
          "p",
          { class: "quiet" },
          [told.started_at, duration(told.took_s * 1e6), told.host].filter(Boolean).join(" · "),
        ),
      ),
      failing.length ? [h("h2", {}, "Tapes that did not pass"), failing.map((one) => this.#failing(one))] : null,
      h("h2", {}, "All"),
      h(
        "div",
        { class: "wide" },
        h(
          "table",
          { class: "run-table batch-table" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              COLUMNS.map(([name, look]) => h("th", { scope: "col", class: look }, name)),
            ),
          ),
          h("tbody", {}, rows),
        ),
      ),
    ];
  }

  #row(one) {
    const figures = one.verdicts.at(-1)?.figures ?? {};
    const number = (text) => h("td", { class: "n" }, text);
    const extra = (text) => h("td", { class: "n extra" }, text);
    return h(
      "tr",
      {},
      h("td", { class: "run-cell" }, this.#tape(one), h("div", { class: "quiet small" }, one.tape)),
      h(
        "td",
        {},
        h("span", { class: `outcome outcome-${one.outcome}` }, `${SIGNS[one.outcome]} ${one.outcome}`),
        one.flaky ? h("span", { class: "tag odd" }, "flaky") : null,
      ),
      number(`${one.passes}/${one.rounds}`),
      extra(one.answers || "–"),
      extra(count(figures.steps)),
      extra(count(figures.tokens)),
      extra(money(figures.cost_usd)),
      extra(
        figures.similarity === null || figures.similarity === undefined
          ? "–"
          : `${Math.round(figures.similarity * 100)} %`,
      ),
      number(duration(one.verdicts.reduce((sum, verdict) => sum + verdict.took_s, 0) * 1e6)),
    );
  }

  #tape(one) {
    const isRun = /^\d{8}-\d{6}-\w+$/.test(one.tape);
    return isRun
      ? h("a", { href: rooted(`/run/${encodeURIComponent(one.tape)}`) }, one.name)
      : h("strong", {}, one.name);
  }

  #failing(one) {
    const bad = one.verdicts.filter((verdict) => verdict.outcome !== "passed");
    return h(
      "details",
      { class: "divergence", open: true },
      h(
        "summary",
        {},
        h("span", { class: `outcome outcome-${one.outcome}` }, `${SIGNS[one.outcome]} ${one.outcome}`),
        h("strong", {}, ` ${one.name} `),
        h("span", { class: "quiet" }, one.tape),
      ),
      bad.map((verdict) => [
        one.rounds > 1 ? h("p", { class: "quiet" }, `round ${verdict.round} of ${one.rounds}`) : null,
        h(
          "ul",
          {},
          verdict.why.map((why) => h("li", {}, why)),
        ),
        verdict.replay ? this.#links(one, verdict) : null,
        verdict.said?.trim()
          ? h(
              "details",
              {},
              h("summary", {}, "what it printed"),
              h("pre", { class: "terminal" }, verdict.said),
            )
          : null,
      ]),
    );
  }

  #links(one, verdict) {
    return h(
      "p",
      {},
      h(
        "a",
        { href: rooted(`/compare/${encodeURIComponent(one.tape)}/${encodeURIComponent(verdict.replay)}`) },
        "compare side by side",
      ),
      " · ",
      h("a", { href: rooted(`/report/${encodeURIComponent(verdict.replay)}`) }, "report"),
    );
  }
}
