// Renders the contents of an item: requests, answers, messages, values.

import { styled } from "./ansi.js";
import { divergence } from "./divergence.js";
import { fill, h } from "./dom.js";
import { count, duration, plural, size } from "./format.js";
import { jsonTree, parsed } from "./jsontree.js";
import { markdown } from "./markdown.js";

const MOST_TEXT = 300_000;
const PICTURES = /^image\/(png|jpeg|gif|webp)$/;

export function rendered(item) {
  if (item.type === "turn") return turn(item);
  if (item.type === "event") return note(item);
  return item.llm?.length ? item.llm.map((one) => exchange(one)) : call(item);
}

export function section(title, body, { open = true, note: told = null } = {}) {
  if (body === null || body === undefined) return null;
  return h(
    "details",
    { class: "section", open },
    h(
      "summary",
      {},
      h("span", { class: "section-title" }, title),
      told ? h("span", { class: "quiet" }, told) : null,
    ),
    h("div", { class: "section-body" }, body),
  );
}

export function failureBox(failure) {
  if (!failure) return null;
  const trace = failure.traceback?.length
    ? section("Traceback", h("pre", {}, failure.traceback.join("\n")), {
        open: false,
        note: plural(failure.traceback.length, "frame"),
      })
    : null;
  return h(
    "div",
    { class: "failure-box", role: "note" },
    h("strong", {}, failure.type),
    failure.message ? h("span", {}, `: ${failure.message}`) : null,
    trace,
  );
}

function turn(item) {
  return [
    item.purpose ? h("p", { class: "lead" }, item.purpose) : null,
    item.input === null ? null : section("Input", value(item.input)),
    item.seams.length
      ? section(
          "Seams",
          h(
            "ol",
            { class: "seams" },
            item.seams.map((seam) =>
              h(
                "li",
                {},
                h("strong", {}, seam.name),
                h("span", { class: "quiet" }, ` +${duration(seam.took_ns / 1000)}`),
                seam.value === null ? null : value(seam.value),
              ),
            ),
          ),
        )
      : null,
    item.value === null ? null : section("Result", value(item.value)),
  ];
}

function note(item) {
  const { data } = item;
  if (item.kind === "output" && typeof data?.text === "string")
    return h("pre", { class: "terminal" }, styled(data.text).nodes);
  if (item.kind === "divergence" && data?.kind) return divergence(data, { isOpen: true, value });
  return data === null ? h("p", { class: "quiet" }, "This event has no data.") : value(data);
}

function call(item) {
  const body = item.request?.body;
  const given =
    item.request && typeof item.request === "object" && "arguments" in item.request
      ? item.request.arguments
      : null;
  const out = [];
  if (given !== null) out.push(section("Arguments", value(given)));
  else if (item.boundary === "http")
    out.push(
      section(`${item.request?.method ?? ""} ${item.request?.url ?? item.name}`, [
        headers(item.request?.headers),
        body ? payload(body) : null,
      ]),
    );
  else if (item.boundary === "process")
    out.push(
      section(
        "Command",
        h("pre", { class: "terminal" }, item.facts.command ?? (item.request?.argv ?? []).join(" ")),
      ),
      section("Started with", value(item.request), { open: false }),
    );
  else if (item.request !== null) out.push(section("Request", value(item.request)));
  if (item.boundary === "http" && item.head) {
    const plain = item.plain_body ?? item.streams.body;
    out.push(
      section(`${item.head.status ?? ""} ${item.head.reason ?? ""}`, [
        headers(item.head.headers),
        plain ? payload(plain, contentType(item.head)) : null,
      ]),
    );
  } else {
    for (const [name, stream] of Object.entries(item.streams))
      out.push(section(name, payload(stream), { note: size(length(stream)) }));
  }
  if (item.boundary === "process" && item.how) out.push(h("p", { class: "quiet" }, ending(item.outcome)));
  else if (item.value !== null && item.value !== undefined) out.push(section("Result", value(item.value)));
  return out;
}

