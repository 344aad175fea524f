// Splits source text into coloured tokens, line by line. Pure; knows a few words of each language, not its
// grammar. Runs in linear time: every pattern is sticky and consumes at least one character.

const LONGEST_LINE = 2000;
const LARGEST = 400_000;

const words = (text) => new Set(text.split(" "));
const C_LIKE =
  "break case catch class const continue default do else enum extends finally for goto if implements import in " +
  "instanceof interface new package private protected public return static super switch this throw throws try " +
  "typeof var void volatile while";
const C = { line: ["//"], block: ["/*", "*/"] };
const LANGUAGES = {
  python: {
    line: ["#"],
    long: ['"""', "'''"],
    words: words(
      "and as assert async await break case class continue def del elif else except finally for from global if " +
        "import in is lambda match nonlocal not or pass raise return try while with yield",
    ),
    values: words("True False None self cls"),
    prefix: "[rRbBfFuU]{0,2}",
  },
  javascript: {
    ...C,
    long: ["`"],
    words: words(`${C_LIKE} async await debugger delete export from function get let of set with yield`),
    values: words("true false null undefined NaN Infinity this"),
  },
  typescript: {
    ...C,
    long: ["`"],
    words: words(
      `${C_LIKE} abstract any as async await boolean declare delete export from function get keyof let namespace ` +
        "never number object of readonly set string type unknown yield",
    ),
    values: words("true false null undefined this"),
  },
  c: {
    ...C,
    words: words(
      `${C_LIKE} auto bool char constexpr delete double explicit extern final float friend inline int long namespace ` +
        "operator override register short signed sizeof struct template typedef union unsigned using virtual",
    ),
    values: words("true false NULL nullptr this null"),
    hash: true,
  },
  java: {
    ...C,
    words: words(
      `${C_LIKE} abstract assert bool boolean byte char double final float fun int long native record sealed short ` +
        "string struct synchronized val when override using namespace",
    ),
    values: words("true false null this super"),
  },
  go: {
    ...C,
    long: ["`"],
    words: words(
      "break case chan const continue default defer else fallthrough for func go goto if import interface map " +
        "package range return select struct switch type var",
    ),
    values: words("true false nil iota"),
  },
  rust: {
    ...C,
    words: words(
      "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut " +
        "pub ref return static struct super trait type unsafe use where while",
    ),
    values: words("true false self Self None Some Ok Err"),
    quotes: '"',
  },
  ruby: {
    line: ["#"],
    words: words(
      "alias and begin break case class def do else elsif end ensure for if in module next not or redo require " +
        "rescue retry return then unless until when while yield",
    ),
    values: words("true false nil self"),
  },
  shell: {
    line: ["#"],
    spaced: true,
    words: words(
      "case do done elif else esac export fi for function if in local readonly return select set then until while",
    ),
    values: words("true false"),
    variable: true,
  },
  sql: {
    line: ["--"],
    block: ["/*", "*/"],
    folded: true,
    words: words(
      "add all alter and as asc begin between by case commit create delete desc distinct drop else end exists " +
        "foreign from group having in index insert into is join key left like limit not on or order outer primary " +
        "references select set table then union unique update values view when where with",
    ),
    values: words("null true false"),
  },
  css: { block: ["/*", "*/"], words: words(""), values: words("none auto inherit"), keys: true },
  json: { line: ["//"], words: words(""), values: words("true false null"), keys: true },
  config: {
    line: ["#", ";"],
    spaced: true,
    long: ['"""'],
    words: words(""),
    values: words("true false null yes no on off"),
    keys: true,
    sections: true,
  },
};
const BY_ENDING = {
  python: "py pyi pyx pyw",
  javascript: "js mjs cjs jsx",
  typescript: "ts tsx mts cts",
  c: "c h cc cpp cxx hpp hh m",
  java: "java kt kts cs scala swift dart php",
  go: "go",
  rust: "rs",
  ruby: "rb gemspec",
  shell: "sh bash zsh fish dockerfile makefile mk justfile",
  sql: "sql",
  css: "css scss less",
  json: "json jsonc jsonl geojson ipynb",
  config: "toml yaml yml ini cfg conf env properties lock gitignore editorconfig",
  markup: "html htm xml svg vue xhtml plist",
  markdown: "md markdown mdx rst",
};
const ENDINGS = new Map(
  Object.entries(BY_ENDING).flatMap(([name, list]) => list.split(" ").map((ending) => [ending, name])),
);

