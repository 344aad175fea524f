// The list of runs: a live table with search, filters and keyboard control.

import { rooted } from "./address.js";
import { compareAddress } from "./compare.js";
import { button, fill, h, icon } from "./dom.js";
import { age, count, day, duration, money, plural, short } from "./format.js";
import { Latest } from "./latest.js";
import { sparkline } from "./sparkline.js";
import { statusBadge } from "./status.js";

const PAGE = 50;
const STATUSES = ["", "ok", "failed", "interrupted", "running"];
const SORTS = [
  ["-started", "newest"],
  ["started", "oldest"],
  ["-cost", "dearest"],
  ["-duration", "longest"],
  ["-tokens", "most tokens"],
  ["name", "name"],
];
const SINCE = [
  ["", "any time"],
  ["1h", "last hour"],
  ["1d", "last day"],
  ["7d", "last week"],
  ["30d", "last month"],
];
// Milliseconds until an incomplete list is requested again.
const AGAIN = 1000;
const SECONDS = { "1h": 3600, "1d": 86400, "7d": 604800, "30d": 2592000 };

export class RunsPage {
  constructor({ source }) {
    this.source = source;
    this.runs = [];
    this.at = -1;
    this.listing = new Latest();
    this.summing = new Latest();
    this.chosen = new Set();
    // Indexing progress of the server, for the list and for the totals: [done, of] or null.
    this.backlogs = { list: null, sums: null };
    this.node = h("main", { class: "page runs", id: "main" });
  }

  async open() {
    document.title = "Runs · Playhead";
    const asked = new URLSearchParams(location.search);
    const field = (name, label, props = {}) =>
      h("input", {
        type: "search",
        name,
        placeholder: label,
        "aria-label": label,
        value: asked.get(name) ?? "",
        ...props,
      });
    const choice = (name, label, options) =>
      h(
        "select",
        { name, "aria-label": label },
        options.map(([value, text]) =>
          h("option", { value, selected: (asked.get(name) ?? "") === value }, text),
        ),
      );
    this.form = h(
      "form",
      {
        class: "run-filters",
        role: "search",
        onsubmit: (event) => event.preventDefault(),
        oninput: () => this.#filtered(),
      },
      h(
        "label",
        { class: "search wide" },
        icon("search"),
        field("q", "Search prompts, answers, tools, errors"),
      ),
      choice("in", "Search in", [
        ["", "everywhere"],
        ["prompt", "prompts"],
        ["response", "responses"],
        ["tool", "tools"],
        ["error", "errors"],
      ]),
      choice(
        "status",
        "Status",
        STATUSES.map((one) => [one, one || "any status"]),
      ),
      choice("since", "Since", SINCE),
      field("model", "model"),
      field("tool", "tool"),
      field("tag", "tag=value"),
      field("min_cost", "cost from $", { inputmode: "decimal" }),
      choice("sort", "Order", SORTS),
      (this.place = choice("place", "Store", [
        ["", "this server"],
        ["shared", "shared store"],
      ])),
      h(
        "label",
        { class: "check" },
        h("input", { type: "checkbox", name: "replays", value: "true", checked: asked.get("replays") === "true" }),
        "replays",
      ),
    );
    this.place.hidden = this.place.value === "";
    this.sparks = h("div", { class: "sparks" });
    this.total = h("p", { class: "quiet total", role: "status" });
    this.indexing = h("div", { class: "indexing", role: "status", hidden: true });
    this.compare = h("div", { class: "compare-bar", hidden: true });
    this.body = h("tbody", {});
    const names = ["", "run", "status", "models", "started", "took", "LLM", "tools", "tokens", "cost"];
    const numbers = new Set(["took", "LLM", "tools", "tokens", "cost"]);
    this.table = h(
      "table",
      { class: "run-table", "aria-label": "Runs" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          names.map((name) =>
            h(
              "th",
              { scope: "col", class: numbers.has(name) ? "n" : "" },
              name || h("span", { class: "offscreen" }, "compare"),
            ),
          ),
        ),
      ),
      this.body,
    );
    this.more = button(
      "More",
      { class: "primary more", hidden: true, onclick: () => this.#load(true) },
      "More runs",
    );
    fill(
      this.node,
      h("div", { class: "page-head" }, h("h1", {}, "Runs"), this.total, this.sparks),
      this.form,
      this.indexing,
      this.compare,
      h("div", { class: "wide" }, this.table),
      this.more,
    );
    await this.#load(false);
    if (this.isOver) return;
    this.stop = this.source.followRuns(() => this.#later());
    this.node.dataset.ready = "true";
  }

  #query() {
    const given = Object.fromEntries([...new FormData(this.form)].filter(([, value]) => value !== ""));
    const address = new URLSearchParams(given);
    history.replaceState(null, "", address.size ? `?${address}` : location.pathname);
    // Part of a name is enough; wildcards are allowed.
    for (const name of ["model", "tool"])
      if (given[name] && !/[*?]/.test(given[name])) given[name] = `*${given[name]}*`;
    if (given.since) given.since = new Date(Date.now() - SECONDS[given.since] * 1000).toISOString();
    return { replays: "false", ...given, limit: PAGE };
  }

