// The Files view of a run: a slider over the steps that changed files, a tree of the files as of that step, and
// one file as a diff. Knows the source and the model; follows the playhead of the page.

import { button, fill, h, icon } from "./dom.js";
import { count, plural, position } from "./format.js";
import { fileDiff, wholeFile } from "./filediff.js";
import { FileModel, treeRows } from "./filemodel.js";
import { Latest } from "./latest.js";
import { VirtualList } from "./list.js";

const ROW = 28;
const STEP = 16;
const MOST_TICKS = 200;
const LETTERS = { added: "A", deleted: "D", modified: "M", mode: "m", restored: "=" };
const WORDS = {
  added: "added",
  deleted: "deleted",
  modified: "changed",
  mode: "mode changed",
  restored: "as at the start",
};
const VIEWS = [
  ["step", "This step"],
  ["start", "Since start"],
  ["whole", "Whole file"],
];

export class FilesView {
  // `sought(us)`: a person moves the playhead. `opened(row)`: a person wants to see a step in the conversation.
  // `changed()`: another file is shown.
  constructor({ source, id, sought, opened, changed }) {
    Object.assign(this, { source, id, sought, opened, changed });
    this.position = 0;
    this.chosen = null;
    this.view = "step";
    this.drawing = new Latest();
    Object.assign(this, { loads: 0, loaded: 0 });
    this.shut = new Set();
    this.rows = [];
    this.list = new VirtualList({ height: ROW, draw: (at) => this.#row(at), role: "tree", label: "Changed files" });
    this.list.node.classList.add("file-tree");
    this.list.node.addEventListener("click", (event) => this.#click(event));
    this.list.node.addEventListener("keydown", (event) => this.#treeKey(event));
    this.#frame();
  }

  #frame() {
    this.slider = h("input", {
      type: "range",
      min: 0,
      max: 0,
      step: 1,
      class: "scrubber",
      "aria-label": "Step that changed files",
      oninput: () => this.#seek(Number(this.slider.value)),
      onkeydown: (event) => this.#sliderKey(event),
    });
    this.ticks = h("div", { class: "ticks", "aria-hidden": "true" });
    this.place = h("span", { class: "clock" });
    this.title = h("div", { class: "file-step" });
    this.choice = h("div", { class: "choice", role: "group", "aria-label": "What the file is compared with" });
    this.head = h("header", { class: "file-head" });
    this.body = h("div", { class: "file-body" });
    this.note = h("p", { class: "quiet file-summary", role: "status" });
    this.node = h(
      "section",
      { class: "files", "aria-label": "Files", hidden: true },
      h(
        "div",
        { class: "files-bar" },
        button("Previous change (←)", { class: "ghost", onclick: () => this.move(-1) }, icon("back")),
        h("div", { class: "slider" }, this.slider, this.ticks),
        button("Next change (→)", { class: "ghost", onclick: () => this.move(1) }, icon("next")),
        this.place,
      ),
      this.title,
      h(
        "div",
        { class: "file-panes" },
        h("div", { class: "file-list" }, this.list.node, this.note),
        h("div", { class: "file-shown" }, this.head, this.body),
      ),
    );
  }

  // Loads the changes of a run, and again while it grows. An answer is older than the screen only if a later one
  // is on it: the first answer must be shown even if the run has grown since it was asked for.
  async load(run) {
    this.run = run;
    const turn = ++this.loads;
    const told = await this.source.files(this.id, String(run.totals.events));
    if (turn < this.loaded) return;
    this.loaded = turn;
    this.model = new FileModel(told);
    this.slider.max = String(this.model.last);
    const { steps } = this.model;
    const shown = steps.length > MOST_TICKS ? [] : [...steps.keys()];
    fill(
      this.ticks,
      shown.map((at) => {
        const tick = h("i", { class: steps[at].between_calls ? "own" : "" });
        tick.style.left = `${((at + 1) / steps.length) * 100}%`;
        return tick;
      }),
    );
    this.#summary();
  }

  #summary() {
    const { form, files } = this.model;
    const left = form.workspaces.reduce((sum, one) => sum + (one.left_out_count ?? 0), 0);
    fill(
      this.note,
      [
        plural(files.size, "changed path"),
        left ? `${count(left)} left out of the snapshot` : "",
        form.gaps ? `${plural(form.gaps, "change")} not recorded` : "",
        form.changes_left_out ? `${plural(form.changes_left_out, "change")} not listed` : "",
        form.versions_left_out ? `${plural(form.versions_left_out, "version")} not in this page` : "",
      ]
        .filter(Boolean)
        .join(" · "),
    );
  }

  // Draws the view when it becomes visible. The start has nothing to show: then the first change is shown.
  open() {
    if (this.position === 0 && this.model.last) this.move(1);
    else this.draw();
  }

  // What an address says about this view, and the way back.
  get address() {
    const file = this.model.files.get(this.chosen);
    return { change: String(this.position), ...(file ? { file: file.path } : {}) };
  }
  restore({ change, file }) {
    const known = [...this.model.files.values()].find((one) => one.path === file);
    const position = Number.parseInt(change, 10);
    if (position >= 0 && position <= this.model.last) this.#seek(position);
    if (known) Object.assign(this, { chosen: known.key, isPinned: true });
  }

  // The playhead is at this moment, in microseconds.
  setNow(us) {
    if (this.model && !this.isSeeking) this.#goto(us >= this.run.total ? this.model.last : this.model.positionAt(us));
  }

  // A step was chosen: the files as they were when it had ended.
  setStep(ref, endUs) {
    if (!this.model) return;
    const own = this.model.positionOf(ref);
    this.#goto(own > 0 ? own : this.model.positionAt(endUs));
  }

  #goto(position) {
    const isDrawn = this.drawn === this.model;
    if (position === this.position && isDrawn) return;
    this.#place(position);
    if (!this.node.hidden) this.draw();
    else this.drawn = null;
  }

  // A file that a person chose stays chosen until the step changes.
  #place(position) {
    if (position !== this.position) this.isPinned = false;
    this.position = position;
  }

