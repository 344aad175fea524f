// Totals of all runs, by day, model, tool and other keys. Knows the JSON of `playhead stats`.

import { rooted } from "./address.js";
import { fill, h } from "./dom.js";
import { count, duration, money, short } from "./format.js";

const KEYS = ["day", "name", "model", "tool"];
const SINCE = [
  ["", "any time"],
  ["1d", "last day"],
  ["7d", "last week"],
  ["30d", "last month"],
];

export class StatsPage {
  constructor({ source }) {
    this.source = source;
    this.node = h("main", { class: "page stats", id: "main" });
  }

  async open() {
    document.title = "Stats · Playhead";
    const asked = new URLSearchParams(location.search);
    const select = (name, label, options) =>
      h(
        "select",
        { name, "aria-label": label },
        options.map(([value, text]) => h("option", { value, selected: asked.get(name) === value }, text)),
      );
    this.form = h(
      "form",
      { class: "run-filters", onsubmit: (event) => event.preventDefault(), onchange: () => this.#changed() },
      select(
        "by",
        "Group by",
        KEYS.map((key) => [key, `by ${key}`]),
      ),
      select("since", "Since", SINCE),
    );
    this.body = h("div", {});
    fill(this.node, h("div", { class: "page-head" }, h("h1", {}, "Stats")), this.form, this.body);
    await this.#load();
    this.node.dataset.ready = "true";
  }

  #changed() {
    history.replaceState(null, "", rooted(`/stats?${this.#query()}`));
    this.#load();
  }

  #query() {
    const query = new URLSearchParams(new FormData(this.form));
    if (!query.get("since")) query.delete("since");
    return query;
  }

  async #load() {
    const query = this.#query();
    const told = await this.source.stats(query.get("by"), { replays: "false", ...Object.fromEntries(query) });
    if (query.toString() === this.#query().toString()) this.#draw(told);
  }

  #draw(told) {
    const { total } = told;
    const figure = (label, value, isBad = false) =>
      h("div", { class: isBad ? "warn" : null }, h("dt", {}, label), h("dd", {}, value));
    const failing = told.most_failing_tools.filter((one) => one.failures);
    fill(
      this.body,
      h(
        "dl",
        { class: "figures-bar totals" },
        figure("runs", count(total.runs)),
        figure("failed runs", count(total.failed_runs), total.failed_runs > 0),
        figure("failed turns", count(total.failed_turns), total.failed_turns > 0),
        figure("failed calls", count(total.failed_calls), total.failed_calls > 0),
        figure("tokens", short(total.tokens)),
        figure("cost", money(total.cost_usd)),
      ),
      told.rows.length ? table(told) : h("p", { class: "nothing" }, "No runs in this period."),
      failing.length ? [h("h2", {}, "Tools that fail most"), failures(failing)] : null,
    );
  }
}

const seconds = (value) => (value === null ? "–" : duration(value * 1e6));
// Member of a row, heading, look, how it is written. Columns without a value in any row are left out.
const COLUMNS = [
  ["runs", "runs", "", count],
  ["failed_runs", "failed runs", "bad", count],
  ["calls", "calls", "extra", count],
  ["failed_calls", "failed calls", "bad extra", count],
  ["tokens", "tokens", "", short],
  ["cost_usd", "cost", "", money],
  ["p50_s", "p50", "extra", seconds],
  ["p95_s", "p95", "extra", seconds],
];

function table({ by, rows }) {
  // Models and tools are counted in calls; days and names in runs.
  const [all, failed] = rows.some((row) => row.calls !== null) ? ["calls", "failed_calls"] : ["runs", "failed_runs"];
  const most = Math.max(...rows.map((row) => row[all] ?? 0), 1);
  const columns = COLUMNS.filter(([member]) => rows.some((row) => row[member] !== null));
  const cell = (row, [member, , look, written]) => {
    const isPlain = !look.startsWith("bad") || !row[member];
    return h("td", { class: `n ${isPlain ? look.replace("bad", "") : look}` }, written(row[member]));
  };
  return h(
    "div",
    { class: "wide" },
    h(
      "table",
      { class: "run-table stats-table" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, by),
          h("th", { scope: "col", class: "share" }, `${all}, failed in red`),
          columns.map(([, heading, look]) =>
            h("th", { scope: "col", class: `n ${look.replace("bad", "")}` }, heading),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            {},
            h("th", { scope: "row", class: "key" }, String(row.key ?? "–")),
            h("td", { class: "share" }, bar((row[all] ?? 0) / most, (row[failed] ?? 0) / most)),
            columns.map((column) => cell(row, column)),
          ),
        ),
      ),
    ),
  );
}

// Widths are set by script: the content security policy forbids style attributes.
function bar(share, failed) {
  const whole = h("span", { class: "share-bar", "aria-hidden": "true" });
  const good = h("i", {});
  const bad = h("i", { class: "share-failed" });
  good.style.width = `${Math.max(0, share - failed) * 100}%`;
  bad.style.width = `${failed * 100}%`;
  fill(whole, good, bad);
  return whole;
}

function failures(tools) {
  return h(
    "table",
    { class: "figure-table" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["tool", "failed", "calls"].map((text, at) => h("th", { scope: "col", class: at ? "n" : null }, text)),
      ),
    ),
    h(
      "tbody",
      {},
      tools.map((one) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, one.tool),
          h("td", { class: "n bad" }, count(one.failures)),
          h("td", { class: "n" }, count(one.calls)),
        ),
      ),
    ),
  );
}