  // The shared store has names, tags and times of runs, but no text, calls or cost.
  #find(query) {
    const { place, ...own } = query;
    for (const name of ["in", "model", "tool", "min_cost", "sort"])
      this.form.elements[name].disabled = place === "shared";
    if (place !== "shared") return this.source.runs(own);
    const known = ["q", "status", "tag", "since", "replays", "limit", "cursor"];
    return this.source.sharedRuns(Object.fromEntries(Object.entries(own).filter(([name]) => known.includes(name))));
  }

  // The sums are of the same runs as the list: without replays, and with every filter.
  #filters() {
    const { limit, sort, place, ...filters } = this.#query();
    return filters;
  }

  // Answers to the filters before are not drawn any more, and their list has no next page.
  #filtered() {
    this.listing.cancel();
    this.summing.cancel();
    this.more.hidden = true;
    clearTimeout(this.typed);
    this.typed = setTimeout(() => this.#load(false), 200);
  }

  // The list has changed on the server.
  #later(wait = 300) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#load(false, true), wait);
  }

  // A change of the list is loaded after the request that is under way: it must not discard the filter or the page
  // that a person has asked for, and a slow server must not be asked faster than it answers.
  async #load(isMore, isLive = false) {
    if (isLive && this.isLoading) {
      this.isChanged = true;
      return;
    }
    const isLatest = this.listing.begin();
    this.isChanged ||= isMore && this.isLoading;
    this.isLoading = true;
    const query = this.#query();
    // Pages that were opened with "more" stay open when the list changes.
    if (isLive) query.limit = Math.min(500, Math.max(PAGE, this.runs.length));
    if (isMore && this.next) query.cursor = this.next;
    try {
      const found = await this.#find(query);
      if (isLatest()) this.#found(found, isMore);
    } catch (error) {
      if (isLatest()) fill(this.total, h("span", { class: "bad" }, error.message));
    }
    if (!isLatest()) return;
    this.isLoading = false;
    if (this.isChanged) this.#later();
    this.isChanged = false;
  }

  #found(found, isMore) {
    const chosen = this.runs[this.at]?.id;
    this.runs = isMore ? [...this.runs, ...found.runs] : found.runs;
    this.next = found.next;
    this.at = this.runs.findIndex((one) => one.id === chosen);
    fill(this.total, (found.has_more ? "more than " : "") + plural(found.total ?? this.runs.length, "run"));
    this.more.hidden = !found.next;
    this.place.hidden = !found.remote && this.place.value === "";
    this.#behind("list", found.indexing ?? null);
    this.#rows();
    if (found.indexing) this.#later(AGAIN);
    else if (this.place.value === "shared") fill(this.sparks);
    else if (!isMore) this.#figures();
  }

  // While the server is indexing, the list is incomplete: say so, and load the rest later.
  #behind(part, indexing) {
    this.backlogs[part] = indexing;
    const shown = this.backlogs.list ?? this.backlogs.sums;
    this.indexing.hidden = shown === null;
    if (shown === null) return;
    const { done, of } = shown;
    const known = of ? `${count(done)} of ${count(of)}` : "…";
    fill(
      this.indexing,
      h("progress", of ? { max: of, value: done } : {}),
      h("span", {}, `Reading runs for the first time: ${known}. The list has the runs that were read so far.`),
    );
  }

  #rows() {
    const now = Date.now();
    fill(
      this.body,
      this.runs.map((one, at) => this.#row(one, at, now)),
    );
    if (!this.runs.length)
      fill(
        this.body,
        h(
          "tr",
          {},
          h(
            "td",
            { colspan: 10, class: "nothing" },
            this.backlogs.list
              ? "No run matches so far."
              : ["No run matches. Record one: ", h("code", {}, "playhead record -- python my_agent.py")],
          ),
        ),
      );
  }

  #row(one, at, now) {
    const href = this.#href(one.id);
    const box = h("input", {
      type: "checkbox",
      "aria-label": `Compare ${one.name || one.id}`,
      checked: this.chosen.has(one.id),
      onchange: () => this.#mark(one.id, box.checked),
    });
    const failure = one.failure
      ? typeof one.failure === "string"
        ? one.failure
        : `${one.failure.type}${one.failure.message ? `: ${one.failure.message}` : ""}`
      : "";
    const tags = Object.entries(one.tags ?? {}).map(([name, value]) =>
      h("span", { class: "tag" }, value === "" || value === "true" ? name : `${name}=${value}`),
    );
    const number = (text) => h("td", { class: "n" }, text);
    return h(
      "tr",
      {
        class: at === this.at ? "selected" : "",
        "aria-selected": String(at === this.at),
        "data-id": one.id,
        onclick: (event) => this.#click(event, href),
      },
      h("td", {}, box),
      h(
        "td",
        { class: "run-cell" },
        h("a", { href }, one.name || one.id),
        tags,
        one.golden ? h("span", { class: "tag gold" }, "golden") : null,
        one.replay_of ? h("span", { class: "tag" }, "replay") : null,
        h(
          "div",
          { class: "quiet small" },
          one.id,
          failure ? h("span", { class: "bad" }, ` · ${failure.slice(0, 120)}`) : null,
          one.failed_turns
            ? h("span", { class: "bad" }, ` · ${count(one.failed_turns)} failed turn${one.failed_turns === 1 ? "" : "s"}`)
            : null,
          one.note ? ` · ${one.note}` : "",
          one.pushed_by ? ` · pushed by ${one.pushed_by}${one.here ? " · on this server, too" : ""}` : "",
        ),
        snippets(one.snippets),
      ),
      h("td", {}, statusBadge(one)),
      h("td", { class: "quiet models" }, (one.models ?? []).slice(0, 2).join(", ")),
      h("td", { class: "quiet", title: day(one.started_at) }, age(one.started_at, now)),
      number(one.duration_s === null || one.duration_s === undefined ? "–" : duration(one.duration_s * 1e6)),
      number(count(one.llm_calls)),
      number(count(one.tool_calls)),
      number(short(one.tokens)),
      number(money(one.cost_usd)),
    );
  }

  // Carry the search over to the run's page.
  #href(id) {
    const text = this.form.elements.q.value.trim();
    return rooted(`/run/${encodeURIComponent(id)}${text ? `?${new URLSearchParams({ q: text })}` : ""}`);
  }

  #click(event, href) {
    if (event.target.closest("a, input, button") || getSelection().toString()) return;
    this.#go(href);
  }

  #go(href) {
    history.pushState(null, "", href);
    window.dispatchEvent(new PopStateEvent("popstate"));
  }

  #mark(id, isChosen) {
    if (isChosen) this.chosen.add(id);
    else this.chosen.delete(id);
    const [a, b] = [...this.chosen].slice(-2);
    this.compare.hidden = this.chosen.size === 0;
    fill(
      this.compare,
      this.chosen.size < 2
        ? "Mark a second run to compare the two."
        : h(
            "a",
            { class: "primary", href: compareAddress(a, b) },
            "Compare the two marked runs",
          ),
    );
  }

  // Cost and failures by day, from the server's own sums; without them, from the runs on the page.
  async #figures() {
    let rows;
    clearTimeout(this.sumsTimer);
    const isLatest = this.summing.begin();
    try {
      const told = await this.source.stats("day", this.#filters());
      if (!isLatest()) return;
      this.#behind("sums", told.indexing);
      if (told.indexing) this.sumsTimer = setTimeout(() => this.#figures(), 2 * AGAIN);
      rows = told.rows.map((row) => ({
        ...row,
        key: String(row.key),
        failures: row.failed_runs,
      }));
    } catch {
      if (!isLatest()) return;
      rows = this.#sums();
    }
    rows = rows.sort((a, b) => (a.key < b.key ? -1 : 1)).slice(-30);
    if (rows.length < 2) rows = this.#latest();
    const spark = (label, values, shown, look) =>
      h(
        "figure",
        { class: "spark" },
        h("figcaption", {}, h("span", { class: "quiet" }, label), h("strong", {}, shown)),
        sparkline(values, look, `${label}: ${values.length} values`),
      );
    const sum = (name) => rows.reduce((all, row) => all + (row[name] ?? 0), 0);
    fill(
      this.sparks,
      spark(
        "runs",
        rows.map((row) => row.runs ?? 0),
        count(sum("runs")),
        "plain",
      ),
      spark(
        "failures",
        rows.map((row) => row.failures ?? 0),
        count(rows.reduce((all, row) => all + (row.failures ?? 0), 0)),
        "bad",
      ),
      spark(
        "cost",
        rows.map((row) => row.cost_usd ?? 0),
        money(sum("cost_usd")),
        "accent",
      ),
    );
  }

  #sums() {
    const days = new Map();
    for (const one of this.runs) {
      const key = String(one.started_at).slice(0, 10);
      const row = days.get(key) ?? { key, runs: 0, failures: 0, cost_usd: 0 };
      row.runs += 1;
      row.failures += one.status === "failed" ? 1 : 0;
      row.cost_usd += one.cost_usd ?? 0;
      days.set(key, row);
    }
    return [...days.values()];
  }

  // If all runs are of one day, draw one mark per run.
  #latest() {
    return [...this.runs]
      .slice(0, 40)
      .reverse()
      .map((one, at) => ({
        key: String(at),
        runs: 1,
        failures: one.status === "failed" ? 1 : 0,
        cost_usd: one.cost_usd ?? 0,
      }));
  }

  key(event) {
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (by) {
      this.at = Math.min(this.runs.length - 1, Math.max(0, this.at + by));
      this.#rows();
      this.body.children[this.at]?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter" && this.runs[this.at]) this.#go(this.#href(this.runs[this.at].id));
    else if (event.key === "x" && this.runs[this.at]) {
      this.#mark(this.runs[this.at].id, !this.chosen.has(this.runs[this.at].id));
      this.#rows();
    } else if (event.key === "/") this.form.elements.q.focus();
    else return false;
    return true;
  }

  end() {
    this.isOver = true;
    this.listing.cancel();
    this.summing.cancel();
    for (const timer of [this.typed, this.timer, this.sumsTimer]) clearTimeout(timer);
    this.stop?.();
  }
}

// Shows where the search words were found.
function snippets(found) {
  return (found ?? []).slice(0, 2).map(({ in: place, text, hits }) => {
    const parts = [];
    let from = 0;
    for (const [start, end] of hits) {
      parts.push(text.slice(from, start), h("mark", {}, text.slice(start, end)));
      from = end;
    }
    parts.push(text.slice(from));
    return h("div", { class: "snippet small" }, h("span", { class: "tag" }, place), " ", parts);
  });
}
