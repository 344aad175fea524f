// The pane that shows one item in full: tabs, causes, copies. Knows the source and the model.

import { announce, button, copyText, fill, h, icon } from "./dom.js";
import { count, duration, money, position } from "./format.js";
import { contextView } from "./context.js";
import { diffView } from "./diff.js";
import { stepFiles } from "./files.js";
import { failureBox, promptText, rendered } from "./rendered.js";
import { forms } from "./copying.js";
import { Latest } from "./latest.js";
import { markdown } from "./markdown.js";
import { streamView } from "./stream.js";

const MOST_RAW = 400_000;

export class Detail {
  constructor({ source, choose, linkTo }) {
    this.source = source;
    this.choose = choose;
    this.linkTo = linkTo;
    this.tab = "rendered";
    this.row = -1;
    this.wanted = null;
    this.drawing = new Latest();
    this.node = h("section", { class: "detail", "aria-label": "Details" });
    this.empty();
  }

  empty() {
    fill(
      this.node,
      h(
        "div",
        { class: "detail-empty" },
        h("p", {}, "Choose a step to see its request and its answer."),
        h(
          "p",
          { class: "quiet" },
          "↑ ↓ move · space plays · f goes to the first failure · / searches · ? shows all keys",
        ),
      ),
    );
  }

  async show(model, row) {
    const main = model.main(row);
    const ref = model.refs[main];
    // A step that is over stays as it is drawn while its run grows.
    const isSame = ref === this.wanted && !this.wasOpen;
    Object.assign(this, { wanted: ref, wasOpen: model.inFlight(main) || model.partial !== null });
    // The run may grow until the answer is there: then the item is drawn with the newer model.
    this.place = { model, row: main };
    if (isSame) {
      if (this.item?.ref === ref) Object.assign(this, this.place);
      return;
    }
    const isLatest = this.drawing.begin();
    try {
      // Items of a partly loaded run have no price yet.
      const stamp = this.wasOpen ? String(model.totals.events) : "";
      const item = await this.source.detail(model.run.id, ref, main, stamp);
      if (!isLatest()) return;
      if (item === null) throw new Error("this file does not contain it.");
      Object.assign(this, this.place, { item, partial: false });
      this.#draw();
    } catch (error) {
      if (isLatest())
        fill(
          this.node,
          h(
            "div",
            { class: "detail-empty" },
            h("p", { class: "bad" }, `This step cannot be shown: ${error.message}`),
          ),
        );
    }
  }

  // The files of the run are known from now on.
  setFiles(model) {
    this.files = model;
    if (this.item && this.#changes().length && this.body?.isConnected) this.#draw();
  }

  #changes() {
    return this.files?.ofCall(this.item.ref) ?? [];
  }

