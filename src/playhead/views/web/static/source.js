// Loads runs from a server, or from the blocks of a single-file page.

import { rooted } from "./address.js";
import { unpack } from "./packed.js";

export class ServerSource {
  constructor() {
    this.embedded = false;
    this.details = new Map();
  }

  async #get(path) {
    const response = await fetch(path, { headers: { accept: "application/json" } });
    if (!response.ok) throw await refusal(response);
    return response.json();
  }

  runs(query) {
    return this.#get(rooted(`/api/recordings?${new URLSearchParams(query)}`));
  }
  // Runs of the shared store, which have no figures.
  sharedRuns(query) {
    return this.#get(rooted(`/api/remote?${new URLSearchParams(query)}`));
  }
  stats(by, filters = {}) {
    return this.#get(rooted(`/api/stats?${new URLSearchParams({ by, ...filters })}`));
  }
  // `first`: number of events that are enough if the server has not cached the run; the answer then has `partial`.
  run(id, first = null) {
    return this.#get(first === null ? run(id) : `${run(id)}?first=${first}`);
  }
  report(id) {
    return this.#get(`${run(id)}/report`);
  }
  comments(id) {
    return this.#get(`${run(id)}/comments`);
  }
  comment(id, text) {
    return this.#send("POST", `${run(id)}/comments`, { text });
  }
  removeComment(id, comment) {
    return this.#send("DELETE", `${run(id)}/comments/${encodeURIComponent(comment)}`);
  }

  async #send(method, path, body) {
    const headers = { accept: "application/json", ...(body ? { "content-type": "application/json" } : {}) };
    const response = await fetch(path, { method, headers, body: body ? JSON.stringify(body) : undefined });
    if (!response.ok) throw await refusal(response);
    return response.json();
  }
  // `stamp` changes while the run grows.
  files(id, stamp) {
    return this.#kept(`${run(id)}/files`, stamp);
  }
  version(id, name) {
    return this.#kept(`${run(id)}/files/${encodeURIComponent(name)}`);
  }
  compare(a, b) {
    return this.#get(rooted(`/api/diff?${new URLSearchParams({ a, b })}`));
  }
  async find(id, text) {
    return (await this.#get(`${run(id)}/find?${new URLSearchParams({ q: text })}`)).refs;
  }

  detail(id, ref, row, stamp = "") {
    return this.#kept(`${run(id)}/items/${encodeURIComponent(ref)}`, stamp);
  }

  // The last answers are kept: moving back and forth asks nothing twice.
  #kept(path, stamp = "") {
    const key = path + stamp;
    if (!this.details.has(key)) {
      if (this.details.size > 60) this.details.delete(this.details.keys().next().value);
      const asked = this.#get(path);
      asked.catch(() => this.details.delete(key));
      this.details.set(key, asked);
    }
    return this.details.get(key);
  }

  // Calls `heard` when the run has more than the `known` events, and `ended` once when it ends; returns
  // how to stop.
  follow(id, known, heard, ended) {
    return listen(`${run(id)}/events?after=${known}`, heard, ended);
  }

  followRuns(heard) {
    return listen(rooted("/api/live"), heard, () => {});
  }
}

function run(id) {
  return rooted(`/api/recordings/${encodeURIComponent(id)}`);
}

function listen(path, heard, ended) {
  const stream = new EventSource(path);
  stream.onmessage = heard;
  stream.addEventListener("end", () => {
    stream.close();
    ended();
  });
  return () => stream.close();
}

// The reason, and how many seconds later one may ask again, if that is of use.
async function refusal(response) {
  const error = new Error(await reason(response));
  error.again = response.status === 503 ? Number(response.headers.get("retry-after")) || 5 : 0;
  return error;
}

async function reason(response) {
  try {
    const told = await response.json();
    return [told.error.reason, told.error.next].filter(Boolean).join(" ");
  } catch {
    return `${response.status} ${response.statusText}`;
  }
}

// For requests that may exceed the server's timeout.
export async function patiently(ask) {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!error.again) throw error;
      await new Promise((done) => setTimeout(done, error.again * 1000));
    }
  }
}

// A page of one file: blocks of base64 in the page, each a compressed JSON value.
export class EmbeddedSource {
  constructor(start) {
    this.embedded = true;
    this.start = start;
    this.groups = new Map();
  }

  async run() {
    return { summary: null, model: await block("outline") };
  }
  report() {
    return block("report");
  }

  async files() {
    this.index ??= block("files");
    return this.index;
  }

  // null: this version was left out of the page.
  async version(id, name) {
    const { held } = await this.files();
    if (!Object.hasOwn(held, name)) return null;
    const group = await this.#group(`file-texts-${held[name]}`);
    return unpack(group.items[name], group.texts);
  }

  async detail(id, ref, row) {
    let number = this.start.groups.length - 1;
    while (number > 0 && this.start.groups[number] > row) number--;
    const group = await this.#group(`detail-${number}`);
    return group.items[ref] === undefined ? null : unpack(group.items[ref], group.texts);
  }

  #group(name) {
    if (!this.groups.has(name)) {
      if (this.groups.size > 3) this.groups.delete(this.groups.keys().next().value);
      this.groups.set(
        name,
        block(name).then((raw) => ({ ...raw, texts: unpack.texts(raw.texts) })),
      );
    }
    return this.groups.get(name);
  }

  async find(id, text) {
    const wanted = text.trim().toLowerCase();
    const refs = [];
    for (let number = 0; number < this.start.groups.length; number++) {
      const group = await this.#group(`detail-${number}`);
      const hit = group.texts.map((one) => one.toLowerCase().includes(wanted));
      for (const [ref, item] of Object.entries(group.items))
        if (holds(searched(item), wanted, hit)) refs.push(ref);
    }
    return refs;
  }
}

// As run_reading.py does: of an LLM exchange, only the texts that are new in it.
function searched(item) {
  if (!item.llm?.length) return item;
  return [
    item.name,
    item.failure,
    item.llm.map(({ request, response }) => {
      const last = request.messages.findLastIndex((one) => one.role === "assistant");
      return [request.system, request.messages.slice(last + 1), response?.parts];
    }),
  ];
}

function holds(value, wanted, hit) {
  if (typeof value === "string") return value.toLowerCase().includes(wanted);
  if (value === null || typeof value !== "object") return false;
  if (typeof value.$t === "number") return hit[value.$t];
  return Object.values(value).some((member) => holds(member, wanted, hit));
}

export function hasBlocks() {
  return document.querySelector("script[data-block=start]") !== null;
}

export async function block(name) {
  const node = document.querySelector(`script[data-block="${CSS.escape(name)}"]`);
  if (node === null) throw new Error(`This page holds no ${name}.`);
  const raw = Uint8Array.from(atob(node.textContent), (one) => one.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}