  #seek(position) {
    const step = this.model.step(position);
    this.#place(position);
    this.draw();
    // Two changes may have the same moment: the playhead that follows must not lead to the other one.
    this.isSeeking = true;
    this.sought(step === null ? 0 : step.at_us);
    this.isSeeking = false;
  }

  move(by) {
    const next = Math.min(this.model.last, Math.max(0, this.position + by));
    if (next !== this.position) this.#seek(next);
  }

  draw() {
    this.drawn = this.model;
    this.slider.value = String(this.position);
    for (const [at, tick] of [...this.ticks.children].entries()) tick.classList.toggle("past", at < this.position);
    fill(this.place, h("strong", {}, count(this.position)), ` / ${plural(this.model.last, "change")}`);
    this.#title();
    this.shown = this.model.at(this.position);
    this.#choose();
    this.#arrange();
    this.#file();
  }

  #title() {
    const step = this.model.step(this.position);
    const words = step === null ? "The files as the run found them." : null;
    this.slider.setAttribute("aria-valuetext", words ?? `step ${step.step}`);
    if (step === null) fill(this.title, h("span", { class: "quiet" }, words));
    else fill(this.title, this.#callers(step), this.#because(step), this.#facts(step));
  }

  #callers(step) {
    if (step.between_calls)
      return h(
        "span",
        { class: "name" },
        "The agent's own code",
        h("span", { class: "quiet" }, step.after === null ? " before the first call" : ` after #${step.after}`),
      );
    return step.call_refs.slice(0, 3).map((ref) => this.#link(ref));
  }

  #link(ref) {
    const row = this.run.row(ref);
    if (row < 0) return null;
    return h(
      "button",
      { type: "button", class: "crumb", title: "Show this step", onclick: () => this.opened(row) },
      h("span", { class: `mark mark-${this.run.groupOf(row)}` }),
      h("span", { class: "quiet" }, `#${this.run.number[row]}`),
      h("strong", {}, this.run.text("name", row)),
      h("span", { class: "brief quiet" }, this.run.text("brief", row)),
    );
  }

  #because(step) {
    if (step.llm_ref === null || step.between_calls) return null;
    return h("span", { class: "because" }, h("span", { class: "quiet" }, "asked for by"), this.#link(step.llm_ref));
  }

  #facts(step) {
    const facts = [`at ${position(Math.min(step.at_us, this.run.total), this.run.total)}`];
    if (step.calls.length > 1) facts.push(`shared by ${count(step.calls.length)} calls at once`);
    if (step.git_files) facts.push(`${plural(step.git_files, "file")} below .git`);
    if (step.changes_left_out) facts.push(`${plural(step.changes_left_out, "more change")} not listed`);
    if (step.gaps) facts.push(`${plural(step.gaps, "change")} not recorded`);
    return h("span", { class: "quiet step-facts" }, facts.join(" · "));
  }

  // Keeps the chosen file where it has something to show; else takes the first one of this step.
  #choose() {
    const now = this.shown.filter((one) => one.isNow);
    const kept = this.shown.find((one) => one.key === this.chosen);
    if (kept && (kept.isNow || this.isPinned || this.view !== "step" || !now.length)) return;
    this.chosen = (now.find((one) => one.change.added !== null) ?? now[0] ?? kept ?? this.shown[0])?.key ?? null;
  }

  #arrange() {
    const root = this.model.manyFolders ? (number) => this.model.root(number) : null;
    this.rows = treeRows(this.shown, this.shut, root);
    this.list.reset(this.rows.length);
    const at = this.rows.findIndex((one) => one.key === this.chosen);
    if (at >= 0) this.list.scrollTo(at);
  }

  #row(at) {
    const row = this.rows[at];
    const isChosen = row.key === this.chosen;
    const node = h("div", {
      class: `row file-row ${row.kind}`,
      role: "treeitem",
      id: `file-${at}`,
      "aria-level": row.depth + 1,
      "aria-expanded": row.kind === "folder" ? String(!row.isShut) : null,
      "aria-selected": String(isChosen),
      "data-at": at,
    });
    node.style.paddingLeft = `${8 + Math.min(row.depth, 12) * STEP}px`;
    if (isChosen) node.classList.add("selected");
    if (row.kind === "folder") {
      node.append(
        h("span", { class: row.isShut ? "twist folded" : "twist" }, icon("down")),
        h("span", { class: "name" }, flat(row.name)),
      );
      return node;
    }
    const { file } = row;
    if (file.isNow) node.classList.add("now");
    node.append(
      h("span", { class: `letter how-${file.how}`, title: WORDS[file.how] }, LETTERS[file.how]),
      h("span", { class: "name", title: flat(file.path) }, flat(row.name)),
      h("span", { class: "figures" }, file.isNow ? lineCounts(file.change) : null),
    );
    return node;
  }

  #click(event) {
    const node = event.target.closest(".row");
    if (!node) return;
    const row = this.rows[Number(node.dataset.at)];
    if (row.kind === "folder") {
      if (!this.shut.delete(row.key)) this.shut.add(row.key);
      this.#arrange();
    } else this.#open(row.key);
  }

  #open(key) {
    Object.assign(this, { chosen: key, isPinned: true });
    this.list.refresh();
    this.#file();
    this.changed();
  }

  // Moves to the file below or above.
  moveFile(by) {
    const files = this.rows.filter((one) => one.kind === "file");
    const at = files.findIndex((one) => one.key === this.chosen);
    const next = files[Math.min(files.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
    if (!next || next.key === this.chosen) return;
    this.#open(next.key);
    const place = this.rows.indexOf(next);
    this.list.scrollTo(place);
    this.list.node.setAttribute("aria-activedescendant", `file-${place}`);
  }

  #treeKey(event) {
    const by = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: this.list.page, PageUp: -this.list.page }[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    this.moveFile(by);
    event.preventDefault();
    event.stopPropagation();
  }

  #sliderKey(event) {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by) return;
    this.moveFile(by);
    event.preventDefault();
  }

  #choices() {
    fill(
      this.choice,
      VIEWS.map(([name, label]) =>
        h(
          "button",
          {
            type: "button",
            class: name === this.view ? "on" : "",
            "aria-pressed": String(name === this.view),
            onclick: () => this.show(name),
          },
          label,
        ),
      ),
    );
  }

  show(view) {
    this.view = view;
    this.#file();
  }

  nextView() {
    const at = VIEWS.findIndex(([name]) => name === this.view);
    this.show(VIEWS[(at + 1) % VIEWS.length][0]);
  }

  async #file() {
    const file = this.shown.find((one) => one.key === this.chosen);
    this.#choices();
    if (!file) {
      this.drawing.cancel();
      fill(this.head, "");
      fill(this.body, h("p", { class: "quiet file-note" }, this.#nothing()));
      return;
    }
    const { before, after } = this.#versions(file);
    fill(this.head, this.#fileHead(file, before, after), this.choice);
    const isLatest = this.drawing.begin();
    const drawn = await drawVersions(this.source, this.id, file.path, before, after, this.view === "whole");
    if (!isLatest()) return;
    fill(this.body, drawn);
    this.node.dataset.shown = `${this.position} ${file.path}`;
  }

  #nothing() {
    if (this.position === 0) return "Nothing has changed yet: → goes to the first change.";
    return this.shown.length ? "Choose a file." : "No listed file has changed up to this step.";
  }

  #versions({ change, start }) {
    return { before: this.view === "start" ? start : change.before, after: change.after };
  }

  #fileHead(file, before, after) {
    const cut = file.path.lastIndexOf("/") + 1;
    const modes = [before?.mode, after?.mode];
    const facts = [WORDS[this.view === "step" ? file.change.how : file.how]];
    if (before && after && modes[0] !== modes[1]) facts.push(`mode ${octal(modes[0])} → ${octal(modes[1])}`);
    if (isLink(after ?? before)) facts.push("symbolic link");
    const last = file.isNow ? null : this.model.step(file.changed);
    if (last && this.view === "step")
      facts.push(`last changed ${last.between_calls ? `after #${last.after ?? 0}` : `by #${last.step}`}`);
    return h(
      "div",
      { class: "file-name" },
      h("h2", {}, h("span", { class: "quiet" }, flat(file.path.slice(0, cut))), flat(file.path.slice(cut))),
      h("span", { class: "quiet" }, facts.join(" · ")),
      this.view === "step" ? h("span", { class: "figures" }, lineCounts(file.change)) : null,
    );
  }

  key(event) {
    const keys = {
      ArrowLeft: () => this.move(-1),
      ArrowRight: () => this.move(1),
      ArrowUp: () => this.moveFile(-1),
      ArrowDown: () => this.moveFile(1),
      k: () => this.moveFile(-1),
      j: () => this.moveFile(1),
      Home: () => this.#seek(0),
      End: () => this.#seek(this.model.last),
      v: () => this.nextView(),
    };
    if (!this.model || !(event.key in keys)) return false;
    keys[event.key]();
    return true;
  }

  end() {
    this.list.end();
  }
}

