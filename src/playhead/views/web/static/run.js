// The page of one run: its figures, its timeline, its conversation, one step in full. Puts the parts
// together; each of them knows its own.

import { announce, button, fill, h, icon } from "./dom.js";
import { count } from "./format.js";
import { Detail } from "./detail.js";
import { divider } from "./divider.js";
import { FilesView } from "./files.js";
import { Follower } from "./following.js";
import { GROUPS, RunModel } from "./model.js";
import { Narrowing } from "./narrowing.js";
import { Player } from "./player.js";
import { Printed } from "./printed.js";
import { Comments } from "./comments.js";
import { runHead } from "./runhead.js";
import { patiently } from "./source.js";
import { Timeline } from "./timeline.js";
import { Transport } from "./transport.js";
import { Tree } from "./tree.js";

// Number of events for the first screen: they are read in a tenth of a second.
const FIRST = 4000;

export class RunPage {
  constructor({ source, id, ref, address }) {
    this.source = source;
    this.id = id;
    this.ref = ref;
    this.address = address;
    // Read now: choosing a step changes the address.
    this.wanted = address.query();
    this.node = h("main", { class: "run", id: "main" });
    this.tree = new Tree({ chosen: (row) => this.choose(row) });
    this.found = null;
    this.narrowing = new Narrowing({
      changed: () => {
        this.#filters();
        this.#narrow();
      },
    });
    this.printed = new Printed();
    this.player = new Player({
      moved: (now, playing) => this.#moved(now, playing),
      changed: () => this.#transport(),
    });
    this.transport = new Transport(this.player, { compact: () => this.#compact() });
    this.timeline = new Timeline({
      sought: (at) => this.#seek(at),
      chosen: (row) => this.choose(row, { scroll: "middle" }),
    });
    this.detail = new Detail({
      source,
      choose: (row) => this.choose(row, { scroll: "middle" }),
      linkTo: (at) => address.link(id, this.model.addressOf(this.model.row(at))),
    });
    this.files = new FilesView({
      source,
      id,
      sought: (at) => this.#seek(at),
      opened: (row) => {
        this.#show("steps");
        this.choose(row, { scroll: "middle" });
      },
      changed: () => this.#keepAddress(),
    });
    this.detail.node.addEventListener("leave", () => this.node.classList.remove("has-choice"));
    // Keep the selection of a reader who has moved on when the rest of the run arrives.
    for (const one of ["pointerdown", "wheel", "keydown"])
      this.node.addEventListener(one, () => (this.isTouched = true), { passive: true });
  }

  async open() {
    fill(this.node, h("p", { class: "loading", role: "status" }, "Reading the tape…"));
    const { model, partial } = await this.source.run(this.id, FIRST);
    // Another page has the title and the address by now.
    if (this.isOver) return;
    this.model = new RunModel(model, partial);
    document.title = `${this.model.run.name || this.model.run.id} · Playhead`;
    this.#frame();
    this.#load();
    this.player.now = this.model.total;
    this.timeline.set({ now: this.model.total });
    this.#transport();
    this.#start();
    this.search.value = new URLSearchParams(location.search).get("q") ?? "";
    if (this.search.value) this.#search();
    this.node.dataset.ready = "true";
    if (this.model.partial) this.#rest();
    else this.#settle();
  }

  // The beginning is on the screen; the rest comes when the server has read it.
  async #rest() {
    try {
      const told = await patiently(() => this.source.run(this.id));
      if (this.isOver) return;
      this.#redraw(told);
    } catch (error) {
      fill(this.reading, h("span", {}, `Only the beginning can be shown: ${error.message}`));
      this.reading.classList.add("stopped");
      return;
    }
    if (!this.isTouched) this.#start();
    this.#settle();
  }

  // All of the run is here, as far as it has come.
  #settle() {
    if (this.model.run.status === "running" && this.source.follow) this.#follow();
    if (this.follows) this.#newest();
    this.node.dataset.whole = "true";
    this.#loadFiles().then(() => this.#restore());
    performance.mark("playhead-whole");
  }

