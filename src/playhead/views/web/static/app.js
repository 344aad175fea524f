// The door: which page an address means, the theme, the keys that hold everywhere.

import { here, rooted } from "./address.js";
import { block, EmbeddedSource, hasBlocks, ServerSource } from "./source.js";
import { button, fill, h, icon } from "./dom.js";
import { BatchPage } from "./batch.js";
import { ComparePage } from "./compare.js";
import { ReportPage } from "./report.js";
import { RunPage } from "./run.js";
import { RunsPage } from "./runs.js";
import { StatsPage } from "./stats.js";

const KEYS = [
  ["space", "play, pause"],
  ["↑ ↓ or j k", "step before, step after"],
  ["← →", "a little back, a little forward (in the tree: fold, unfold)"],
  ["< >", "slower, faster"],
  ["f", "first failure, next failure"],
  ["d", "files, steps; in the files: ← → changes, ↑ ↓ files, v compares with the start"],
  ["/", "search"],
  ["h", "hide or show the head and the timeline"],
  ["+ − 0", "zoom the timeline, whole run"],
  ["Home End", "beginning, end"],
  ["t", "dark or light"],
  ["?", "these keys"],
];

class App {
  constructor(root, source) {
    this.root = root;
    this.source = source;
    this.outlet = h("div", { class: "outlet" });
    fill(root, h("a", { class: "skip-link", href: "#main" }, "To the content"), this.#bar(), this.outlet);
    document.addEventListener("keydown", (event) => this.#key(event));
    window.addEventListener("popstate", () => this.route());
    if (source.embedded) window.addEventListener("hashchange", () => this.page?.goto?.(this.address.read()));
    document.addEventListener("click", (event) => this.#click(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.page?.recolour?.());
    this.address = source.embedded ? hashAddress() : pathAddress();
  }

  #bar() {
    const brand = [icon("tape"), h("span", {}, "Playhead")];
    const home = this.source.embedded
      ? h("span", { class: "brand" }, brand)
      : h("a", { class: "brand", href: rooted("/") }, brand);
    const links = this.source.embedded
      ? null
      : h(
          "nav",
          { "aria-label": "Pages" },
          [
            ["/", "Runs"],
            ["/compare", "Compare"],
            ["/stats", "Stats"],
            ["/batch", "Batch"],
          ].map(([href, label]) => h("a", { href: rooted(href), class: "nav" }, label)),
        );
    return h(
      "div",
      { class: "topbar", role: "banner" },
      home,
      links,
      h("span", { class: "grow" }),
      button("Keys (?)", { class: "ghost", onclick: () => this.#help() }, "?"),
      button("Dark or light (t)", { class: "ghost", onclick: () => this.#theme() }, icon("moon")),
    );
  }

  async route() {
    const page = this.#page();
    if (page === null) return;
    this.page?.end?.();
    this.page = page;
    for (const link of this.root.querySelectorAll("a.nav")) {
      const isHere =
        link.getAttribute("href") === rooted("/")
          ? here() === "/"
          : location.pathname.startsWith(link.getAttribute("href"));
      if (isHere) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    fill(this.outlet, page.node);
    try {
      await page.open();
      performance.mark("playhead-ready");
    } catch (error) {
      fill(
        page.node,
        h(
          "div",
          { class: "sorry", role: "alert" },
          h("h1", {}, "This cannot be shown"),
          h("p", {}, error.message),
          this.source.embedded ? null : h("p", {}, h("a", { href: rooted("/") }, "All runs")),
        ),
      );
      page.node.dataset.ready = "failed";
    }
  }

  // null: the open page handles this address.
  #page() {
    const { source, address } = this;
    if (source.embedded) return new RunPage({ source, id: source.start.id, ref: address.read(), address });
    const [first, ...rest] = here().split("/").slice(1).map(decoded);
    if (first === "run" && this.page instanceof RunPage && this.page.id === rest[0]) {
      this.page.goto(rest[1]);
      return null;
    }
    if (first === "run") return new RunPage({ source, id: rest[0], ref: rest[1], address });
    if (first === "compare") return this.#comparison(rest);
    if (first === "stats") return new StatsPage({ source });
    if (first === "report") return new ReportPage({ source, id: rest[0] });
    if (first === "batch") return new BatchPage();
    return new RunsPage({ source });
  }

  // `/compare?a=RUN&b=RUN`; links of older versions have the two runs in the path.
  #comparison([first, second]) {
    const asked = new URLSearchParams(location.search);
    const [a, b] = [asked.get("a") ?? first, asked.get("b") ?? second];
    return new ComparePage({ source: this.source, a: a || undefined, b: b || undefined });
  }

  // Links within the viewer change the page without loading it again.
  #click(event) {
    const link = event.target.closest?.("a[href^='/']");
    if (!link || this.source.embedded || event.button || event.ctrlKey || event.metaKey || event.shiftKey)
      return;
    event.preventDefault();
    history.pushState(null, "", link.getAttribute("href"));
    this.route();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const { target } = event;
    const isTyping = target.matches?.("input:not([type=range]):not([type=checkbox]), textarea, select");
    if (
      isTyping ||
      (target.matches?.("button, a, summary, input") && (event.key === " " || event.key === "Enter"))
    )
      return;
    if (target.matches?.("input[type=range]") && event.key.startsWith("Arrow")) return;
    if (event.key === "?") this.#help();
    else if (event.key === "t") this.#theme();
    else if (event.key === "Escape" && this.dialog?.open) this.dialog.close();
    else if (!this.page?.key?.(event)) return;
    event.preventDefault();
  }

  #theme() {
    const root = document.documentElement;
    const isDark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    setTheme(isDark ? "light" : "dark");
    this.page?.recolour?.();
  }

  #help() {
    this.dialog ??= h(
      "dialog",
      { class: "help", "aria-label": "Keys" },
      h("h2", {}, "Keys"),
      h(
        "dl",
        { class: "ws" },
        KEYS.map(([keys, what]) => [h("dt", {}, keys), h("dd", {}, what)]),
      ),
      h("form", { method: "dialog" }, h("button", { class: "primary" }, "Close")),
    );
    if (!this.dialog.isConnected) document.body.append(this.dialog);
    if (this.dialog.open) this.dialog.close();
    else this.dialog.showModal();
  }
}

// An address names a run, a step of it, and in its query what else is shown.
function pathAddress() {
  const path = (id, ref) => rooted(`/run/${encodeURIComponent(id)}${ref ? `/${encodeURIComponent(ref)}` : ""}`);
  return {
    link: (id, ref) => new URL(path(id, ref), location.href).href,
    replace: (id, ref, query = {}) => history.replaceState(null, "", path(id, ref) + search(query)),
    read: () => null,
    query: () => new URLSearchParams(location.search),
  };
}

function hashAddress() {
  const hash = (ref) => `#/${ref ? encodeURIComponent(ref) : ""}`;
  const parts = () => location.hash.replace(/^#\/?/, "").split("?");
  return {
    link: (id, ref) => new URL(hash(ref), location.href).href,
    replace: (id, ref, query = {}) => history.replaceState(null, "", hash(ref) + search(query)),
    read: () => decoded(parts()[0]) || null,
    query: () => new URLSearchParams(parts()[1] ?? ""),
  };
}

function search(query) {
  const text = new URLSearchParams(query).toString();
  return text ? `?${text}` : "";
}

// An address may be cut or misspelt; then it means nothing that we have.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Kept for the next page where the browser lets us; a page from a file may have nowhere to keep it.
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("playhead-theme", theme);
  } catch {
    document.documentElement.dataset.themeKept = "no";
  }
}

function keptTheme() {
  try {
    return localStorage.getItem("playhead-theme");
  } catch {
    return null;
  }
}

async function start() {
  const theme = keptTheme();
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  const source = hasBlocks() ? new EmbeddedSource(await block("start")) : new ServerSource();
  await new App(document.getElementById("app"), source).route();
}

start().catch((error) => {
  fill(
    document.getElementById("app"),
    h(
      "div",
      { class: "sorry", role: "alert" },
      h("h1", {}, "This cannot be shown"),
      h("p", {}, error.message),
    ),
  );
});
