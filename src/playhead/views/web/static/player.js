// The playhead: a moment that moves at a chosen speed. Knows time; does not draw.

export const SPEEDS = [0.1, 0.5, 1, 2, 4, 8, 16, 32, 64];
// Nothing begins or ends for longer than this: idle. A little of it is played, so that it is noticed.
const IDLE = 1_000_000;
const LEAD = 250_000;

export class Player {
  constructor({ moved, changed }) {
    this.moved = moved;
    this.changed = changed;
    this.now = 0;
    this.total = 1;
    this.speed = 1;
    this.skips = true;
    this.playing = false;
    this.gaps = [];
  }

  load(model) {
    this.total = model.total;
    const moments = new Float64Array(model.count * 2 + 1);
    for (let row = 0; row < model.count; row++) {
      moments[2 * row] = model.at[row];
      moments[2 * row + 1] = model.end(row);
    }
    moments[model.count * 2] = model.total;
    moments.sort();
    this.gaps = [];
    for (let at = 1; at < moments.length; at++) {
      if (moments[at] - moments[at - 1] > IDLE) this.gaps.push([moments[at - 1] + LEAD, moments[at] - LEAD]);
    }
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.playing) return;
    if (this.now >= this.total) this.now = 0;
    this.playing = true;
    this.last = performance.now();
    this.changed();
    this.#tick();
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    cancelAnimationFrame(this.frame);
    this.changed();
  }

  #tick() {
    this.frame = requestAnimationFrame((time) => {
      if (!this.playing) return;
      const passed = Math.max(0, time - this.last) * 1000 * this.speed;
      this.last = time;
      let now = this.now + passed;
      if (this.skips) for (const [from, to] of this.gaps) if (now > from && now < to) now = to;
      this.seek(now, true);
      if (this.now >= this.total) this.pause();
      else this.#tick();
    });
  }

  seek(now, byPlaying = false) {
    this.now = Math.min(this.total, Math.max(0, now));
    this.moved(this.now, byPlaying);
  }

  setSpeed(speed) {
    this.speed = speed;
    this.changed();
  }

  faster(by) {
    const at = SPEEDS.indexOf(this.speed);
    this.setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, at + by))]);
  }
}
