// The tree of a run: calls below the calls that caused them. Knows the model and visible rows.

import { h, icon, marked } from "./dom.js";
import { duration, money, short } from "./format.js";
import { VirtualList } from "./list.js";
import { MOMENT } from "./model.js";

const ROW = 30;
const STEP = 18;
const DEEPEST = 14;

export class Tree {
  // `chosen(row)` is called when a person selects a row.
  constructor({ chosen }) {
    this.chosen = chosen;
    this.folded = new Set();
    this.hidden = new Set(["output", "hook"]);
    this.found = null;
    this.wanted = "";
    this.selected = -1;
    this.now = Infinity;
    this.list = new VirtualList({
      height: ROW,
      draw: (at) => this.#row(at),
      role: "tree",
      label: "Conversation",
    });
    this.node = this.list.node;
    this.node.classList.add("tree");
    this.node.addEventListener("keydown", (event) => this.#key(event));
    this.node.addEventListener("click", (event) => this.#click(event));
  }

  show(model) {
    this.model = model;
    // Calls of libraries while they were loaded are hidden until a person unfolds them.
    this.folded = new Set(model.startUps());
    this.#arrange();
  }

  // The run has grown: folded and selected rows are kept by their refs.
  grow(model) {
    const names = [...this.folded].map((row) => this.model.refs[row]);
    const chosen = this.selected >= 0 ? this.model.refs[this.selected] : null;
    const kept = names.map((ref) => model.row(ref)).filter((row) => row >= 0);
    const fresh = model.startUps().filter((row) => this.model.row(model.refs[row]) < 0);
    this.model = model;
    this.folded = new Set([...kept, ...fresh]);
    this.selected = chosen === null ? -1 : model.row(chosen);
    this.#arrange();
  }

  #arrange() {
    let rows = this.model.shown(this.folded, this.hidden);
    if (this.found !== null) rows = rows.filter((row) => this.found.has(row));
    this.rows = rows;
    this.places = new Map();
    rows.forEach((row, at) => this.places.set(row, at));
    this.list.reset(rows.length);
    this.node.classList.toggle("empty", rows.length === 0);
  }

  hide(names) {
    this.hidden = names;
    this.#arrange();
  }

  // Only these rows; null: all.
  filter(found, wanted = "") {
    this.found = found;
    this.wanted = wanted.trim().toLowerCase();
    this.#arrange();
  }

  isShown(row) {
    return this.places.has(row);
  }

  select(row, { scroll = "near" } = {}) {
    const before = this.selected;
    this.selected = row;
    if (row >= 0 && !this.places.has(row)) this.#unfold(row);
    for (const one of [before, row]) {
      const at = this.places.get(one);
      if (at !== undefined) this.list.refresh(at);
    }
    const at = this.places.get(row);
    if (at === undefined) return;
    this.list.scrollTo(at, scroll);
    this.node.setAttribute("aria-activedescendant", `row-${row}`);
  }

  #unfold(row) {
    let changed = false;
    for (let at = this.model.above[row]; at >= 0; at = this.model.above[at])
      changed = this.folded.delete(at) || changed;
    const group = this.model.groupOf(row);
    changed = this.hidden.delete(group) || changed;
    if (changed) this.#arrange();
  }

  // Rows that begin later than this moment are dimmed: they have not happened yet.
  setNow(now) {
    const before = this.now;
    this.now = now;
    const [low, high] = before < now ? [before, now] : [now, before];
    for (const [at, node] of this.list.drawn) {
      const begun = this.model.at[this.rows[at]];
      if (begun > low && begun <= high) node.classList.toggle("later", begun > now);
    }
  }

  #row(at) {
    const { model } = this;
    const row = this.rows[at];
    const kind = model.kindOf(row);
    const group = model.groupOf(row);
    const below = model.hasBelow(row);
    const isFolded = this.folded.has(row);
    const node = h("div", {
      class: `row kind-${kind} group-${group}`,
      id: `row-${row}`,
      role: "treeitem",
      "aria-level": model.depth[row] + 1,
      "aria-expanded": below ? String(!isFolded) : null,
      "aria-selected": String(row === this.selected),
      "data-row": row,
    });
    node.style.paddingLeft = `${8 + Math.min(model.depth[row], DEEPEST) * STEP}px`;
    if (row === this.selected) node.classList.add("selected");
    if (model.failed(row)) node.classList.add("failed");
    if (model.at[row] > this.now) node.classList.add("later");
    node.append(
      h(
        "span",
        { class: below ? (isFolded ? "twist folded" : "twist") : "twist none" },
        below ? icon("down") : null,
      ),
      h("span", { class: `mark mark-${group}`, title: model.text("boundary", row) || kind }),
      ...this.#words(row, kind),
      h("span", { class: "figures" }, ...this.#figures(row)),
    );
    return node;
  }

