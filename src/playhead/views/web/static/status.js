// The badge that says how a run ended: the verdict of a replay, else the status of its program.

import { h } from "./dom.js";

const TONES = new Set(["ok", "failed", "interrupted", "running"]);

export function statusBadge(run) {
  const { word, tone } = run.ending ?? { word: run.status, tone: run.status };
  return h("span", { class: `status status-${TONES.has(tone) ? tone : "failed"}` }, word);
}
