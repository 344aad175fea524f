// The data of a run: the outline's columns (see outline.py) and values derived from them. Does not use the DOM.

export const IN_FLIGHT = -1;
export const MOMENT = -2;

// Groups that can be hidden, in the order of the buttons. Rows without a group are always shown.
export const GROUPS = [
  ["llm", "LLM"],
  ["tool", "Tools"],
  ["http", "HTTP"],
  ["process", "Processes"],
  ["state", "State"],
  ["note", "Events"],
];
const GROUP_OF = {
  llm: "llm",
  tool: "tool",
  mcp: "tool",
  http: "http",
  process: "process",
  state: "state",
  clock: "state",
  entropy: "state",
  output: "output",
};

export class RunModel {
  // `partial`: the number of loaded events and of all events, while the rest is loading.
  constructor(outline, partial = null) {
    this.partial = partial;
    const c = outline.columns;
    this.outline = outline;
    this.run = outline.run;
    this.totals = outline.totals;
    this.refs = outline.refs;
    this.lanes = outline.lanes;
    this.strings = outline.strings;
    this.count = outline.refs.length;
    for (const name of [
      "kind",
      "depth",
      "above",
      "lane",
      "boundary",
      "name",
      "brief",
      "fail",
      "how",
      "place",
      "number",
      "came",
      "went",
      "because",
      "word",
    ]) {
      this[name] = Int32Array.from(c[name]);
    }
    for (const name of ["at", "took", "cost"]) this[name] = Float64Array.from(c[name]);
    this.total = this.#total();
    this.#groups();
    this.order = this.#inTime();
  }