export function languageOf(path, text = "") {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  const found = ENDINGS.get(name.slice(name.lastIndexOf(".") + 1));
  if (found) return found;
  const [, shebang] = /^#![^\n]*\b(python|node|bash|sh|ruby)/.exec(text.slice(0, 200)) ?? [];
  return { python: "python", node: "javascript", bash: "shell", sh: "shell", ruby: "ruby" }[shebang] ?? null;
}

// The language of a fenced block: "python", "py", "sh".
export function languageNamed(word) {
  const name = word.toLowerCase();
  return Object.hasOwn(BY_ENDING, name) ? name : (ENDINGS.get(name) ?? null);
}

// One list of [class, text] pairs per line; class "" is plain text. null: this text is not coloured.
export function tokens(lines, language) {
  if (!language || lines.reduce((sum, line) => sum + line.length, 0) > LARGEST) return null;
  const read = { markup, markdown }[language] ?? source(LANGUAGES[language]);
  const state = { until: null, kind: "" };
  return lines.map((line) => {
    const out = [];
    read(line.slice(0, LONGEST_LINE), state, out);
    if (line.length > LONGEST_LINE) push(out, "", line.slice(LONGEST_LINE));
    return out;
  });
}

function push(out, kind, text) {
  if (!text) return;
  if (out.length && out.at(-1)[0] === kind) out.at(-1)[1] += text;
  else out.push([kind, text]);
}

