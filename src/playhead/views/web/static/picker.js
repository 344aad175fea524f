// Two lists of runs, each with a search field: choose one in each and compare them. Knows the list of runs.

import { fill, h } from "./dom.js";
import { age } from "./format.js";
import { statusBadge } from "./status.js";

const SHOWN = 12;
const LOADED = 200;
// Milliseconds without typing before the server is asked.
const PAUSE = 250;

export class Picker {
  // `done(a, b)` is called with the ids of the chosen runs. `a` and `b` may be chosen already.
  constructor({ source, a, b, done }) {
    Object.assign(this, { source, done });
    this.chosen = { a, b };
    this.known = new Map();
    this.node = h("form", { class: "picker", onsubmit: (event) => this.#submit(event) });
  }

  async open() {
    const newest = await this.#load({});
    this.chosen.b ??= newest[0]?.id;
    this.chosen.a ??= newest.find((one) => one.id !== this.chosen.b)?.id;
    this.lists = { a: this.#list("a", "Left run"), b: this.#list("b", "Right run") };
    fill(
      this.node,
      h("div", { class: "picker-lists" }, this.lists.a.node, this.lists.b.node),
      h("button", { class: "primary" }, "Compare"),
    );
    for (const side of ["a", "b"]) this.#draw(side);
  }

  async #load(query) {
    const { runs } = await this.source.runs({ limit: LOADED, sort: "-started", replays: "true", ...query });
    for (const one of runs) this.known.set(one.id, one);
    return runs;
  }

  #list(side, label) {
    const rows = h("div", { class: "picker-rows", role: "radiogroup", "aria-label": label });
    const field = h("input", {
      type: "search",
      placeholder: "Search by name, id or text",
      "aria-label": `Search for the ${label.toLowerCase()}`,
      oninput: () => this.#typed(side),
    });
    return { rows, field, found: null, node: h("fieldset", {}, h("legend", {}, label), field, rows) };
  }

  #typed(side) {
    const list = this.lists[side];
    list.found = null;
    this.#draw(side);
    clearTimeout(list.timer);
    const wanted = list.field.value.trim();
    if (!wanted) return;
    list.timer = setTimeout(async () => {
      const found = await this.#load({ q: wanted }).catch(() => []);
      if (list.field.value.trim() !== wanted) return;
      list.found = new Set(found.map((one) => one.id));
      this.#draw(side);
    }, PAUSE);
  }

  #draw(side) {
    const { rows, field, found } = this.lists[side];
    const wanted = field.value.trim().toLowerCase();
    const now = Date.now();
    const fits = [...this.known.values()].filter(
      (one) => !wanted || found?.has(one.id) || `${one.name} ${one.id}`.toLowerCase().includes(wanted),
    );
    fits.sort((one, other) => (one.id < other.id ? 1 : -1));
    const shown = fits.slice(0, SHOWN);
    const chosen = this.known.get(this.chosen[side]);
    if (chosen && !wanted && !shown.includes(chosen)) shown.push(chosen);
    // A search chooses its first hit: what is chosen is always in view.
    if (shown.length && !shown.includes(chosen)) this.chosen[side] = shown[0].id;
    fill(
      rows,
      shown.map((one) => this.#row(side, one, now)),
      shown.length ? null : h("p", { class: "quiet" }, "No run matches."),
      fits.length > SHOWN ? h("p", { class: "quiet small" }, `${fits.length - SHOWN} more: search for them.`) : null,
    );
  }

  #row(side, one, now) {
    return h(
      "label",
      { class: "picker-row" },
      h("input", {
        type: "radio",
        name: side,
        value: one.id,
        checked: one.id === this.chosen[side],
        onchange: () => {
          this.chosen[side] = one.id;
        },
      }),
      h(
        "span",
        { class: "picker-name" },
        h("strong", {}, one.name || one.id),
        h("span", { class: "quiet small" }, `${one.id} · ${age(one.started_at, now)}`),
      ),
      statusBadge(one),
    );
  }

  #submit(event) {
    event.preventDefault();
    if (this.chosen.a && this.chosen.b) this.done(this.chosen.a, this.chosen.b);
  }
}