function ending(outcome) {
  if (outcome.signal) return `Ended by signal ${outcome.signal}.`;
  return outcome.exit_code === undefined ? "" : `Exit code ${outcome.exit_code}.`;
}

function headers(given) {
  const pairs = Array.isArray(given) ? given : Object.entries(given ?? {});
  if (!pairs.length) return null;
  const rows = pairs.map(([name, one]) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, String(one))),
  );
  return h(
    "details",
    { class: "headers" },
    h("summary", {}, `${pairs.length} headers`),
    h("table", {}, h("tbody", {}, rows)),
  );
}

function contentType(head) {
  const pairs = Array.isArray(head.headers) ? head.headers : Object.entries(head.headers ?? {});
  return String(pairs.find(([name]) => String(name).toLowerCase() === "content-type")?.[1] ?? "")
    .split(";")[0]
    .trim();
}

function length(stream) {
  return stream.text === undefined ? Math.floor(((stream.b64 ?? "").length * 3) / 4) : stream.text.length;
}

function payload(stream, type = "") {
  if (stream.text === undefined) {
    if (PICTURES.test(type)) return picture(type, stream.b64);
    return h("p", { class: "quiet" }, `${size(length(stream))} of binary data: see Raw.`);
  }
  const json = parsed(stream.text);
  if (json !== undefined) return jsonTree(json);
  return /markdown/.test(type) ? markdown(stream.text) : pre(stream.text);
}

function pre(text) {
  if (text.length <= MOST_TEXT) return h("pre", { class: "terminal" }, styled(text).nodes);
  const node = h("pre", { class: "terminal" }, styled(text.slice(0, MOST_TEXT)).nodes);
  const more = h(
    "button",
    {
      type: "button",
      class: "link",
      onclick: () => {
        fill(node, styled(text).nodes);
        more.remove();
      },
    },
    `${count(text.length - MOST_TEXT)} more characters`,
  );
  return [node, more];
}