  #tabs() {
    const { item } = this;
    const tabs = [["rendered", "Rendered"]];
    const changes = this.#changes();
    if (changes.length) tabs.push(["files", `Files ${count(changes.length)}`]);
    if (item.llm?.length && this.model.previousLlm(this.row) >= 0) tabs.push(["diff", "Prompt diff"]);
    if (item.pieces?.length) tabs.push(["stream", `Stream ${count(item.pieces.length)}`]);
    tabs.push(["context", "Why & context"], ["raw", "Raw"]);
    return tabs;
  }

  #draw() {
    const tabs = this.#tabs();
    const active = tabs.some(([name]) => name === this.tab) ? this.tab : "rendered";
    this.body = h("div", {
      class: "detail-body",
      role: "tabpanel",
      id: "detail-panel",
      tabindex: 0,
      "aria-labelledby": `tab-${active}`,
    });
    const bar = h(
      "div",
      { class: "tabs", role: "tablist", "aria-label": "Views of this step" },
      tabs.map(([name, label]) =>
        h(
          "button",
          {
            type: "button",
            role: "tab",
            id: `tab-${name}`,
            "aria-selected": String(name === active),
            "aria-controls": "detail-panel",
            tabindex: name === active ? 0 : -1,
            class: name === active ? "tab active" : "tab",
            onclick: () => this.#open(name),
            onkeydown: (event) => this.#tabKey(event, tabs, name),
          },
          label,
        ),
      ),
    );
    fill(this.node, this.#head(), bar, this.body);
    this.#body(active);
  }

  #open(name) {
    this.tab = name;
    this.#draw();
  }

  #tabKey(event, tabs, name) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const at = tabs.findIndex(([one]) => one === name);
    this.#open(tabs[(at + by + tabs.length) % tabs.length][0]);
    this.node.querySelector("[role=tab][aria-selected=true]").focus();
    event.preventDefault();
    event.stopPropagation();
  }

  #head() {
    const { item, model, row } = this;
    const title = item.type === "turn" ? `turn ${item.name}` : model.text("name", row);
    const figures = [`at ${position(model.at[row], model.total)}`];
    if (item.took_ns !== undefined)
      figures.push(item.how === null ? "in flight" : duration((item.took_ns ?? 0) / 1000));
    if (model.came[row] || model.went[row])
      figures.push(`${count(model.came[row])} → ${count(model.went[row])} tokens`);
    if (item.cost_usd) figures.push(money(item.cost_usd));
    const number = item.number ? h("span", { class: "quiet" }, `#${item.number} `) : null;
    const kind = item.boundary ?? (item.type === "event" ? item.kind : item.type);
    return h(
      "header",
      { class: "detail-head" },
      h(
        "div",
        { class: "detail-title" },
        button(
          "Back to the list",
          {
            class: "ghost back",
            onclick: () => this.node.dispatchEvent(new CustomEvent("leave", { bubbles: true })),
          },
          icon("back"),
        ),
        h("span", { class: `mark mark-${model.groupOf(row)}` }),
        h("h2", {}, number, title),
        h("span", { class: "kind-tag" }, kind),
      ),
      h(
        "div",
        { class: "detail-figures" },
        figures.map((one) => h("span", {}, one)),
      ),
      this.#causes(),
      this.#actions(),
      failureBox(item.failure),
    );
  }

  #causes() {
    const chain = this.model.causes(this.row).slice(0, 3);
    if (!chain.length) return null;
    const model = this.model;
    return h(
      "div",
      { class: "crumbs" },
      h("span", { class: "quiet" }, "because"),
      chain.map((one, at) => [
        at ? h("span", { class: "quiet" }, "←") : null,
        h(
          "button",
          {
            type: "button",
            class: "crumb",
            title: `${one.word} ${model.text("name", one.row)}`,
            onclick: () => this.choose(one.row),
          },
          h("span", { class: `mark mark-${model.groupOf(one.row)}` }),
          model.text("name", one.row) || "turn",
        ),
      ]),
    );
  }

  #actions() {
    const copy = (name, text) => async () => {
      await copyText(text());
      announce(`Copied as ${name}.`);
    };
    return h(
      "div",
      { class: "actions", role: "group", "aria-label": "Copy" },
      h("span", { class: "quiet" }, "copy as"),
      forms(this.item).map(([name, text]) =>
        h("button", { type: "button", class: "chip", onclick: copy(name, text) }, name),
      ),
      h(
        "button",
        {
          type: "button",
          class: "chip",
          onclick: copy("link", () => this.linkTo(this.model.refs[this.row])),
        },
        "link",
      ),
    );
  }

  async #body(active) {
    const { item, body, model, row } = this;
    if (active === "rendered") fill(body, this.#whole(item));
    else if (active === "files") fill(body, stepFiles(this.source, model.run.id, this.#changes()));
    else if (active === "stream") fill(body, streamView(item));
    else if (active === "context") fill(body, contextView(item, model, row, this.choose));
    else if (active === "raw") fill(body, raw(item));
    else await this.#diff(body, item, model, row);
  }

  #whole(item) {
    const { level } = this.model.run;
    const shown = [rendered(item)].flat().filter((one) => one !== null);
    if (level !== "full")
      shown.unshift(
        h("p", { class: "odd" }, `Recorded at level ${level}: its contents are not on the tape.`),
      );
    return shown.length ? shown : h("p", { class: "quiet" }, "This step has no input and no result.");
  }

  async #diff(body, item, model, row) {
    const before = model.previousLlm(row);
    fill(body, h("p", { class: "quiet" }, "Reading the previous prompt…"));
    const old = await this.source.detail(model.run.id, model.refs[before], before);
    if (this.body !== body) return;
    fill(
      body,
      h(
        "p",
        { class: "quiet" },
        "Compared with the prompt of ",
        h(
          "button",
          { type: "button", class: "link", onclick: () => this.choose(before) },
          `#${model.number[before]} ${model.text("name", before)}`,
        ),
        ".",
      ),
      diffView(promptText(old), promptText(item)),
    );
  }

  // While the tape plays: the answer as far as it had come at this moment.
  playing(now) {
    const { item, model, row } = this;
    if (!item?.speech?.length || this.tab !== "rendered" || !this.body?.isConnected) return;
    const place = this.body.querySelector(".answer");
    if (!place) return;
    const since = (now - model.at[row]) * 1000;
    const isWhole = since >= item.speech.at(-1)[0] || since < 0;
    if (isWhole && !this.partial) return;
    this.partial = !isWhole;
    if (isWhole) {
      this.#draw();
      return;
    }
    const told = item.speech
      .filter(([at, , thought]) => at <= since && !thought)
      .reduce((sum, [, length]) => sum + length, 0);
    const text = item.llm[0].response.parts
      .filter((part) => part.type === "text")
      .map((part) => part.text)
      .join("");
    fill(
      place,
      h(
        "div",
        { class: "message role-assistant speaking" },
        h("div", { class: "message-body" }, markdown(text.slice(0, told)), h("span", { class: "caret" })),
      ),
    );
  }
}

function raw(item) {
  const text = JSON.stringify(item, null, 2);
  const shown = h("pre", { class: "raw" }, text.slice(0, MOST_RAW));
  if (text.length <= MOST_RAW) return shown;
  const more = button(`${count(text.length - MOST_RAW)} more characters`, {
    class: "link",
    onclick: () => {
      fill(shown, text);
      more.remove();
    },
  });
  return [shown, more];
}
