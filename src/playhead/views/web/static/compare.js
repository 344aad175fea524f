// Two runs, aligned step by step. Knows the JSON of `playhead diff`.

import { rooted } from "./address.js";
import { fill, h } from "./dom.js";
import { diffView } from "./diff.js";
import { count, duration, money } from "./format.js";
import { Picker } from "./picker.js";

const SIGNS = { same: "=", changed: "≠", added: "+", removed: "−" };
const NAMES = { duration_s: "duration", cost_usd: "cost", llm_calls: "LLM calls" };
const WORDS = { same: "the same", changed: "changed", added: "only right", removed: "only left" };

const PARTS = { name: "name", asked: "request", answered: "response" };

export function compareAddress(a, b) {
  return rooted(`/compare?${new URLSearchParams({ a, b })}`);
}

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
    const done = (a, b) => {
      history.pushState(null, "", compareAddress(a, b));
      window.dispatchEvent(new PopStateEvent("popstate"));
    };
    const picker = new Picker({ source: this.source, a: this.a, b: this.b, done });
    await picker.open();
    fill(this.node, h("div", { class: "page-head" }, h("h1", {}, "Compare two runs")), picker.node);
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
        h("a", { class: "other-runs", href: rooted("/compare") }, "Compare other runs"),
      ),
      h("div", { class: "wide" }, figures(told)),
      h(
        "div",
        { class: "aligned-bar" },
        h("label", {}, toggle, "only differences"),
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
        h("strong", {}, told.left_name || told.left),
        h("strong", {}, told.right_name || told.right),
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
        h("th", { scope: "row" }, "last answers: similarity"),
        h("td", {}),
        h("td", {}),
        h("td", { class: "n" }, `${Math.round(told.result_similarity * 100)} %`),
      ),
    );
  const name = (id, title) =>
    h("th", { scope: "col", class: "n" }, h("a", { href: rooted(`/run/${encodeURIComponent(id)}`), title: id }, title || id));
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
        name(told.left, told.left_name),
        name(told.right, told.right_name),
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
    h("span", { class: "side-brief" }, brief(one).replace(/\s+/g, " ").slice(0, 120)),
    one.rung ? h("span", { class: "tag" }, one.rung) : null,
  );
}

// Of a process, its arguments say more than its exit code; a call without a response shows its request.
function brief({ boundary, asked, answered }) {
  if (boundary !== "process") return answered || asked;
  try {
    const words = JSON.parse(asked).argv.slice(1).join(" ");
    return `${words} → ${/^-?\d+$/.test(answered) ? `exit ${answered}` : answered}`;
  } catch {
    return answered;
  }
}

function whole({ left, right }) {
  if (left && right) {
    const parts = Object.entries(PARTS).map(([name, title]) =>
      left[name] === right[name] ? null : [h("h3", {}, title), diffView(left[name], right[name])],
    );
    if (parts.some((one) => one !== null)) return parts;
  }
  const one = left ?? right;
  return ["asked", "answered"].map((name) =>
    one[name] ? [h("h3", {}, PARTS[name]), h("pre", {}, one[name])] : null,
  );
}