  #words(row, kind) {
    const { model } = this;
    const name = model.text("name", row);
    const brief = model.text("brief", row);
    const failure = model.text("fail", row);
    if (kind === "person") return [h("span", { class: "brief said" }, marked(brief, this.wanted))];
    const lane =
      model.above[row] >= 0 && model.lane[model.above[row]] !== model.lane[row]
        ? h("span", { class: "lane-tag" }, model.lanes[model.lane[row]])
        : null;
    const number = kind === "call" && model.number[row] > 0 ? h("span", { class: "number" }, `#${model.number[row]}`) : null;
    const words = [
      lane,
      number,
      h("span", { class: "name" }, marked(name || kind, this.wanted)),
      h("span", { class: "brief" }, marked(brief, this.wanted)),
    ];
    if (failure) words.push(h("span", { class: "failure" }, marked(failure, this.wanted)));
    if (model.inFlight(row) && !model.partial)
      words.push(
        h(
          "span",
          { class: "flight" },
          model.run.status === "running" ? "running" : kind === "turn" ? "never ended" : "never answered",
        ),
      );
    return words.filter((one) => one !== null);
  }

  #figures(row) {
    const { model } = this;
    const out = [];
    if (model.came[row] || model.went[row])
      out.push(h("span", { class: "tokens" }, `${short(model.came[row])}→${short(model.went[row])}`));
    if (model.cost[row]) out.push(h("span", { class: "cost" }, money(model.cost[row])));
    out.push(this.#bar(row));
    out.push(
      h(
        "span",
        { class: "took" },
        model.took[row] === MOMENT ? "" : model.inFlight(row) ? "…" : duration(model.took[row]),
      ),
    );
    return out;
  }

  // When the row happened, on the time axis of the whole run.
  #bar(row) {
    const { model } = this;
    const bar = h("span", { class: "bar", "aria-hidden": "true" });
    if (model.took[row] === MOMENT) return bar;
    const part = h("span", { class: `mark-${model.groupOf(row)}` });
    const from = Math.min(99, (model.at[row] / model.total) * 100);
    part.style.left = `${from}%`;
    part.style.width = `${Math.max(1, Math.min(100 - from, ((model.end(row) - model.at[row]) / model.total) * 100))}%`;
    bar.append(part);
    return bar;
  }

  #click(event) {
    const node = event.target.closest(".row");
    if (!node) return;
    const row = Number(node.dataset.row);
    if (event.target.closest(".twist") && this.model.hasBelow(row)) this.toggle(row);
    else this.chosen(row);
  }

  toggle(row, fold = !this.folded.has(row)) {
    if (fold) this.folded.add(row);
    else this.folded.delete(row);
    this.#arrange();
  }

  foldAll(fold) {
    this.folded = new Set();
    if (fold)
      for (let row = 0; row < this.model.count; row++) if (this.model.hasBelow(row)) this.folded.add(row);
    this.#arrange();
  }

  move(by) {
    const at = this.places.get(this.selected);
    const next =
      at === undefined
        ? by > 0
          ? 0
          : this.rows.length - 1
        : Math.min(this.rows.length - 1, Math.max(0, at + by));
    if (this.rows.length) this.chosen(this.rows[next]);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = this.selected;
    const moves = {
      ArrowDown: 1,
      ArrowUp: -1,
      j: 1,
      k: -1,
      PageDown: this.list.page,
      PageUp: -this.list.page,
      Home: -Infinity,
      End: Infinity,
    };
    if (event.key in moves) this.move(moves[event.key]);
    else if (event.key === "ArrowLeft" && row >= 0) {
      if (this.model.hasBelow(row) && !this.folded.has(row)) this.toggle(row, true);
      else if (this.model.above[row] >= 0) this.chosen(this.model.above[row]);
    } else if (event.key === "ArrowRight" && row >= 0 && this.model.hasBelow(row)) {
      if (this.folded.has(row)) this.toggle(row, false);
      else this.move(1);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  end() {
    this.list.end();
  }
}
