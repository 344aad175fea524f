// The changed files of a run, as of any step. Pure: made from the form of files_json.py.

export class FileModel {
  constructor(form) {
    this.form = form;
    this.steps = [...form.steps].sort((one, other) => one.at_us - other.at_us);
    this.files = new Map();
    this.manyFolders = new Set(this.steps.map((one) => one.workspace)).size > 1;
    this.steps.forEach((step, index) => {
      for (const change of step.changes) this.#add(step, change, index + 1);
    });
  }

  #add(step, change, position) {
    const key = `${step.workspace}\n${change.path}`;
    if (!this.files.has(key))
      this.files.set(key, { key, workspace: step.workspace, path: change.path, changes: [] });
    this.files.get(key).changes.push({ position, change });
  }

  // Position 0 is the start of the run, position n is after its nth change.
  get last() {
    return this.steps.length;
  }

  // The position at a moment, in microseconds.
  positionAt(us) {
    let [low, high] = [0, this.steps.length];
    while (low < high) {
      const half = (low + high) >> 1;
      if (this.steps[half].at_us <= us) low = half + 1;
      else high = half;
    }
    return low;
  }

  // The position after a call; -1: the call changed no files.
  positionOf(ref) {
    return this.steps.findLastIndex((one) => one.call_refs.includes(ref)) + 1 || -1;
  }

  step(position) {
    return position > 0 ? this.steps[position - 1] : null;
  }

  // The files that differ from the start, or have differed, at a position: sorted by path.
  at(position) {
    const out = [];
    for (const file of this.files.values()) {
      const seen = file.changes.filter((one) => one.position <= position);
      if (!seen.length) continue;
      const { change, position: changed } = seen.at(-1);
      const start = seen[0].change.before;
      out.push({ ...file, change, changed, start, isNow: changed === position, how: how(start, change.after) });
    }
    return this.#withoutFilledFolders(out).sort(
      (one, other) => one.workspace - other.workspace || (one.path < other.path ? -1 : 1),
    );
  }

  // A folder is listed where nothing in it is: the files say that it is there.
  #withoutFilledFolders(files) {
    const filled = new Set();
    for (const { workspace, path } of files)
      for (let cut = path.lastIndexOf("/"); cut > 0; cut = path.lastIndexOf("/", cut - 1))
        filled.add(`${workspace}\n${path.slice(0, cut)}`);
    return files.filter((one) => !isFolder(one.change.after ?? one.change.before) || !filled.has(one.key));
  }

  // The changes of one call.
  ofCall(ref) {
    return this.steps
      .filter((one) => one.call_refs.includes(ref))
      .flatMap((one) => one.changes.map((change) => ({ change, workspace: one.workspace })))
      .filter(({ change }) => !isFolder(change.after ?? change.before));
  }

  root(workspace) {
    return this.form.workspaces.find((one) => one.workspace === workspace)?.root ?? "";
  }
}

export function isFolder(entry) {
  return entry?.mode.startsWith("4") && entry.mode.length === 5;
}

// How a file differs from the start of the run.
function how(start, now) {
  if (start === null) return now === null ? "restored" : "added";
  if (now === null) return "deleted";
  if (start.id !== now.id) return "modified";
  return start.mode === now.mode ? "restored" : "mode";
}

// Rows of a tree: folders with a single folder in them share a row. `shut` holds the keys of shut folders.
export function treeRows(files, shut, rootOf) {
  const top = { folders: new Map(), files: [] };
  for (const file of files) {
    const parts = file.path.split("/");
    let here = top;
    for (const part of [...(rootOf ? [rootOf(file.workspace)] : []), ...parts.slice(0, -1)]) {
      if (!here.folders.has(part)) here.folders.set(part, { folders: new Map(), files: [] });
      here = here.folders.get(part);
    }
    here.files.push({ file, name: parts.at(-1) });
  }
  const rows = [];
  const walk = (folder, depth, above) => {
    for (const [first, found] of [...folder.folders].sort(([one], [other]) => (one < other ? -1 : 1))) {
      let [name, inner] = [first, found];
      while (inner.folders.size === 1 && !inner.files.length) {
        const [[next, deeper]] = inner.folders;
        [name, inner] = [`${name}/${next}`, deeper];
      }
      const key = `${above}/${name}`;
      const isShut = shut.has(key);
      rows.push({ kind: "folder", key, name, depth, isShut });
      if (!isShut) walk(inner, depth + 1, key);
    }
    for (const { file, name } of folder.files) rows.push({ kind: "file", key: file.key, name, depth, file });
  };
  walk(top, 0, "");
  return rows;
}