export function value(one) {
  if (typeof one === "string") {
    const json = parsed(one);
    if (json !== undefined) return jsonTree(json);
    return /\n|[*_`#]/.test(one) ? markdown(one) : h("p", { class: "plain" }, one);
  }
  const pictures = picturesIn(one)
    .slice(0, 6)
    .map(({ type, data }) => picture(type, data));
  return pictures.length ? [pictures, jsonTree(one)] : jsonTree(one);
}

// Blocks with a picture, as tools and MCP servers give them back.
function picturesIn(one, depth = 0) {
  if (one === null || typeof one !== "object" || depth > 4) return [];
  const type = one.mimeType ?? one.media_type;
  if (typeof one.data === "string" && PICTURES.test(type ?? "")) return [{ type, data: one.data }];
  return Object.values(one)
    .slice(0, 50)
    .flatMap((member) => picturesIn(member, depth + 1));
}

function picture(type, data) {
  if (!PICTURES.test(type ?? "") || !/^[A-Za-z0-9+/=\s]+$/.test(data ?? ""))
    return h("p", { class: "quiet" }, `A picture of type ${type ?? "?"} that is not shown.`);
  return h("img", {
    class: "picture",
    src: `data:${type};base64,${data}`,
    alt: "A picture in the conversation",
  });
}

// An LLM exchange: the response first, since readers look for it, then the request.
function exchange({ request, response }) {
  const last = request.messages.length - 1;
  const messages = request.messages.map((one, at) => message(one.role, one.parts, at === last));
  return h(
    "div",
    { class: "exchange" },
    h(
      "div",
      { class: "answer" },
      response ? answer(response) : h("p", { class: "quiet" }, "No response was recorded."),
    ),
    section(
      "Prompt",
      h(
        "div",
        { class: "messages" },
        request.system ? message("system", [{ type: "text", text: request.system }], false) : null,
        messages,
      ),
      { note: plural(request.messages.length, "message") },
    ),
    request.tools.length
      ? section("Tools offered", request.tools.map(tool), { open: false, note: String(request.tools.length) })
      : null,
    Object.keys(request.params).length
      ? section("Parameters", jsonTree(request.params), { open: false })
      : null,
  );
}

function answer(response) {
  const why = response.complete
    ? null
    : h("p", { class: "odd" }, `The answer is not complete: ${response.reason ?? "it was cut"}.`);
  return [message("assistant", response.parts, true, response.stop_reason), why];
}

function message(role, parts, isOpen, told = null) {
  const text = parts.map(briefly).join(" ").replace(/\s+/g, " ");
  return h(
    "details",
    { class: `message role-${role.replace(/\W/g, "")}`, open: isOpen },
    h(
      "summary",
      {},
      h("span", { class: "role" }, role),
      told ? h("span", { class: "quiet" }, told) : null,
      h("span", { class: "message-brief" }, text.slice(0, 140)),
    ),
    h(
      "div",
      { class: "message-body" },
      parts.length ? parts.map(part) : h("p", { class: "quiet" }, "Empty."),
    ),
  );
}

function briefly(one) {
  if (one.type === "tool_result") return `← ${one.content.map(briefly).join(" ")}`;
  return one.type === "tool_use" ? `→ ${one.name}` : (one.text ?? one.type).slice(0, 200);
}

function part(one) {
  if (one.type === "text") return markdown(one.text);
  if (one.type === "refusal") return h("div", { class: "odd" }, markdown(one.text));
  if (one.type === "thinking")
    return h(
      "details",
      { class: "thinking", open: one.text.length < 600 },
      h("summary", {}, one.redacted ? "Thinking (hidden by the provider)" : "Thinking"),
      markdown(one.text),
    );
  if (one.type === "tool_use")
    return h(
      "div",
      { class: "use" },
      h(
        "div",
        { class: "use-name" },
        "→ ",
        h("strong", {}, one.name ?? "?"),
        one.complete ? null : h("span", { class: "odd" }, " (cut off)"),
      ),
      value(one.arguments),
    );
  if (one.type === "tool_result")
    return h(
      "div",
      { class: one.is_error ? "use result bad-edge" : "use result" },
      h(
        "div",
        { class: "use-name" },
        "← ",
        one.name ?? "result",
        one.is_error ? h("span", { class: "bad" }, " failed") : null,
      ),
      one.content.map(resultPart),
    );
  if (one.type === "image")
    return one.data
      ? picture(one.media_type, one.data)
      : h("p", { class: "quiet" }, `Picture at ${one.url ?? "?"} (not fetched)`);
  return jsonTree(one.data ?? one);
}

function resultPart(one) {
  return one.type === "text" ? value(one.text) : part(one);
}

function tool(one) {
  return h(
    "details",
    { class: "tool-offer" },
    h(
      "summary",
      {},
      h("strong", {}, one.name ?? one.type ?? "?"),
      one.description ? h("span", { class: "quiet" }, ` ${one.description.slice(0, 120)}`) : null,
    ),
    one.description && one.description.length > 120 ? markdown(one.description) : null,
    one.schema ? jsonTree(one.schema) : null,
  );
}

// A prompt as lines of text, for comparing it with the one before.
export function promptText(item) {
  return (item.llm ?? [])
    .map(({ request }) => {
      const out = [];
      if (request.system) out.push("── system", request.system);
      for (const one of request.messages) out.push(`── ${one.role}`, ...one.parts.map(partText));
      if (request.tools.length)
        out.push("── tools", ...request.tools.map((one) => `${one.name}: ${one.description ?? ""}`));
      out.push("── parameters", `model: ${request.model}`, JSON.stringify(request.params, null, 1));
      return out.join("\n");
    })
    .join("\n");
}

function partText(one) {
  if (one.type === "tool_use") return `→ ${one.name} ${JSON.stringify(one.arguments, null, 1)}`;
  if (one.type === "tool_result") return `← ${one.content.map(partText).join("\n")}`;
  if (one.type === "image") return `[picture ${one.media_type ?? one.url ?? ""} ${(one.data ?? "").length}]`;
  return one.text ?? JSON.stringify(one.data ?? one);
}
