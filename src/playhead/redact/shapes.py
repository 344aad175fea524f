"""What secrets look like: shapes of keys and tokens, words that stand before them, and names of
fields that hold them. Patterns only; how they are looked for is the business of `spans`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Every machine-made secret has a run of this many letters, digits, dashes and underscores. Words of
# prose have not, so looking for such runs first leaves next to nothing to look at closely.
LONG = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A secret that begins with one of these literals; `rest` is a regular expression.

    The run of `LONG` characters holds the start, or begins directly after a start that ends in a
    dot.
    """

    kind: str
    starts: tuple[str, ...]
    rest: str


def _shape(kind: str, starts: str, rest: str) -> Shape:
    return Shape(kind=kind, starts=tuple(starts.split()), rest=rest)


# The first that fits names the kind. No kind ends in a word that makes `kind:hash` look assigned.
SHAPES: tuple[Shape, ...] = (
    _shape("anthropic", "sk-ant-", r"[\w-]{16,}"),
    # A digit or two capitals: `sk-learn-and-other-kebab-words` is no key.
    _shape("openai", "sk-", r"(?=[A-Za-z_-]{0,60}\d|(?:[a-z_-]{0,30}[A-Z]){2})[\w-]{20,}"),
    _shape("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{30,}"),
    _shape("github", "github_pat_", r"\w{22,}"),
    _shape("gitlab", "glpat- gldt- glrt- glptt- glft- glimt- glsoat- glcbt-", r"[\w-]{20,}"),
    _shape("aws", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _shape("google", "AIza", r"[\w-]{35}"),
    _shape("google", "GOCSPX- ya29.", r"[\w-]{20,}"),
    _shape("slack", "xoxa- xoxb- xoxc- xoxe- xoxo- xoxp- xoxr- xoxs-", r"[A-Za-z0-9-]{16,}"),
    _shape("slack", "xapp-", r"[A-Za-z0-9-]{20,}"),
    _shape("stripe", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_", r"[A-Za-z0-9]{16,}"),
    _shape("stripe", "whsec_", r"[A-Za-z0-9]{10}[A-Za-z0-9+/=]{6,}"),
    _shape("huggingface", "hf_", r"[A-Za-z0-9]{30,}"),
    _shape("groq", "gsk_", r"[A-Za-z0-9]{40,}"),
    _shape("xai", "xai-", r"[A-Za-z0-9]{40,}"),
    _shape("perplexity", "pplx-", r"[A-Za-z0-9]{32,}"),
    _shape("replicate", "r8_", r"[A-Za-z0-9]{32,}"),
    _shape("fireworks", "fw_", r"[A-Za-z0-9]{20,}"),
    _shape("tavily", "tvly-", r"[\w-]{20,}"),
    _shape("pinecone", "pcsk_", r"\w{30,}"),
    _shape("langsmith", "lsv2_pt_ lsv2_sk_", r"\w{30,}"),
    _shape("npm", "npm_", r"[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _shape("pypi", "pypi-", r"[\w-]{50,}"),
    _shape("sendgrid", "SG.", r"[\w-]{22}\.[\w-]{43}"),
    _shape("mailgun", "key-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    _shape("twilio", "SK", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    _shape("digitalocean", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{64}"),
    _shape("databricks", "dapi", r"[0-9a-f]{32}"),
    _shape("linear", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{32,}"),
    _shape("notion", "ntn_ secret_", r"[A-Za-z0-9]{40,}"),
    _shape("supabase", "sbp_ sb_secret_", r"[\w-]{20,}"),
    _shape("shopify", "shpat_ shpca_ shppa_ shpss_", r"[0-9a-fA-F]{32}"),
    _shape("square", "sq0atp- sq0csp- sq0idp- EAAA", r"[\w-]{22,}"),
    _shape("netlify", "nfp_", r"[A-Za-z0-9]{36,}"),
    _shape("planetscale", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w-]{20}[\w.-]{10,}"),
    _shape("postman", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    _shape("doppler", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"\w{40,}"),
    _shape("vault", "hvs. hvb. hvr.", r"[\w-]{24,}"),
    _shape("age", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}"),
    _shape("jwt", "eyJ", r"[\w-]{13,1024}\.eyJ[\w-]{8,}\.[\w-]*"),
)

# A start counts where a word may begin: not inside one, but after an escape (`\nsk-…`, JSON inside
# JSON) and after the code that gives a terminal its colour.
BOUNDARY = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})|(?<=[\[;]\dm)|(?<=[\[;]\d\dm))"
)


def any_of(words: tuple[str, ...]) -> str:
    """A pattern for any of these literals, as a tree of letters: three times as fast as one after
    another, because `re` then sees which letters it can begin with.
    """
    tails: dict[str, list[str]] = {}
    for word in words:
        if not word:
            return ""
        tails.setdefault(word[0], []).append(word[1:])
    parts = [re.escape(letter) + any_of(tuple(rest)) for letter, rest in sorted(tails.items())]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


EXACT = re.compile(
    (
        f"{BOUNDARY}(?:"
        + "|".join(f"({any_of(one.starts)}{one.rest})" for one in SHAPES)
        # A bot's number and its token; three parts, the first of which spells a number in base64.
        + r"|(\d{8,10}:AA[\w-]{33}(?![\w-]))|([MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w-])))"
    ).encode()
)
KINDS = (*(one.kind for one in SHAPES), "telegram", "discord")

# Where EXACT may match: at a start inside of a run, or at one that ends directly before it.
_STARTS = tuple(start for one in SHAPES for start in one.starts)
START_IN_RUN = re.compile(any_of(tuple(one for one in _STARTS if one[-1] != ".")).encode())
START_BEFORE_RUN = re.compile(
    (rf"(?:{any_of(tuple(one for one in _STARTS if one[-1] == '.'))}|\d{{8,10}}:)\Z").encode()
)
LONGEST_START_BEFORE_RUN = 11
START_BEFORE_DOT = re.compile(rb"[MNO](?=[\w-]{23,27}\.)")

# Words directly before a run that make it a secret, and the kind that it is then.
WORDS_BEFORE: dict[bytes, str] = {
    b"earer ": "bearer",
    b"EARER ": "bearer",
    b"earer+": "bearer",
    b"arer%20": "bearer",
    b"asic ": "basic",
    b": token ": "authorization",
    b": Token ": "authorization",
    b"?sig=": "signature",
    b"&sig=": "signature",
    b"X-Amz-Signature=": "signature",
    b"X-Amz-Security-Token=": "signature",
}
LONGEST_WORD_BEFORE = max(map(len, WORDS_BEFORE))
# Addresses whose last part is a secret.
WEBHOOKS = (b"hooks.slack.com/", b"/api/webhooks/", b"webhook.office.com/")
AFTER_WORD = re.compile(rb"[A-Za-z0-9._~+/%=-]{16,}")
# What follows such a word in prose ("basic authentication-mechanisms") has neither.
DIGIT_OR_CAPITAL = re.compile(rb"[0-9A-Z]")

PEM = re.compile(
    rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
    rb"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
)
# Matched at each `://`: what stands before it does not matter, and looking for it backwards through
# a megabyte of base64 would take minutes.
URL_PASSWORD = re.compile(rb"://[^\s/:@\"'\\<>]{0,256}:([^\s/@\"'\\<>]{1,512})@")

# name=value and "name": "value" inside a text: a request body, a shell line, an env dump. Matched
# at the name's last word. Quotes may be escaped: JSON inside JSON is everywhere in tool arguments.
LAST_WORDS = (b"password", b"passwd", b"secret", b"token", b"key", b";pwd")
WORDS_OF_KEY = (
    *("api", "access", "private", "secret", "account", "shared", "signing", "encryption", "master"),
    *("admin", "service", "subscription"),
)
_WORDS_OF_TOKEN = (
    *("access", "auth", "refresh", "id", "session", "csrf", "bearer", "api", "secret", "security"),
    *("bot", "personal", "client"),
)
_QUOTE = r"(?:\\{0,6}[\"'])"
ASSIGNED = re.compile(
    (
        r"(?:password|passwd|;pwd|secret|"
        + "|".join(f"(?<={word})key|(?<={word}[_ -])key" for word in WORDS_OF_KEY)
        + "|"
        + "|".join(f"(?<={word})token|(?<={word}[_ -])token" for word in _WORDS_OF_TOKEN)
        + r"|(?<=[&?;-])token|(?-i:TOKEN))"
        + rf"{_QUOTE}?\s{{0,3}}(?:=>|[:=])\s{{0,3}}"
        # Quoted: whatever it is. Bare: see HARMLESS_BARE.
        + rf"(?:{_QUOTE}([^\"'\\\r\n]{{4,512}})|(?![\[({{<$*])([^\s\"'\\,;&<>{{}}()\[\]]{{6,512}}))"
    ).encode(),
    re.IGNORECASE,
)
# Names of variables, calls and prose: what people write after `password=` in code, and no password.
HARMLESS_BARE = re.compile(
    rb"(?:[A-Za-z_]\w*\..*|[A-Za-z_]+[.:]?|\.{3}.*|x{3,}|\*+|%.*|\$.*)\Z", re.DOTALL
)
HARMLESS_QUOTED = re.compile(
    rb"(?:string|null|none|true|false|password|secret|token|\*+|x{3,}|\.{3}.*|<.*|\{.*|\$.*|%.*"
    rb"|your[-_ ].*|\[redacted:.*)\Z",
    re.DOTALL | re.IGNORECASE,
)
# An option of a command line with its value: `--password hunter2`, `--token=…`.
OPTION = re.compile(
    rb"(?<![\w-])--(?:[a-z][a-z0-9]*-){0,4}(?:password|passwd|token|secret|api-?key|access-key|pat)"
    rb"(?: +|=)[\"']?([^\s\"'\\-][^\s\"'\\]{3,512})"
)
