// Packs items into lanes, and into lines within a lane, so that none covers another. Pure.

const MOST_LINES = 12;

// [{name, rows: [rows of line 0 in time, of line 1, …]}]; overlapping items go one line down. If a lane
// has more concurrent items than lines, the last line takes those that fit; the tree still shows the rest.
export function pack(model) {
  const lanes = model.lanes.map((name) => ({ name, rows: [], ends: [] }));
  for (const row of model.order) {
    const group = model.groupOf(row);
    if (group === "person" || group === "hook" || group === "output") continue;
    const lane = lanes[model.lane[row]];
    let line = lane.ends.findIndex((end) => end <= model.at[row]);
    if (line < 0) line = lane.rows.length;
    if (line >= MOST_LINES) continue;
    if (line === lane.rows.length) {
      lane.rows.push([]);
      lane.ends.push(0);
    }
    lane.rows[line].push(row);
    lane.ends[line] = model.end(row);
  }
  return lanes
    .filter((lane) => lane.rows.length)
    .sort((one, other) => one.name.localeCompare(other.name, "en", { numeric: true }))
    .map(({ name, rows }) => ({ name, rows: rows.map((one) => Int32Array.from(one)) }));
}
