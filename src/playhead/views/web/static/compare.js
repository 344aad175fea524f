// Two runs, aligned step by step. Knows the JSON of `playhead diff`.

import { fill, h } from "./dom.js";
import { diffView } from "./diff.js";
import { count, duration, money } from "./format.js";

const SIGNS = { same: "=", changed: "≠", added: "+", removed: "−" };
const NAMES = { duration_s: "duration", cost_usd: "cost", llm_calls: "LLM calls" };
const WORDS = { same: "the same", changed: "changed", added: "only right", removed: "only left" };

export class ComparePage {
  constructor({ source, a, b }) {
    Object.assign(this, { source, a, b });
    this.node = h("main", { class: "page compare", id: "main" });
  }

  async open() {
    document.title = "Compare · Playhead";
    if (!(this.a && this.b)) {
      await this.#choose();
    } else {
      fill(this.node, h("p", { class: "loading", role: "status" }, "Comparing…"));
      this.#draw(await this.source.compare(this.a, this.b));
    }
    this.node.dataset.ready = "true";
  }

  async #choose() {
    const { runs } = await this.source.runs({ limit: 100, sort: "-started" });
    const options = () =>
      runs.map((one) => h("option", { value: one.id }, `${one.name || one.id} · ${(one.ending ?? { word: one.status }).word} · ${one.id}`));
    const [left, right] = ["Left run", "Right run"].map((label) =>
      h("select", { "aria-label": label }, options()),
    );
    if (runs.length > 1) left.selectedIndex = 1;
    const go = (event) => {
      event.preventDefault();
      history.pushState(
        null,
        "",
        `/compare/${encodeURIComponent(left.value)}/${encodeURIComponent(right.value)}`,
      );
      window.dispatchEvent(new PopStateEvent("popstate"));
    };
    fill(
      this.node,
      h("div", { class: "page-head" }, h("h1", {}, "Compare two runs")),
      h(
        "form",
        { class: "run-filters", onsubmit: go },
        left,
        right,
        h("button", { class: "primary" }, "Compare"),
      ),
    );
  }

  #draw(told) {
    const counts = { same: 0, changed: 0, added: 0, removed: 0 };
    for (const step of told.steps) counts[step.kind] += 1;
    const sums = Object.entries(counts)
      .filter(([, number]) => number)
      .map(([kind, number]) => `${number} ${WORDS[kind]}`)
      .join(", ");
    this.onlyChanges = false;
    this.list = h("ol", { class: "aligned" });
    const toggle = h("input", {
      type: "checkbox",
      onchange: () => {
        this.onlyChanges = toggle.checked;
        this.#steps(told);
      },
    });
    fill(
      this.node,
      h(
        "div",
        { class: "page-head" },
        h("h1", {}, told.same ? "The same trajectory" : "Trajectories differ"),
        h("p", { class: "quiet" }, sums || "no steps"),
      ),
      h("div", { class: "wide" }, figures(told)),
      h(
        "div",
        { class: "aligned-bar" },
        h("label", {}, toggle, "only what differs"),
        told.first_difference === null
          ? null
          : h(
              "button",
              { type: "button", class: "primary", onclick: () => this.#first(told.first_difference) },
              "First difference",
            ),
      ),
      h(
        "div",
        { class: "aligned-head", "aria-hidden": "true" },
        h("span", {}),
        h("strong", {}, told.left),
        h("strong", {}, told.right),
      ),
      this.list,
    );
    this.#steps(told);
  }

  #steps(told) {
    fill(
      this.list,
      told.steps.map((step, at) => (this.onlyChanges && step.kind === "same" ? null : this.#step(step, at))),
    );
  }

  #first(at) {
    const node = this.list.querySelector(`[data-step="${at}"]`);
    node?.scrollIntoView({ block: "center" });
    const details = node?.querySelector("details");
    if (details) details.open = true;
  }

  #step(step, at) {
    const alike =
      step.similarity !== null && step.kind === "changed"
        ? h("span", { class: "quiet" }, `answers ${Math.round(step.similarity * 100)} % alike`)
        : null;
    const body = h("div", { class: "aligned-body" });
    const details = h(
      "details",
      {
        ontoggle: () => {
          if (details.open && !body.childElementCount) fill(body, whole(step));
        },
      },
      h(
        "summary",
        {},
        h("span", { class: `sign sign-${step.kind}`, title: WORDS[step.kind] }, SIGNS[step.kind]),
        side(step.left),
        side(step.right),
        alike,
      ),
      body,
    );
    return h("li", { "data-step": at, class: `step-${step.kind}` }, details);
  }
}

function figures(told) {
  const shown = (figure, value) =>
    value === null
      ? "–"
      : figure.name === "duration_s"
        ? duration(value * 1e6)
        : figure.name === "cost_usd"
          ? money(value)
          : count(value);
  const rows = told.figures
    .filter((one) => one.left || one.right)
    .map((one) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, NAMES[one.name] ?? one.name.replaceAll("_", " ")),
        h("td", { class: "n" }, shown(one, one.left)),
        h("td", { class: "n" }, shown(one, one.right)),
        h("td", { class: "n quiet" }, change(one)),
      ),
    );
  if (told.result_similarity !== null)
    rows.push(
      h(
        "tr",
        {},
        h("th", { scope: "row" }, "last answers alike"),
        h("td", {}),
        h("td", {}),
        h("td", { class: "n" }, `${Math.round(told.result_similarity * 100)} %`),
      ),
    );
  const name = (id) =>
    h("th", { scope: "col", class: "n" }, h("a", { href: `/run/${encodeURIComponent(id)}` }, id));
  return h(
    "table",
    { class: "figure-table" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("td", {}),
        name(told.left),
        name(told.right),
        h("th", { scope: "col", class: "n" }, "change"),
      ),
    ),
    h("tbody", {}, rows),
  );
}

function change({ left, right }) {
  if (left === null || right === null || left === right) return "";
  return left ? `${right > left ? "+" : "−"}${Math.abs(Math.round(((right - left) / left) * 100))} %` : "new";
}

function side(one) {
  if (!one) return h("span", { class: "side none" }, "–");
  return h(
    "span",
    { class: "side" },
    h("span", { class: `mark mark-${one.boundary === "mcp" ? "tool" : one.boundary}` }),
    h("span", { class: "quiet" }, `#${one.number} `),
    h("strong", {}, one.name),
    h("span", { class: "side-brief" }, one.answered.replace(/\s+/g, " ").slice(0, 120)),
    one.rung ? h("span", { class: "tag" }, one.rung) : null,
  );
}

function whole({ left, right }) {
  if (left && right) {
    const parts = ["name", "asked", "answered"].map((name) =>
      left[name] === right[name] ? null : [h("h3", {}, name), diffView(left[name], right[name])],
    );
    return parts.some((one) => one !== null)
      ? parts
      : [
          h("h3", {}, "asked"),
          h("pre", {}, left.asked),
          h("h3", {}, "answered"),
          h("pre", {}, left.answered),
        ];
  }
  const one = left ?? right;
  return [h("h3", {}, "asked"), h("pre", {}, one.asked), h("h3", {}, "answered"), h("pre", {}, one.answered)];
}
