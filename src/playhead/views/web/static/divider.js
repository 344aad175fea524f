// The divider between two panes, moved by pointer or keys.

import { h } from "./dom.js";

// Sets `--steps` of `node`, in percent.
export function divider(node) {
  const line = h("div", {
    class: "divider",
    role: "separator",
    "aria-orientation": "vertical",
    "aria-label": "Width of the steps",
    "aria-valuemin": 20,
    "aria-valuemax": 75,
    "aria-valuenow": 54,
    tabindex: 0,
  });
  drag(line, node);
  return line;
}

function drag(line, node) {
  const set = (share) => {
    const kept = Math.round(Math.min(75, Math.max(20, share)));
    node.style.setProperty("--steps", `${kept}%`);
    line.setAttribute("aria-valuenow", String(kept));
  };
  line.addEventListener("pointerdown", (event) => {
    line.setPointerCapture(event.pointerId);
    line.classList.add("dragging");
  });
  line.addEventListener("pointermove", (event) => {
    if (!line.classList.contains("dragging")) return;
    const box = line.parentElement.getBoundingClientRect();
    set(((event.clientX - box.left) / box.width) * 100);
  });
  line.addEventListener("pointerup", () => line.classList.remove("dragging"));
  line.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -3, ArrowRight: 3 }[event.key];
    if (!by) return;
    const box = line.parentElement.getBoundingClientRect();
    set(((line.getBoundingClientRect().left - box.left) / box.width) * 100 + by);
    event.preventDefault();
    event.stopPropagation();
  });
}
