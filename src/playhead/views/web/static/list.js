// A virtual list: only the visible rows are in the DOM. All rows have the same height.

import { h } from "./dom.js";

const SPARE = 8;

export class VirtualList {
  // `draw(index)` makes the node of a row; `role` is that of the list as a whole.
  constructor({ height, draw, role, label }) {
    this.rowHeight = height;
    this.draw = draw;
    this.length = 0;
    this.drawn = new Map();
    this.space = h("div", { class: "list-space", role: "presentation" });
    this.node = h("div", { class: "list", role, "aria-label": label, tabindex: 0 }, this.space);
    this.node.addEventListener("scroll", () => this.#soon(), { passive: true });
    this.sizes = new ResizeObserver(() => this.#soon());
    this.sizes.observe(this.node);
  }

  #soon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.#render();
    });
  }

  // Draws everything again after the rows have changed.
  reset(length) {
    this.length = length;
    this.space.style.height = `${length * this.rowHeight}px`;
    for (const node of this.drawn.values()) node.remove();
    this.drawn.clear();
    this.#render();
  }

  // Redraws the visible rows after a change of their contents.
  refresh(index) {
    if (index !== undefined) {
      const old = this.drawn.get(index);
      if (old) old.replaceWith(this.#place(index));
      return;
    }
    for (const at of [...this.drawn.keys()]) this.refresh(at);
  }

  #place(index) {
    const node = this.draw(index);
    node.style.transform = `translateY(${index * this.rowHeight}px)`;
    this.drawn.set(index, node);
    return node;
  }

  #render() {
    const top = Math.floor(this.node.scrollTop / this.rowHeight);
    const first = Math.max(0, top - SPARE);
    const last = Math.min(this.length, top + Math.ceil(this.node.clientHeight / this.rowHeight) + SPARE);
    for (const [index, node] of this.drawn) {
      if (index < first || index >= last) {
        node.remove();
        this.drawn.delete(index);
      }
    }
    const fresh = document.createDocumentFragment();
    for (let index = first; index < last; index++) {
      if (!this.drawn.has(index)) fresh.append(this.#place(index));
    }
    this.space.append(fresh);
  }

  get page() {
    return Math.max(1, Math.floor(this.node.clientHeight / this.rowHeight) - 1);
  }

  scrollTo(index, where = "near") {
    const top = index * this.rowHeight;
    const view = this.node.clientHeight;
    const from = this.node.scrollTop;
    if (where === "near" && top >= from && top + this.rowHeight <= from + view) return;
    if (where === "middle" || top < from - view || top > from + 2 * view) {
      this.node.scrollTop = top - view / 2;
    } else {
      this.node.scrollTop = top < from ? top : top + this.rowHeight - view;
    }
    this.#render();
  }

  end() {
    this.sizes.disconnect();
  }
}
