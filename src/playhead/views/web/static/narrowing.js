// Narrows the rows of a run: failures only, or one lane, model or tool. Knows the model.

import { h } from "./dom.js";
import { count } from "./format.js";

const MOST = 200;

export class Narrowing {
  // `changed()` is called when a person has chosen something else.
  constructor({ changed }) {
    this.changed = changed;
    this.failed = false;
    this.choice = "";
    this.select = h("select", {
      class: "narrow",
      "aria-label": "Lane, model or tool",
      onchange: () => {
        this.choice = this.select.value;
        this.changed();
      },
    });
  }

  // The controls, as far as the run gives something to choose from.
  controls(model) {
    const failures = model.outline.failures?.length ?? 0;
    const failed = h(
      "button",
      {
        type: "button",
        class: this.failed ? "chip on" : "chip",
        "aria-pressed": String(this.failed),
        onclick: () => {
          this.failed = !this.failed;
          this.changed();
        },
      },
      `Failed ${count(failures)}`,
    );
    const groups = choices(model);
    const isNeeded = groups.some(([, names]) => names.length > 1);
    this.select.replaceChildren(
      h("option", { value: "" }, "Everything"),
      ...groups
        .filter(([, names]) => names.length)
        .map(([kind, names]) =>
          h(
            "optgroup",
            { label: `${kind[0].toUpperCase()}${kind.slice(1)}s` },
            names.slice(0, MOST).map((name) => h("option", { value: `${kind}:${name}` }, name)),
          ),
        ),
    );
    this.select.value = this.choice;
    return [failures || this.failed ? failed : null, isNeeded ? this.select : null];
  }

  // The rows that match, with the rows above them; null: all.
  rows(model) {
    if (!this.failed && !this.choice) return null;
    const failures = new Set((model.outline.failures ?? []).map((ref) => model.row(ref)));
    const cut = this.choice.indexOf(":");
    const [kind, name] = [this.choice.slice(0, cut), this.choice.slice(cut + 1)];
    const found = new Set();
    for (let row = 0; row < model.count; row++) {
      if (this.failed && !failures.has(model.main(row))) continue;
      if (this.choice && !matches(model, row, kind, name)) continue;
      for (let at = row; at >= 0 && !found.has(at); at = model.above[at]) found.add(at);
    }
    return found;
  }
}

function matches(model, row, kind, name) {
  if (kind === "lane") return model.lanes[model.lane[row]] === name;
  return model.groupOf(row) === (kind === "model" ? "llm" : "tool") && model.text("name", row) === name;
}

function choices(model) {
  const names = { lane: new Set(), model: new Set(), tool: new Set() };
  for (let row = 0; row < model.count; row++) {
    const group = model.groupOf(row);
    if (group !== "hook" && group !== "output") names.lane.add(model.lanes[model.lane[row]]);
    if (group === "llm") names.model.add(model.text("name", row));
    if (group === "tool") names.tool.add(model.text("name", row));
  }
  if (names.lane.size < 2) names.lane.clear();
  return Object.entries(names).map(([kind, found]) => [kind, [...found].sort()]);
}
