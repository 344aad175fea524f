// The head of a run: status, duration, totals, failure. Knows the model.

import { rooted } from "./address.js";
import { button, h, icon } from "./dom.js";
import { age, count, day, duration, money, plural } from "./format.js";
import { reportView } from "./report.js";
import { statusBadge } from "./status.js";

export function runHead(model, source, { choose, failure }) {
  const { run, totals } = model;
  const facts = [
    ["took", duration(run.duration_us)],
    // Before the first call, most of it for imports; the time axis starts after it.
    ...(run.start_up_us >= 5e5 ? [["start-up", duration(run.start_up_us)]] : []),
    ["cost", totals.cost_usd === null ? "–" : `${totals.unpriced ? "≥" : ""}${money(totals.cost_usd)}`],
    ["tokens", count(totals.tokens)],
    ["LLM", count(totals.llm_calls)],
    ["tools", count(totals.tool_calls)],
    ["failures", count(totals.failures)],
    ...(totals.failed_turns ? [["failed turns", count(totals.failed_turns)]] : []),
  ];
  // Of a partly loaded run only the duration is known, from the manifest.
  if (model.partial) for (const fact of facts.slice(1)) fact[1] = "…";
  return [
    h(
      "div",
      { class: "run-title" },
      statusBadge(run),
      h("h1", {}, run.name || run.id),
      run.name ? h("span", { class: "quiet run-id" }, run.id) : null,
      run.started_at
        ? h(
            "span",
            { class: "quiet run-when", title: run.started_at },
            `${day(run.started_at)} · ${age(run.started_at, Date.now())}`,
          )
        : null,
      run.level === "full" ? null : h("span", { class: "chip" }, `level ${run.level}`),
      run.replay_of ? replayOf(run, source) : null,
    ),
    h(
      "dl",
      { class: "figures-bar" },
      facts.map(([name, told]) =>
        h(
          "div",
          { class: /fail/.test(name) && told !== "0" && !model.partial ? "warn" : "" },
          h("dt", {}, name),
          h("dd", {}, told),
        ),
      ),
    ),
    h(
      "div",
      { class: "run-command quiet" },
      h("code", {}, run.command.join(" ")),
      run.git_commit ? ` · ${run.git_commit.slice(0, 10)}` : "",
      Object.entries(run.tags).map(([name, value]) => h("span", { class: "tag" }, `${name}=${value}`)),
    ),
    model.partial ? null : trouble(model, choose, failure),
  ];
}

function replayOf(run, source) {
  const label = `replay of ${run.replay_of}`;
  if (!source.embedded)
    return [
      h("a", { class: "chip", href: rooted(`/run/${encodeURIComponent(run.replay_of)}`) }, label),
      h("a", { class: "chip", href: rooted(`/report/${encodeURIComponent(run.id)}`) }, "report"),
      h(
        "a",
        {
          class: "chip",
          href: rooted(`/compare/${encodeURIComponent(run.replay_of)}/${encodeURIComponent(run.id)}`),
        },
        "compare",
      ),
    ];
  return [
    h("span", { class: "chip" }, label),
    source.start.report
      ? h("button", { type: "button", class: "chip", onclick: () => openReport(source) }, "report")
      : null,
  ];
}

async function openReport(source) {
  const told = await source.report();
  const dialog = h(
    "dialog",
    { class: "help large", "aria-label": "Replay report", onclose: () => dialog.remove() },
    reportView(told, true),
    h("form", { method: "dialog" }, h("button", { class: "primary" }, "Close")),
  );
  document.body.append(dialog);
  dialog.showModal();
}

// Why a run failed: the error, the last seam, the calls in flight.
function trouble(model, choose, failure) {
  const { outline, run } = model;
  const goto = (ref) => {
    const row = model.row(ref);
    return h(
      "button",
      { type: "button", class: "link", onclick: () => choose(row) },
      row < 0 ? ref : model.text("name", row),
    );
  };
  const parts = [];
  if (outline.failure)
    parts.push(
      h(
        "p",
        { class: "trouble-what" },
        h("strong", {}, outline.failure.type),
        outline.failure.message ? `: ${outline.failure.message}` : "",
      ),
    );
  else if (run.status === "interrupted")
    parts.push(
      h(
        "p",
        { class: "trouble-what" },
        h("strong", {}, "Interrupted"),
        ": the tape has no end, because the process was killed or the machine stopped.",
      ),
    );
  if (outline.last_seam)
    parts.push(
      h(
        "p",
        {},
        "Last completed seam ",
        h("strong", {}, outline.last_seam),
        outline.failed_turn ? [" in turn ", goto(outline.failed_turn)] : null,
        ".",
      ),
    );
  if (outline.in_flight.length && run.status !== "running")
    parts.push(
      h(
        "p",
        {},
        "In flight when it ended: ",
        outline.in_flight.slice(0, 4).map((ref, at) => [at ? ", " : "", goto(ref)]),
        outline.in_flight.length > 4 ? ` and ${outline.in_flight.length - 4} more` : "",
        ".",
      ),
    );
  if (outline.damage.length)
    parts.push(
      h(
        "p",
        { class: "odd" },
        `The tape is damaged in ${plural(outline.damage.length, "place")}: ${outline.damage[0]}`,
      ),
    );
  const jump =
    model.nextFailure() < 0
      ? null
      : button(
          "Go to the first failure (f)",
          { class: "primary", onclick: failure },
          icon("flag"),
          "First failure",
        );
  if (!parts.length && jump === null) return null;
  const isBad = run.status === "failed" || run.status === "interrupted";
  const came = run.status === "running" ? " so far" : "; the run itself succeeded";
  return h(
    "div",
    { class: isBad ? "trouble" : "trouble mild" },
    h(
      "div",
      {},
      parts.length
        ? parts
        : h("p", { class: "quiet" }, `${plural(model.totals.failures, "call")} failed${came}.`),
    ),
    jump,
  );
}
