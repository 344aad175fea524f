// Reloads a running run when the server reports new events. Knows when to reload; does not draw.

import { announce } from "./dom.js";

// The server's answer may be older than its notification; then it is requested again, at most this often.
const MOST_TRIES = 20;
const SHORTEST_WAIT = 250;

export class Follower {
  // `grow` asks for the run, draws it, and gives back its model.
  constructor(grow) {
    Object.assign(this, { grow, isOver: false, isBusy: false, isAsked: false, tries: 0 });
  }

  start(source, model) {
    this.known = model.totals.events;
    this.hangUp = source.follow(
      model.run.id,
      this.known,
      () => this.#heard(1),
      () => this.#heard(0),
    );
  }

  // No event: the run is over.
  #heard(events) {
    this.known += events;
    this.isOver ||= events === 0;
    this.tries = 0;
    this.#refresh();
  }

  // Never more than a fifth of the time is spent on asking and drawing.
  async #refresh() {
    this.isAsked = true;
    if (this.isBusy || this.isStopped) return;
    Object.assign(this, { isBusy: true, isAsked: false });
    const began = performance.now();
    try {
      if (this.#isStale(await this.grow()) && this.tries < MOST_TRIES) {
        this.tries += 1;
        this.isAsked = true;
      }
    } catch (error) {
      if (this.isStopped) return;
      announce(`The run cannot be followed: ${error.message}`);
    }
    this.wait = setTimeout(
      () => {
        this.isBusy = false;
        if (this.isAsked) this.#refresh();
      },
      Math.max(SHORTEST_WAIT, (performance.now() - began) * 4),
    );
  }

  #isStale(model) {
    return this.isOver ? model.run.status === "running" : model.totals.events < this.known;
  }

  stop() {
    this.isStopped = true;
    clearTimeout(this.wait);
    this.hangUp();
  }
}
