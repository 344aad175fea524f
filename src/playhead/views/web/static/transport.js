// The player's bar: play, scrub, speed, totals so far. Knows the player and the model.

import { button, fill, h, icon } from "./dom.js";
import { count, money, position } from "./format.js";
import { SPEEDS } from "./player.js";

const STEPS = 10_000;

export class Transport {
  constructor(player, { compact }) {
    this.player = player;
    this.compact = button("Hide head and timeline (h)", { class: "ghost compacts", onclick: compact }, icon("down"));
    this.play = button("Play (space)", { class: "round", onclick: () => player.toggle() });
    this.scrubber = h("input", {
      type: "range",
      min: 0,
      max: STEPS,
      step: 1,
      class: "scrubber",
      "aria-label": "Moment of the run",
      oninput: () => player.seek((this.scrubber.value / STEPS) * player.total),
    });
    this.clock = h("span", { class: "clock" });
    this.soFar = h("span", { class: "so-far" });
    this.speed = h(
      "select",
      { class: "speed", "aria-label": "Speed", onchange: () => player.setSpeed(Number(this.speed.value)) },
      SPEEDS.map((one) => h("option", { value: one }, `${one}×`)),
    );
    const skip = h("input", {
      type: "checkbox",
      checked: true,
      onchange: () => (player.skips = skip.checked),
    });
    this.node = h(
      "div",
      { class: "transport", role: "toolbar", "aria-label": "Player" },
      button("To the beginning", { class: "ghost", onclick: () => player.seek(0) }, icon("first")),
      this.play,
      button("To the end", { class: "ghost", onclick: () => player.seek(player.total) }, icon("last")),
      this.clock,
      this.scrubber,
      this.soFar,
      this.speed,
      h("label", { class: "skip", title: "Skip pauses in which nothing happens" }, skip, "skip idle"),
      this.compact,
    );
  }

  compacted(isCompact) {
    const label = isCompact ? "Show head and timeline (h)" : "Hide head and timeline (h)";
    this.compact.setAttribute("aria-label", label);
    this.compact.setAttribute("aria-expanded", String(!isCompact));
    this.compact.title = label;
  }

  // The player has begun, stopped, or changed its speed.
  changed(model) {
    const label = this.player.playing ? "Pause (space)" : "Play (space)";
    fill(this.play, icon(this.player.playing ? "pause" : "play"));
    this.play.setAttribute("aria-label", label);
    this.play.title = label;
    this.speed.value = String(this.player.speed);
    this.moved(model, this.player.now);
  }

  // `until`: counts the calls that had ended by then.
  moved(model, now, until = now) {
    const { total } = model;
    const upTo = model.tally(until);
    this.scrubber.value = String((now / total) * STEPS);
    this.scrubber.setAttribute("aria-valuetext", position(now, total));
    fill(this.clock, h("strong", {}, position(now, total)), ` / ${position(total, total)}`);
    fill(this.soFar, model.partial ? "…" : `${count(upTo.tokens)} tokens · ${money(upTo.cost)}`);
  }
}