// Ends an open comment or string that began on an earlier line. Returns the place after it.
function finish(line, at, state, out) {
  const end = line.indexOf(state.until, at);
  const stop = end < 0 ? line.length : end + state.until.length;
  push(out, state.kind, line.slice(at, stop));
  if (end >= 0) state.until = null;
  return stop;
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// A reader for a language with comments, strings, numbers and words.
function source(spec) {
  const quotes = spec.quotes ?? "\"'";
  const strings = [...quotes].map((one) => `${one}(?:\\\\.|[^${one}\\\\])*${one}?`).join("|");
  const comment = (spec.line ?? []).map((one) => `${spec.spaced ? "(?<![^\\s])" : ""}${escaped(one)}.*`);
  const opening = [...(spec.long ?? []), ...(spec.block ? [spec.block[0]] : [])].map(escaped);
  const parts = [
    opening.length ? `(?<open>${spec.prefix ?? ""}(?:${opening.join("|")}))` : "(?<open>(?!))",
    comment.length ? `(?<comment>${comment.join("|")})` : "(?<comment>(?!))",
    `(?<string>${spec.prefix ? `${spec.prefix}(?:${strings})` : `(?:${strings})`})`,
    spec.variable ? "(?<variable>\\$(?:\\{[^}]*\\}?|\\w+|.))" : "(?<variable>(?!))",
    "(?<number>\\b(?:0[xXbBoO][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\w*)",
    spec.hash ? "(?<rule>^\\s*#\\s*\\w+)" : "(?<rule>(?<![\\w.)\\]])@[\\w.]+)",
    `(?<word>${spec.keys ? "[A-Za-z_$][\\w$.-]*" : "[A-Za-z_$][\\w$]*"})`,
    "(?<space>\\s+)",
    "(?<other>.)",
  ];
  const pattern = new RegExp(parts.join("|"), "suy");
  return (line, state, out) => {
    let at = state.until === null ? 0 : finish(line, 0, state, out);
    if (at === 0 && spec.sections && /^\s*\[/.test(line)) {
      push(out, "type", line);
      return;
    }
    while (at < line.length) {
      pattern.lastIndex = at;
      const hit = pattern.exec(line);
      if (hit === null) {
        push(out, "", line.slice(at));
        return;
      }
      at = pattern.lastIndex;
      if (hit.groups.open !== undefined) at = open(spec, line, at, hit.groups.open, state, out);
      else push(out, kindOf(spec, hit.groups, line, at), hit[0]);
    }
  };
}

function open(spec, line, at, mark, state, out) {
  const isComment = spec.block && mark.endsWith(spec.block[0]);
  push(out, isComment ? "comment" : "string", mark);
  state.kind = isComment ? "comment" : "string";
  state.until = isComment ? spec.block[1] : spec.long.find((one) => mark.endsWith(one));
  return finish(line, at, state, out);
}

function kindOf(spec, groups, line, end) {
  if (groups.comment !== undefined) return "comment";
  if (groups.string !== undefined) return spec.keys && isKey(line, end) ? "key" : "string";
  if (groups.number !== undefined) return "number";
  if (groups.variable !== undefined) return "variable";
  if (groups.rule !== undefined) return "rule";
  const { word } = groups;
  if (word === undefined) return "";
  const known = spec.folded ? word.toLowerCase() : word;
  if (spec.words.has(known)) return "keyword";
  if (spec.values.has(known)) return "value";
  if (spec.keys) return isKey(line, end) ? "key" : "";
  if (line[end] === "(") return "call";
  return /^[A-Z][a-z]/.test(word) ? "type" : "";
}

const isKey = (line, end) => /^\s*[:=]/.test(line.slice(end, end + 40));

const TAG = /<\/?[\w:.-]+|<!(?!--)[^>]*>?|\/?>|[\w:@.-]+(?==)|"[^"]*"?|'[^']*'?|\s+|./suy;
const PROSE = /[^<&]+|&[\w#]+;|<(?=[/!\w])|./suy;

function markup(line, state, out) {
  let at = state.until === null ? 0 : finish(line, 0, state, out);
  while (at < line.length) {
    if (line.startsWith("<!--", at)) {
      Object.assign(state, { until: "-->", kind: "comment" });
      at = finish(line, at, state, out);
      continue;
    }
    const pattern = state.inTag || /^<[/!\w]/.test(line.slice(at, at + 2)) ? TAG : PROSE;
    pattern.lastIndex = at;
    const [text] = pattern.exec(line);
    at += text.length;
    push(out, pattern === TAG ? tagKind(text, state) : text[0] === "&" ? "value" : "", text);
  }
}

function tagKind(text, state) {
  if (text[0] === "<") state.inTag = !text.endsWith(">");
  else if (text.endsWith(">") && text.length <= 2) state.inTag = false;
  if (/^[</>]/.test(text)) return "keyword";
  if (/^["']/.test(text)) return "string";
  return /^[\w:@.-]/.test(text) ? "key" : "";
}

const INLINE = /`[^`]*`?|\*\*[^*]+\*\*|\[[^\]]*\]\([^)]*\)|[^`*[]+|./suy;

function markdown(line, state, out) {
  const isFence = /^\s*(```|~~~)/.test(line);
  if (isFence) state.fenced = !state.fenced;
  if (isFence || state.fenced) push(out, isFence ? "comment" : "string", line);
  else if (/^#{1,6} |^[=-]{3,}\s*$/.test(line)) push(out, "keyword", line);
  else {
    const [mark] = /^\s*(?:[-*+]|\d+\.|>)\s|/.exec(line);
    push(out, "value", mark);
    for (INLINE.lastIndex = mark.length; INLINE.lastIndex < line.length;) {
      const [text] = INLINE.exec(line);
      push(out, { "`": "string", "*": "type", "[": "call" }[text.length > 2 ? text[0] : ""] ?? "", text);
    }
  }
}
