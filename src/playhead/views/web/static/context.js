// The five questions about an item, its causes, and the run's totals at that moment. Knows items and the
// model; not how one is chosen.

import { h } from "./dom.js";
import { count, duration, moment, money, plural, position } from "./format.js";

export function contextView(item, model, row, choose) {
  return [why(item, model, row, choose), fiveWs(item, model, row), soFar(item, model, row)];
}

// The chain of causes, from this item up to the beginning; each can be gone to.
export function why(item, model, row, choose) {
  const chain = model.causes(row);
  const steps = [
    step(model, row, null, choose, true),
    ...chain.map((one) => step(model, one.row, one.word, choose, false)),
  ];
  return h(
    "section",
    { class: "context-part" },
    h("h3", {}, "Why did this happen"),
    item.why ? h("p", { class: "lead" }, item.why) : null,
    h("ol", { class: "causes" }, steps),
    chain.length
      ? null
      : h("p", { class: "quiet" }, "The tape names no cause: the program's own code did this."),
  );
}

function step(model, row, word, choose, isThis) {
  const label = [
    h("span", { class: `mark mark-${model.groupOf(row)}` }),
    h("strong", {}, model.text("name", row)),
    h("span", { class: "cause-brief" }, model.text("fail", row) || model.text("brief", row)),
  ];
  return h(
    "li",
    {},
    word ? h("span", { class: "cause-word" }, word) : null,
    isThis
      ? h("div", { class: "cause this", "aria-current": "step" }, label)
      : h("button", { type: "button", class: "cause", onclick: () => choose(row) }, label),
  );
}

function fiveWs(item, model, row) {
  const effect = item.effect ? `, effect: ${item.effect}` : "";
  const took =
    item.took_ns === undefined
      ? ""
      : item.how === null
        ? ", never ended"
        : `, took ${duration(item.took_ns / 1000)}`;
  const ended =
    item.how === undefined ? null : (item.how ?? "no answer: it was in flight when the tape ended");
  const facts = [
    ["who", `${item.who ?? "?"}, lane ${item.lane}`],
    ["what", `${item.boundary ?? item.kind ?? item.type} ${item.name ?? ""}${effect}`],
    ["when", `${moment(item.wall_ns)}, ${position(model.at[row], model.total)} into the run${took}`],
    ["where", `${item.at ?? "?"} · process ${item.pid} · event ${item.ref}`],
    [
      "why",
      item.why ??
        (model.causes(row)[0]
          ? `${model.causes(row)[0].word} ${model.text("name", model.causes(row)[0].row)}`
          : "not said"),
    ],
  ];
  if (ended)
    facts.push(["ended", item.failure ? `${ended}: ${item.failure.type}: ${item.failure.message}` : ended]);
  const match = item.facts?.match;
  if (match?.of)
    facts.push([
      "tape",
      `answered from call ${match.number ?? match.of} of ${model.run.replay_of ?? "its tape"}, match: ${match.rung}`,
    ]);
  return h("section", { class: "context-part" }, h("h3", {}, "Five questions"), list(facts));
}

function soFar(item, model, row) {
  const upTo = model.tally(model.end(row));
  const facts = [
    ["calls", count(upTo.calls)],
    ["tokens", count(upTo.tokens)],
    ["cost", money(upTo.cost)],
  ];
  const used = item.usage?.[0];
  if (used) {
    const cached = used.cache_read_tokens ? `, ${count(used.cache_read_tokens)} from cache` : "";
    facts.unshift([
      "this call",
      `${count(used.input_tokens)} in${cached}, ${count(used.output_tokens)} out${item.cost_usd === null ? "" : `, ${money(item.cost_usd)} (${item.cost_source})`}`,
    ]);
  }
  return h(
    "section",
    { class: "context-part" },
    h("h3", {}, `So far, ${plural(upTo.calls, "call")} into the run`),
    list(facts),
  );
}

function list(facts) {
  return h(
    "dl",
    { class: "ws" },
    facts.map(([name, told]) => [h("dt", {}, name), h("dd", {}, told)]),
  );
}
