// Packs items into lanes, and into lines within a lane, so that none covers another. Pure.

const MOST_LINES = 12;
// Sibling lanes that are drawn as one: a pool of threads makes a lane for each task, mostly with one bar.
const POOL = 4;

// [{name, rows: [rows of line 0 in time, of line 1, …]}]; overlapping items go one line down. If a lane
// has more concurrent items than lines, the last line takes those that fit; the tree still shows the rest.
export function pack(model) {
  const drawn = model.order.filter((row) => !["person", "hook", "output"].includes(model.groupOf(row)));
  const groups = grouped(new Set(Array.from(drawn, (row) => model.lanes[model.lane[row]])));
  const lanes = new Map();
  for (const row of drawn) {
    const { name, lines } = groups.get(model.lanes[model.lane[row]]);
    if (!lanes.has(name)) lanes.set(name, { name, rows: [], ends: [] });
    const lane = lanes.get(name);
    let line = lane.ends.findIndex((end) => end <= model.at[row]);
    if (line < 0) line = lane.rows.length;
    if (line >= lines) continue;
    if (line === lane.rows.length) {
      lane.rows.push([]);
      lane.ends.push(0);
    }
    lane.rows[line].push(row);
    lane.ends[line] = model.end(row);
  }
  return [...lanes.values()]
    .sort((one, other) => one.name.localeCompare(other.name, "en", { numeric: true }))
    .map(({ name, rows }) => ({ name, rows: rows.map((one) => Int32Array.from(one)) }));
}

// Lane name → what it is drawn in: the lane itself, or `main/1…12` for a pool of siblings and all lanes below them.
function grouped(names) {
  const children = new Map();
  for (const name of names) {
    for (const [parent, child] of numbered(name)) {
      if (!children.has(parent)) children.set(parent, new Set());
      children.get(parent).add(child);
    }
  }
  const found = new Map();
  for (const name of names) {
    const pool = numbered(name).find(([parent]) => children.get(parent).size >= POOL);
    if (!pool) found.set(name, { name, lines: MOST_LINES });
    else {
      const numbers = [...children.get(pool[0])];
      const [first, last] = [Math.min(...numbers), Math.max(...numbers)];
      found.set(name, { name: `${pool[0]}/${first}…${last}`, lines: 2 * MOST_LINES });
    }
  }
  return found;
}

// `main/3/1` → [["main", 3], ["main/3", 1]].
function numbered(name) {
  const parts = name.split("/");
  return parts
    .map((part, at) => [parts.slice(0, at).join("/"), part])
    .filter(([parent, part]) => parent && /^\d+$/.test(part))
    .map(([parent, part]) => [parent, Number(part)]);
}
