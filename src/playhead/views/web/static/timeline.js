// The timeline: lanes of bars on a canvas. Knows the model, pixels and the pointer.

import { button, fill, h, icon } from "./dom.js";
import { duration, position } from "./format.js";
import { MOMENT } from "./model.js";
import { pack } from "./lanes.js";
import { fitted, hatch, nice, read, tick } from "./pen.js";

const BAR = 13;
const PITCH = 15;
const AXIS = 20;
const PAD = 5;
const TALLEST = 232;

export class Timeline {
  constructor({ sought, chosen }) {
    this.sought = sought;
    this.chosen = chosen;
    this.canvas = h("canvas", { class: "timeline-canvas", role: "img" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.scroll = h("div", { class: "timeline-scroll" }, this.canvas);
    this.node = h(
      "div",
      { class: "timeline", role: "group", "aria-label": "Timeline" },
      this.scroll,
      this.tip,
      this.#tools(),
    );
    this.paint = { now: 0, until: Infinity, selected: -1, hover: -1 };
    this.sizes = new ResizeObserver(() => this.#resize());
    this.sizes.observe(this.scroll);
    this.#listen();
  }

  #tools() {
    return h(
      "div",
      { class: "timeline-tools" },
      button("Zoom in (+)", { class: "ghost", onclick: () => this.zoom(0.5) }, icon("plus")),
      button("Zoom out (−)", { class: "ghost", onclick: () => this.zoom(2) }, icon("minus")),
      button("Whole run (0)", { class: "ghost", onclick: () => this.fit() }, icon("fit")),
    );
  }

  show(model) {
    const wasWhole = !this.model || (this.from === 0 && this.to >= this.model.total);
    this.model = model;
    this.lanes = pack(model);
    this.canvas.setAttribute(
      "aria-label",
      `${this.lanes.length} lanes over ${duration(model.total)}; the list of steps below has the same data`,
    );
    if (wasWhole) [this.from, this.to] = [0, model.total];
    this.#resize();
  }

  fit() {
    [this.from, this.to] = [0, this.model.total];
    this.draw();
  }

  zoom(
    factor,
    around = this.paint.now >= this.from && this.paint.now <= this.to
      ? this.paint.now
      : (this.from + this.to) / 2,
  ) {
    const span = Math.min(this.model.total, Math.max(200, (this.to - this.from) * factor));
    const share = (around - this.from) / (this.to - this.from);
    this.#view(around - span * share, span);
  }

  #view(from, span) {
    this.from = Math.max(0, Math.min(from, this.model.total - span));
    this.to = this.from + span;
    this.draw();
  }

  // `until`: items that begin later are pale.
  set({ now, selected, until = this.paint.until }) {
    this.paint.until = until;
    if (now !== undefined) this.paint.now = now;
    if (selected !== undefined) this.paint.selected = selected;
    if (now !== undefined && (now < this.from || now > this.to))
      this.#view(now - (this.to - this.from) * 0.1, this.to - this.from);
    this.draw();
  }

  // The colours may have changed with the theme.
  recolour() {
    this.colours = undefined;
    this.draw();
  }

  #resize() {
    if (!this.model) return;
    const width = this.scroll.clientWidth;
    if (!width) return;
    this.gutter = this.lanes.length > 1 ? Math.min(140, Math.max(70, width * 0.14)) : 12;
    this.height = AXIS + this.lanes.reduce((sum, lane) => sum + lane.rows.length * PITCH + PAD, 0) + PAD;
    this.width = width;
    const ratio = window.devicePixelRatio || 1;
    // A canvas has a largest size; lanes beyond it are drawn when they are scrolled to, not here.
    this.height = Math.min(this.height, 8000);
    this.scroll.style.height = `${Math.min(this.height, TALLEST)}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    this.draw();
  }

  draw() {
    if (!this.model || !this.width) return;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.#draw();
    });
  }

  x(at) {
    return this.gutter + ((at - this.from) / (this.to - this.from)) * (this.width - this.gutter - 8);
  }
  time(x) {
    return this.from + ((x - this.gutter) / (this.width - this.gutter - 8)) * (this.to - this.from);
  }

  #draw() {
    const pen = this.canvas.getContext("2d");
    const colours = (this.colours ??= read(this.node));
    pen.clearRect(0, 0, this.width, this.height);
    this.#axis(pen, colours);
    let y = AXIS;
    for (const lane of this.lanes) {
      if (this.lanes.length > 1) {
        pen.fillStyle = colours.quiet;
        pen.font = "11px ui-sans-serif, system-ui, sans-serif";
        pen.textBaseline = "middle";
        pen.fillText(fitted(pen, lane.name, this.gutter - 18), 10, y + BAR / 2);
      }
      pen.save();
      pen.beginPath();
      pen.rect(this.gutter, y - 3, this.width - this.gutter, lane.rows.length * PITCH + 6);
      pen.clip();
      lane.rows.forEach((rows, index) => this.#bars(pen, colours, rows, y + index * PITCH));
      pen.restore();
      y += lane.rows.length * PITCH + PAD;
    }
    this.#head(pen, colours);
  }

  #axis(pen, colours) {
    const span = this.to - this.from;
    const step = nice(span / Math.max(2, (this.width - this.gutter) / 110));
    pen.font = "10.5px ui-sans-serif, system-ui, sans-serif";
    pen.textBaseline = "middle";
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = Math.round(this.x(at)) + 0.5;
      pen.fillStyle = colours.line;
      pen.fillRect(x, AXIS - 4, 1, this.height);
      pen.fillStyle = colours.quiet;
      if (x < this.width - 40) pen.fillText(tick(at, step), x + 4, AXIS / 2);
    }
  }

  // Bars narrower than a pixel are drawn once per pixel: so the cost depends on the screen, not on the run.
  #bars(pen, colours, rows, y) {
    const { model } = this;
    let painted = -1;
    for (let index = firstEnding(model, rows, this.from); index < rows.length; index++) {
      const row = rows[index];
      if (model.at[row] > this.to) break;
      const left = this.x(model.at[row]);
      const right = this.x(model.end(row));
      const marked = row === this.paint.selected || row === this.paint.hover || model.failed(row);
      if (right < painted + 0.7 && !marked) continue;
      const from = Math.max(left, this.gutter - 2);
      const wide = Math.max(1.5, Math.min(right, this.width + 2) - from);
      painted = from + wide;
      const group = model.groupOf(row);
      const colour = model.failed(row) ? colours.failed : (colours[group] ?? colours.note);
      if (model.took[row] === MOMENT) {
        pen.globalAlpha = this.#alpha(row);
        pen.fillStyle = colour;
        pen.fillRect(left - 0.75, y + 2, 1.5, BAR - 4);
        pen.globalAlpha = 1;
        continue;
      }
      this.#bar(pen, colours, row, group, colour, from, y, wide);
    }
  }

  // Items in the future of the player are pale, failures too: the player has not reached them.
  #alpha(row) {
    return this.model.at[row] > this.paint.until ? 0.35 : 1;
  }

  #bar(pen, colours, row, group, colour, x, y, wide) {
    const isTurn = group === "turn";
    pen.globalAlpha = this.#alpha(row);
    pen.fillStyle = isTurn ? colours.turnBack : colour;
    pen.beginPath();
    pen.roundRect(x, y, wide, BAR, wide > 6 ? 3 : 0);
    pen.fill();
    if (isTurn && this.model.failed(row)) {
      pen.fillStyle = colours.failed;
      pen.fillRect(x, y + BAR - 3, wide, 3);
    }
    if (this.model.inFlight(row)) hatch(pen, colours.back, x, y, wide, BAR);
    if (wide > 44) {
      pen.fillStyle = isTurn ? colours.text : colours.ink;
      pen.font = "10px ui-sans-serif, system-ui, sans-serif";
      pen.textBaseline = "middle";
      pen.fillText(fitted(pen, this.model.text("name", row), wide - 10), x + 5, y + BAR / 2 + 0.5);
    }
    pen.globalAlpha = 1;
    if (row === this.paint.selected || row === this.paint.hover) {
      pen.strokeStyle = colours.text;
      pen.lineWidth = row === this.paint.selected ? 2 : 1;
      pen.beginPath();
      pen.roundRect(x - 1, y - 1, wide + 2, BAR + 2, 4);
      pen.stroke();
    }
  }

  #head(pen, colours) {
    const x = this.x(this.paint.now);
    if (x < this.gutter - 1 || x > this.width) return;
    pen.fillStyle = colours.accent;
    pen.fillRect(x - 0.75, 4, 1.5, this.height);
    pen.beginPath();
    pen.moveTo(x - 5, 2);
    pen.lineTo(x + 5, 2);
    pen.lineTo(x, 10);
    pen.fill();
  }

  #at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let top = AXIS;
    for (const lane of this.lanes) {
      for (let index = 0; index < lane.rows.length; index++) {
        if (y >= top + index * PITCH && y < top + (index + 1) * PITCH)
          return { x, y, row: this.#hit(lane.rows[index], x) };
      }
      top += lane.rows.length * PITCH + PAD;
    }
    return { x, y, row: -1 };
  }

  #hit(rows, x) {
    const [from, to] = [this.time(x - 3), this.time(x + 3)];
    let best = -1;
    for (let index = firstEnding(this.model, rows, from); index < rows.length; index++) {
      const row = rows[index];
      if (this.model.at[row] > to) break;
      if (this.model.end(row) >= from) best = row;
    }
    return best;
  }

  #listen() {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      const { x, row } = this.#at(event);
      if (row >= 0) this.chosen(row);
      else this.sought(this.time(x));
      this.drag = { moved: false, onBar: row >= 0 };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const { x, row } = this.#at(event);
      if (this.drag && (this.drag.moved || !this.drag.onBar || Math.abs(event.movementX) > 2)) {
        this.drag.moved = true;
        this.sought(this.time(x));
        return;
      }
      this.#hover(row, event);
    });
    canvas.addEventListener("pointerup", () => {
      this.drag = undefined;
    });
    canvas.addEventListener("pointerleave", (event) => this.#hover(-1, event));
    canvas.addEventListener("dblclick", () => this.fit());
  }

  #wheel(event) {
    const box = this.canvas.getBoundingClientRect();
    const span = this.to - this.from;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.#view(this.from + ((event.deltaX || event.deltaY) / this.width) * span, span);
    } else if (event.ctrlKey || event.metaKey || this.scroll.scrollHeight <= this.scroll.clientHeight + 1) {
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.time(event.clientX - box.left));
    }
  }

  #hover(row, event) {
    if (row !== this.paint.hover) {
      this.paint.hover = row;
      this.draw();
    }
    this.canvas.classList.toggle("over", row >= 0);
    this.tip.hidden = row < 0;
    if (row < 0) return;
    const { model } = this;
    const took =
      model.took[row] === MOMENT ? "" : model.inFlight(row) ? "never ended" : duration(model.took[row]);
    fill(
      this.tip,
      h("strong", {}, model.text("name", row)),
      " ",
      h("span", { class: "quiet" }, `at ${position(model.at[row], model.total)}${took ? ` · ${took}` : ""}`),
      model.text("brief", row) ? h("div", { class: "tip-brief" }, model.text("brief", row)) : null,
      model.failed(row) ? h("div", { class: "bad" }, model.text("fail", row)) : null,
    );
    const box = this.node.getBoundingClientRect();
    const x = Math.min(event.clientX - box.left + 12, box.width - this.tip.offsetWidth - 8);
    this.tip.style.transform = `translate(${Math.max(4, x)}px, ${event.clientY - box.top + 16}px)`;
  }

  end() {
    this.sizes.disconnect();
  }
}

// Rows of one line never overlap, so their ends are in order, too.
function firstEnding(model, rows, from) {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (model.end(rows[middle]) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}