  #total() {
    let total = 0;
    for (let row = 0; row < this.count; row++) {
      const end = this.at[row] + Math.max(0, this.took[row]);
      if (end > total) total = end;
    }
    this.reached = total;
    return Math.max(total, this.run.axis_us ?? this.run.duration_us, 1);
  }

  // Group names by row, as an index into `groupNames`.
  #groups() {
    const kinds = this.outline.kinds;
    this.groupNames = ["turn", "seam", "person", "note", "hook", ...new Set(Object.values(GROUP_OF))];
    const index = new Map(this.groupNames.map((name, at) => [name, at]));
    // Which kinds of events stay in the background is decided by the table of kinds in events.py.
    const background = new Set(this.outline.background ?? ["hook", "snapshot"]);
    const groupOf = (text) => GROUP_OF[text] ?? (background.has(text) ? "hook" : "note");
    const byString = this.strings.map((text) => index.get(groupOf(text)));
    this.group = new Uint8Array(this.count);
    for (let row = 0; row < this.count; row++) {
      const kind = kinds[this.kind[row]];
      this.group[row] = kind === "call" || kind === "note" ? byString[this.boundary[row]] : index.get(kind);
    }
  }

  #inTime() {
    const rows = Int32Array.from({ length: this.count }, (_, row) => row);
    return rows.sort((a, b) => this.at[a] - this.at[b] || this.place[a] - this.place[b] || a - b);
  }

  kindOf(row) {
    return this.outline.kinds[this.kind[row]];
  }
  groupOf(row) {
    return this.groupNames[this.group[row]];
  }
  text(column, row) {
    return this.strings[this[column][row]];
  }
  end(row) {
    if (this.took[row] === IN_FLIGHT) return this.partial ? this.reached : this.total;
    return this.at[row] + Math.max(0, this.took[row]);
  }
  failed(row) {
    return this.fail[row] !== 0;
  }
  inFlight(row) {
    return this.took[row] === IN_FLIGHT;
  }
  hasBelow(row) {
    return row + 1 < this.count && this.depth[row + 1] > this.depth[row] && this.above[row + 1] === row;
  }

  row(ref) {
    this.byRef ??= new Map(this.refs.map((one, row) => [one, row]));
    return this.byRef.get(ref) ?? -1;
  }

  // The row that an address names: by its ref, or by the number of its call.
  rowAt(address) {
    const row = this.row(address);
    return row < 0 && /^[1-9][0-9]*$/.test(address) ? this.number.indexOf(Number(address)) : row;
  }

  // Calls have their number as an address: it is short, and the same as in the terminal.
  addressOf(row) {
    return this.kindOf(row) === "call" && this.number[row] > 0 ? String(this.number[row]) : this.refs[row];
  }

  // The row of the whole item, for rows that show a part of it.
  main(row) {
    const ref = this.refs[row];
    const cut = ref.indexOf("~");
    return cut < 0 ? row : this.row(ref.slice(0, cut));
  }

  // The chain of causes: rows from the nearest to the farthest, each with the word that links them.
  causes(row) {
    const chain = [];
    const seen = new Set([row]);
    let at = this.main(row);
    while (at >= 0 && this.because[at] >= 0 && chain.length < 60) {
      const next = this.because[at];
      if (seen.has(next)) break;
      chain.push({ row: next, word: this.outline.words[this.word[at]] });
      seen.add(next);
      at = next;
    }
    return chain;
  }

  // The failure after the one in this row, else the first one. The server lists them, as for the terminal.
  nextFailure(row = -1) {
    const refs = this.outline.failures ?? [];
    if (!refs.length) return -1;
    const at = row < 0 ? -1 : refs.indexOf(this.refs[this.main(row)]);
    return this.row(refs[(at + 1) % refs.length]);
  }

  previousLlm(row) {
    let best = -1;
    for (const other of this.order) {
      if (this.place[other] >= this.place[row]) break;
      if (this.groupOf(other) === "llm" && this.lane[other] === this.lane[row]) best = other;
    }
    return best;
  }

  // Rows that stand for the calls of libraries while they were loaded.
  startUps() {
    const name = this.strings.indexOf("playhead.start-up");
    const rows = [];
    for (let row = 0; name >= 0 && row < this.count; row++) if (this.boundary[row] === name) rows.push(row);
    return rows;
  }

  // Rows to be drawn: not below a folded one, and of a group that is shown.
  shown(folded, hidden) {
    const out = new Int32Array(this.count);
    const hides = this.groupNames.map((name) => hidden.has(name));
    let length = 0;
    let under = -1;
    for (let row = 0; row < this.count; row++) {
      if (under >= 0 && this.depth[row] > under) continue;
      under = folded.has(row) ? this.depth[row] : -1;
      if (!hides[this.group[row]]) out[length++] = row;
    }
    return out.subarray(0, length);
  }

  find(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return new Int32Array(0);
    this.lower ??= this.strings.map((one) => one.toLowerCase());
    const hit = this.lower.map((one) => one.includes(wanted));
    const found = [];
    for (let row = 0; row < this.count; row++) {
      if (hit[this.name[row]] || hit[this.brief[row]] || hit[this.fail[row]] || hit[this.boundary[row]])
        found.push(row);
    }
    return Int32Array.from(found);
  }

  // Totals at a moment: a call counts when it has ended.
  tally(until) {
    this.sums ??= this.#sums();
    const { ends, calls, tokens, cost } = this.sums;
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[middle] <= until) low = middle + 1;
      else high = middle;
    }
    return low
      ? { calls: calls[low - 1], tokens: tokens[low - 1], cost: cost[low - 1] }
      : { calls: 0, tokens: 0, cost: 0 };
  }

  #sums() {
    const rows = [...this.order].filter((row) => this.number[row] > 0 && this.took[row] >= 0);
    rows.sort((a, b) => this.end(a) - this.end(b));
    const sums = { ends: new Float64Array(rows.length), calls: [], tokens: [], cost: [] };
    let [calls, tokens, cost] = [0, 0, 0];
    rows.forEach((row, index) => {
      sums.ends[index] = this.end(row);
      sums.calls.push((calls += 1));
      sums.tokens.push((tokens += this.came[row] + this.went[row]));
      sums.cost.push((cost += this.cost[row]));
    });
    return sums;
  }

  // The row that began last at or before a moment, of those that are drawn in the tree.
  current(at, isShown) {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.at[this.order[middle]] <= at) low = middle + 1;
      else high = middle;
    }
    for (let index = low - 1; index >= 0 && index > low - 400; index--) {
      if (isShown(this.order[index])) return this.order[index];
    }
    return -1;
  }
}
