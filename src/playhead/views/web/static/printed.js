// The program's output up to a moment. Knows pieces of text and their times.

import { PLAIN, styled } from "./ansi.js";
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
    const styles = {};
    this.pieces = pieces.map(([at, stream, text]) => {
      const { nodes, style } = styled(text, styles[stream] ?? PLAIN);
      styles[stream] = style;
      return { at, node: h("span", { class: stream === "stderr" ? "stderr" : null }, nodes) };
    });
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