  // The files come after the conversation: reading them must not keep the page waiting.
  async #loadFiles() {
    if (!this.model.outline.file_events) return;
    try {
      await this.files.load(this.model);
    } catch (error) {
      announce(`The files of this run cannot be shown: ${error.message}`);
      return;
    }
    if (this.isOver) return;
    this.detail.setFiles(this.files.model);
    this.#placeFiles();
    this.#tabs();
  }

  // An address may name the Files view, one of its changes and a file.
  #restore() {
    const { wanted } = this;
    if (wanted.get("view") !== "files" || !this.files.model || this.isTouched || this.isOver) return;
    this.files.restore({ change: wanted.get("change"), file: wanted.get("file") });
    this.#show("files");
  }

  #placeFiles() {
    const row = this.tree.selected;
    if (row < 0 || this.player.playing) this.files.setNow(this.player.now);
    else this.files.setStep(this.model.refs[this.model.main(row)], this.model.end(row));
  }

  // The tabs "Steps" and "Files".
  #tabs() {
    const { model } = this.files;
    this.views.hidden = !model?.last;
    if (this.views.hidden) return;
    const tabs = [
      ["steps", "Steps", this.model.totals.calls],
      ["files", "Files", model.files.size],
    ];
    fill(
      this.views,
      tabs.map(([name, label, number]) => {
        const isOpen = name === this.view;
        return h(
          "button",
          {
            type: "button",
            role: "tab",
            id: `view-${name}`,
            class: isOpen ? "tab active" : "tab",
            "aria-selected": String(isOpen),
            onclick: () => this.#show(name),
          },
          label,
          h("span", { class: "badge" }, count(number)),
        );
      }),
    );
  }

  #show(name) {
    if (!this.files.model?.last) return;
    this.view = name;
    const isFiles = name === "files";
    this.panes.hidden = isFiles;
    this.files.node.hidden = !isFiles;
    this.node.classList.toggle("shows-files", isFiles);
    // On a phone the details cover the page: only a choice in the list opens them.
    this.node.classList.remove("has-choice");
    this.#tabs();
    if (isFiles) this.files.open();
    this.#keepAddress();
  }

  #keepAddress() {
    const row = this.tree.selected;
    const query = this.view === "files" ? { view: "files", ...this.files.address } : {};
    this.address.replace(this.id, row < 0 ? null : this.model.addressOf(row), query);
  }

  #start() {
    const row = this.ref ? this.model.rowAt(this.ref) : -1;
    if (row >= 0) this.choose(row, { scroll: "middle" });
    else if (!this.ref) this.#begin();
    else if (!this.model.partial) announce("This run has no such step.");
  }

  // The first selection: the failure, else the first prompt or answer.
  #begin() {
    if (window.innerWidth <= 760 || this.model.run.status === "running") return;
    const turn = this.model.outline.failed_turn;
    const failed =
      this.model.run.status === "ok" ? -1 : turn ? this.model.row(turn) : this.model.nextFailure();
    const row =
      failed >= 0
        ? failed
        : (this.model.order.find((one) => this.model.groupOf(one) === "llm") ??
          this.model.order.find((one) => this.tree.isShown(one)) ??
          -1);
    this.choose(row, { scroll: "middle", address: false });
  }

  #frame() {
    this.head = h("header", { class: "run-head" });
    this.comments = new Comments(this.source, this.id);
    this.reading = h("p", { class: "reading", role: "status", hidden: true });
    this.search = h("input", {
      type: "search",
      placeholder: "Search in this run",
      "aria-label": "Search in this run",
      oninput: () => this.#search(),
      onkeydown: (event) => this.#searchKey(event),
    });
    this.hits = h("span", { class: "hits quiet", role: "status" });
    this.chips = h("div", { class: "filters", role: "group", "aria-label": "What is shown" });
    const left = h(
      "section",
      { class: "steps", "aria-label": "Steps" },
      h(
        "div",
        { class: "steps-bar" },
        h("label", { class: "search" }, icon("search"), this.search),
        this.hits,
        this.chips,
      ),
      this.tree.node,
      this.printed.node,
    );
    this.view = "steps";
    this.views = h("div", { class: "tabs run-tabs", role: "tablist", "aria-label": "Views of this run", hidden: true });
    this.panes = h("div", { class: "panes" }, left, divider(this.node), this.detail.node);
    fill(
      this.node,
      this.head,
      this.reading,
      this.timeline.node,
      this.transport.node,
      this.views,
      this.panes,
      this.files.node,
    );
  }

  #load() {
    this.#header();
    this.tree.show(this.model);
    this.printed.show(this.model.outline.printed);
    this.player.load(this.model);
    this.timeline.show(this.model);
    this.#filters();
  }

  #header() {
    fill(
      this.head,
      runHead(this.model, this.source, {
        choose: (row) => this.choose(row, { scroll: "middle" }),
        failure: () => this.#failure(),
      }),
      this.comments.node,
    );
    const { partial } = this.model;
    this.reading.hidden = !partial;
    if (partial) fill(this.reading, h("span", {}, beginning(partial)));
  }

  #transport() {
    this.node.classList.toggle("is-playing", this.player.playing);
    this.transport.changed(this.model);
  }

  #moved(now, byPlaying) {
    this.timeline.set({ now, until: now });
    this.tree.setNow(now);
    this.printed.setNow(now);
    this.transport.moved(this.model, now);
    const current = this.model.current(
      now,
      (row) => this.tree.isShown(row) && this.model.groupOf(row) !== "seam",
    );
    if (current >= 0 && current !== this.tree.selected) {
      this.tree.select(current);
      this.timeline.set({ selected: this.model.main(current) });
      this.#detail(current);
    }
    this.files.setNow(now);
    if (byPlaying) this.detail.playing(now);
    else if (this.view === "files") this.#keepAddress();
  }

  #seek(at) {
    this.player.seek(at);
  }

  // Hides the head and the timeline, so that the steps have the room.
  #compact() {
    const isCompact = this.node.classList.toggle("compact");
    this.transport.compacted(isCompact);
  }

  #detail(row) {
    if (this.view === "steps") this.node.classList.add("has-choice");
    return this.detail.show(this.model, row);
  }

  choose(row, { scroll = "near", address = true } = {}) {
    if (row < 0) return;
    this.follows = false;
    this.player.pause();
    this.tree.setNow(Infinity);
    this.printed.setNow(Infinity);
    this.tree.select(row, { scroll });
    this.timeline.set({ selected: this.model.main(row), now: this.model.at[row], until: Infinity });
    this.player.now = this.model.at[row];
    this.transport.moved(this.model, this.player.now, this.model.end(row));
    this.#detail(row);
    this.files.setStep(this.model.refs[this.model.main(row)], this.model.end(row));
    if (address) this.#keepAddress();
  }

  #failure() {
    const row = this.model.nextFailure(this.tree.selected);
    const error = this.model.outline.failure;
    if (row < 0)
      announce(
        error
          ? `No step failed. The program ended with ${error.type}: ${error.message}`
          : "Nothing failed in this run.",
      );
    else this.choose(row, { scroll: "middle" });
  }

  #filters() {
    const there = new Set(Array.from(this.model.group, (one) => this.model.groupNames[one]));
    fill(
      this.chips,
      GROUPS.filter(([name]) => there.has(name)).map(([name, label]) => {
        const isShown = !this.tree.hidden.has(name);
        return h(
          "button",
          {
            type: "button",
            class: isShown ? "chip on" : "chip",
            "aria-pressed": String(isShown),
            onclick: () => this.#toggleGroup(name),
          },
          h("span", { class: `mark mark-${name}` }),
          label,
        );
      }),
      ...this.narrowing.controls(this.model),
      button(
        "Fold or unfold all",
        { class: "chip", onclick: () => this.#foldAll() },
        this.isFolded ? "Unfold" : "Fold",
      ),
      this.#printedChip(),
    );
  }

  #foldAll() {
    this.isFolded = !this.isFolded;
    this.tree.foldAll(this.isFolded);
    this.#filters();
  }

  #printedChip() {
    if (!this.model.outline.printed.length) return null;
    const isOpen = !this.printed.node.hidden;
    const toggle = () => {
      this.printed.node.hidden = isOpen;
      this.tree.node.hidden = !isOpen;
      this.#filters();
    };
    return h(
      "button",
      { type: "button", class: isOpen ? "chip on" : "chip", "aria-pressed": String(isOpen), onclick: toggle },
      "Terminal",
    );
  }

  #toggleGroup(name) {
    const hidden = new Set(this.tree.hidden);
    if (!hidden.delete(name)) hidden.add(name);
    this.tree.hide(hidden);
    this.#filters();
  }

  // Searches the rows at once and, after a short delay, the whole tape. While the run grows this is called for the
  // same text again and again: hits in texts stay, and a search that is due is not put off.
  #search() {
    const text = this.search.value;
    if (this.inTexts?.text !== text) {
      clearTimeout(this.later);
      this.later = null;
      this.inTexts = { text, refs: [] };
    }
    this.#find();
    if (text.trim().length > 1) this.later ??= setTimeout(() => this.#searchAll(text), 350);
  }

  async #searchAll(text) {
    this.later = null;
    try {
      const refs = await this.source.find(this.id, text);
      if (this.inTexts.text !== text) return;
      this.inTexts.refs = refs;
      this.#find();
    } catch {
      if (this.inTexts.text === text) announce("Only titles were searched: the texts are not available.");
    }
  }

  #find() {
    const { text, refs } = this.inTexts;
    const inTexts = refs.map((ref) => this.model.row(ref)).filter((row) => row >= 0);
    this.found = text.trim() ? new Set([...this.model.find(text), ...inTexts]) : null;
    this.#narrow();
  }

  // Shows the rows that were found and that the controls leave.
  #narrow() {
    const left = this.narrowing.rows(this.model);
    const { found } = this;
    const rows = left && found ? new Set([...found].filter((row) => left.has(row))) : (found ?? left);
    this.tree.filter(rows, this.search.value);
    fill(this.hits, rows ? count(this.tree.rows.length) : "");
  }

  #searchKey(event) {
    if (event.key === "Escape") {
      this.search.value = "";
      this.#search();
      this.tree.node.focus();
    } else if (event.key === "Enter" || event.key === "ArrowDown") {
      this.tree.move(1);
      if (event.key === "ArrowDown") this.tree.node.focus();
    } else return;
    event.preventDefault();
  }

  #follow() {
    this.follows = this.tree.selected < 0;
    this.follower = new Follower(() => this.#grow());
    this.follower.start(this.source, this.model);
  }

  // Until a person chooses a step, the newest is shown as it comes.
  #newest() {
    if (window.innerWidth <= 760) return;
    const row = this.model.current(Infinity, (one) => this.tree.isShown(one) && this.model.number[one] > 0);
    if (row < 0) return;
    this.tree.select(row);
    this.timeline.set({ selected: row });
    this.#detail(row);
  }

  async #grow() {
    const told = await this.source.run(this.id);
    if (!this.isOver) this.#redraw(told);
    return this.model;
  }

  // The same run, of which there is more.
  #redraw({ model }) {
    const atEnd = this.player.now >= this.model.total - 1 || this.tree.selected < 0;
    const list = this.tree.node;
    const atBottom = list.scrollTop + list.clientHeight >= list.scrollHeight - 60;
    this.model = new RunModel(model);
    this.#header();
    this.player.load(this.model);
    this.tree.grow(this.model);
    this.printed.show(this.model.outline.printed);
    this.timeline.show(this.model);
    this.#filters();
    if (atEnd && !this.player.playing) this.player.now = this.model.total;
    this.timeline.set({
      now: this.player.now,
      selected: this.tree.selected < 0 ? -1 : this.model.main(this.tree.selected),
    });
    this.#transport();
    if (this.follows) this.#newest();
    else if (this.tree.selected >= 0) this.detail.show(this.model, this.tree.selected);
    if (atBottom) list.scrollTop = list.scrollHeight;
    if (this.search.value) this.#search();
    else this.#narrow();
    if (this.files.model || this.model.outline.file_events) this.#loadFiles();
  }

  key(event) {
    const { player } = this;
    this.isTouched = true;
    if (this.view === "files" && this.files.key(event)) return true;
    const keys = {
      " ": () => player.toggle(),
      f: () => this.#failure(),
      h: () => this.#compact(),
      d: () => this.#show(this.view === "files" ? "steps" : "files"),
      "/": () => {
        this.#show("steps");
        this.search.focus();
      },
      "+": () => this.timeline.zoom(0.5),
      "=": () => this.timeline.zoom(0.5),
      "-": () => this.timeline.zoom(2),
      0: () => this.timeline.fit(),
      ">": () => player.faster(1),
      "<": () => player.faster(-1),
      ArrowDown: () => this.tree.move(1),
      ArrowUp: () => this.tree.move(-1),
      j: () => this.tree.move(1),
      k: () => this.tree.move(-1),
      ArrowLeft: () => this.#seek(player.now - this.model.total / 100),
      ArrowRight: () => this.#seek(player.now + this.model.total / 100),
      Home: () => this.#seek(0),
      End: () => this.#seek(this.model.total),
      Escape: () => (this.view === "files" ? this.#show("steps") : this.node.classList.remove("has-choice")),
    };
    if (!(event.key in keys)) return false;
    keys[event.key]();
    return true;
  }

  // The address names another step of the same run, which may not be loaded yet.
  goto(ref) {
    this.ref = ref;
    const row = ref ? (this.model?.rowAt(ref) ?? -1) : -1;
    if (row >= 0 && row !== this.tree.selected) this.choose(row, { scroll: "middle", address: false });
  }

  recolour() {
    this.timeline.recolour();
  }

  end() {
    this.isOver = true;
    this.player.pause();
    this.follower?.stop();
    this.tree.end();
    this.files.end();
    this.timeline.end();
  }
}

function beginning({ events, of }) {
  const all = of > events ? ` of ${count(of)}` : "";
  return `Reading the tape: here are its first ${count(events)}${all} events, the rest follows…`;
}
