// A call as something to paste: a curl command, Python, a fixture. Pure.

export function forms(item) {
  const out = [];
  const isHttp = typeof item.request?.url === "string" && typeof item.request?.method === "string";
  if (isHttp) out.push(["curl", () => curl(item.request)]);
  const asPython = python(item, isHttp);
  if (asPython !== null) out.push(["Python", () => asPython]);
  if (item.type === "call") out.push(["fixture", () => JSON.stringify(fixture(item), null, 2)]);
  out.push(["JSON", () => JSON.stringify(item, null, 2)]);
  return out;
}

export function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function pairs(headers) {
  return Array.isArray(headers) ? headers : Object.entries(headers ?? {});
}

function curl(request) {
  const words = ["curl", "-X", request.method, quoted(request.url)];
  for (const [name, value] of pairs(request.headers)) words.push("\\\n  -H", quoted(`${name}: ${value}`));
  const { body } = request;
  if (typeof body?.text === "string" && body.text) words.push("\\\n  --data-raw", quoted(body.text));
  const command = words.join(" ");
  return typeof body?.b64 === "string"
    ? `echo ${body.b64} | base64 -d | ${command} \\\n  --data-binary @-`
    : command;
}

// JSON literals as Python literals; the rest of the syntax is the same.
export function literal(value, indent = "") {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const deeper = `${indent}    `;
  const isList = Array.isArray(value);
  const members = isList
    ? value.map((one) => `${deeper}${literal(one, deeper)},\n`)
    : Object.entries(value).map(
        ([name, one]) => `${deeper}${JSON.stringify(name)}: ${literal(one, deeper)},\n`,
      );
  const [left, right] = isList ? "[]" : "{}";
  return members.length ? `${left}\n${members.join("")}${indent}${right}` : left + right;
}

function python(item, isHttp) {
  if (isHttp) {
    const { method, url, headers, body } = item.request;
    const given = [
      `    ${JSON.stringify(method)},\n    ${JSON.stringify(url)},\n    headers=${literal(Object.fromEntries(pairs(headers)), "    ")},\n`,
    ];
    const json = typeof body?.text === "string" ? read(body.text) : undefined;
    if (json !== undefined) given.push(`    json=${literal(json, "    ")},\n`);
    else if (typeof body?.text === "string" && body.text)
      given.push(`    content=${JSON.stringify(body.text)},\n`);
    else if (typeof body?.b64 === "string")
      given.push(`    content=base64.b64decode(${JSON.stringify(body.b64)}),\n`);
    const imports = typeof body?.b64 === "string" ? "import base64\n\nimport httpx\n" : "import httpx\n";
    return `${imports}\nresponse = httpx.request(\n${given.join("")})\n`;
  }
  if (item.boundary === "process" && Array.isArray(item.request?.argv)) {
    const where = item.request.cwd ? `, cwd=${JSON.stringify(item.request.cwd)}` : "";
    return `import subprocess\n\ndone = subprocess.run(${literal(item.request.argv)}${where}, capture_output=True, text=True)\n`;
  }
  if (item.request && typeof item.request === "object" && "arguments" in item.request) {
    const given = item.request.arguments;
    const named = given && typeof given === "object" && !Array.isArray(given);
    const words = named
      ? Object.entries(given)
          .map(([name, one]) => `${name}=${literal(one)}`)
          .join(", ")
      : literal(given);
    return `${item.name.replace(/\W/g, "_")}(${words})\n`;
  }
  return null;
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function fixture(item) {
  const response = item.llm?.[0]?.response;
  if (response) {
    const text = response.parts
      .filter((part) => part.type === "text")
      .map((part) => part.text)
      .join("");
    const calls = response.parts
      .filter((part) => part.type === "tool_use")
      .map(({ id, name, arguments: given }) => ({ id, name, arguments: given }));
    return {
      model: response.model,
      text,
      tool_calls: calls,
      stop_reason: response.stop_reason,
      usage: response.usage,
    };
  }
  if (item.request && typeof item.request === "object" && "arguments" in item.request) {
    return { name: item.name, arguments: item.request.arguments, result: item.value, how: item.how };
  }
  return {
    name: item.name,
    request: item.request,
    head: item.head,
    streams: item.plain_body ? { ...item.streams, body: item.plain_body } : item.streams,
    value: item.value,
    how: item.how,
  };
}