// The files that one step changed, each with its diff: a tab of the step's details.
export function stepFiles(source, id, changes) {
  return changes.map(({ change }) => {
    const place = h("div", { class: "file-body" }, h("p", { class: "quiet" }, "Reading…"));
    drawVersions(source, id, change.path, change.before, change.after, false).then((drawn) => fill(place, drawn));
    return h(
      "details",
      { class: "section step-file", open: true },
      h(
        "summary",
        {},
        h("span", { class: `letter how-${change.how}`, title: WORDS[change.how] }, LETTERS[change.how]),
        h("span", { class: "section-title" }, flat(change.path)),
        h("span", { class: "figures" }, lineCounts(change)),
      ),
      place,
    );
  });
}

async function drawVersions(source, id, path, before, after, isWhole) {
  try {
    const wanted = isWhole ? [null, after] : [before, after];
    const [old, now] = await Promise.all(wanted.map((one) => one && version(source, id, one)));
    return isWhole ? wholeFile(path, now) : fileDiff(path, old, now);
  } catch (error) {
    return h("p", { class: "bad file-note" }, `This file cannot be shown: ${error.message}`);
  }
}

// Content that is not on the tape needs no request: its entry says so.
async function version(source, id, entry) {
  if (entry.id === "-") return { content: "folder", size: 0, text: null };
  if (entry.id === "none" || entry.id.startsWith("hash:"))
    return { content: "not stored", size: entry.size, text: null };
  return (await source.version(id, entry.id)) ?? { content: "left out", size: entry.size, text: null };
}

function lineCounts({ added, removed }) {
  return [
    added ? h("span", { class: "good" }, `+${count(added)}`) : null,
    removed ? h("span", { class: "bad" }, `−${count(removed)}`) : null,
  ];
}

const octal = (mode) => mode.slice(-3);
const isLink = (entry) => entry?.mode.startsWith("12");

// A file name may hold line breaks: it stays on one line.
function flat(name) {
  return name.replace(/[\n\r\t]/g, (one) => String.fromCharCode(0x2400 + one.charCodeAt(0)));
}
