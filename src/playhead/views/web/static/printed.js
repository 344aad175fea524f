// The program's output up to a moment. Knows pieces of text and their times.

import { fill, h } from "./dom.js";

export class Printed {
  constructor() {
    this.node = h("pre", {
      class: "printed",
      tabindex: 0,
      role: "log",
      "aria-label": "What the program printed",
      "aria-live": "off",
      hidden: true,
    });
    this.pieces = [];
  }

  show(pieces) {
    this.pieces = pieces.map(([at, stream, text]) => ({
      at,
      node: h("span", { class: stream === "stderr" ? "stderr" : null }, text),
    }));
    fill(
      this.node,
      this.pieces.map((one) => one.node),
    );
  }

  setNow(now) {
    if (this.node.hidden) return;
    let last = null;
    for (const { at, node } of this.pieces) {
      node.classList.toggle("later", at > now);
      if (at <= now) last = node;
    }
    if (now !== Infinity) last?.scrollIntoView({ block: "nearest" });
  }
}
