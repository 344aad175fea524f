"""The shapes of keys and tokens, and the words that precede them. Patterns only; `spans` searches for them."""

from __future__ import annotations

from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator

    MarkedRule = tuple[str, tuple[bytes, ...], str]
    Seeker = Callable[[bytes, int, int], re.Match[bytes] | None]
else:
    re = Later("re")

# Every machine-made secret has a run of this many letters, digits, dashes and underscores. Prose has no such runs.
LONG = 16

# (kind, literals that it begins with, pattern of the rest). The run of `LONG` characters holds the beginning, or
# follows one that ends in a dot. The first that fits names the kind; no kind looks like a name of a secret.
SHAPES: tuple[tuple[str, str, str], ...] = (
    ("anthropic", "sk-ant-", r"[\w-]{16,}"),
    # A digit or two capitals: `sk-learn-and-other-kebab-words` is not a key.
    ("openai", "sk-", r"(?=[A-Za-z_-]{0,60}\d|(?:[a-z_-]{0,30}[A-Z]){2})[\w-]{20,}"),
    ("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{30,}"),
    ("github", "github_pat_", r"\w{22,}"),
    ("gitlab", "glpat- gldt- glrt- glptt- glft- glimt- glsoat- glcbt-", r"[\w-]{20,}"),
    ("aws", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("google", "AIza", r"[\w-]{35}"),
    ("google", "GOCSPX- ya29.", r"[\w-]{20,}"),
    ("slack", "xoxa- xoxb- xoxc- xoxe- xoxo- xoxp- xoxr- xoxs-", r"[A-Za-z0-9-]{16,}"),
    ("slack", "xapp-", r"[A-Za-z0-9-]{20,}"),
    ("stripe", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_", r"[A-Za-z0-9]{16,}"),
    ("stripe", "whsec_", r"[A-Za-z0-9]{10}[A-Za-z0-9+/=]{6,}"),
    ("huggingface", "hf_", r"[A-Za-z0-9]{30,}"),
    ("groq", "gsk_", r"[A-Za-z0-9]{40,}"),
    ("xai", "xai-", r"[A-Za-z0-9]{40,}"),
    ("perplexity", "pplx-", r"[A-Za-z0-9]{32,}"),
    ("replicate", "r8_", r"[A-Za-z0-9]{32,}"),
    ("fireworks", "fw_", r"[A-Za-z0-9]{20,}"),
    ("tavily", "tvly-", r"[\w-]{20,}"),
    ("pinecone", "pcsk_", r"\w{30,}"),
    ("langsmith", "lsv2_pt_ lsv2_sk_", r"\w{30,}"),
    ("npm", "npm_", r"[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    ("pypi", "pypi-", r"[\w-]{50,}"),
    ("sendgrid", "SG.", r"[\w-]{22}\.[\w-]{43}"),
    ("mailgun", "key-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("twilio", "SK", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("digitalocean", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{64}"),
    ("databricks", "dapi", r"[0-9a-f]{32}"),
    ("linear", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{32,}"),
    ("notion", "ntn_ secret_", r"[A-Za-z0-9]{40,}"),
    ("supabase", "sbp_ sb_secret_", r"[\w-]{20,}"),
    ("shopify", "shpat_ shpca_ shppa_ shpss_", r"[0-9a-fA-F]{32}"),
    ("square", "sq0atp- sq0csp- sq0idp- EAAA", r"[\w-]{22,}"),
    ("netlify", "nfp_", r"[A-Za-z0-9]{36,}"),
    ("planetscale", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w-]{20}[\w.-]{10,}"),
    ("postman", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    ("doppler", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"\w{40,}"),
    ("vault", "hvs. hvb. hvr.", r"[\w-]{24,}"),
    ("age", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}"),
    ("nvidia", "nvapi-", r"[\w-]{40,}"),
    ("cerebras", "csk-", r"[A-Za-z0-9]{32,}"),
    ("elevenlabs", "sk_", r"[0-9a-f]{48}(?![A-Za-z0-9])"),
    ("e2b", "e2b_", r"[0-9a-f]{40}"),
    ("firecrawl", "fc-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("voyage", "pa-", r"(?=[A-Za-z_-]{0,20}\d)[\w-]{40,}"),
    ("docker", "dckr_pat_ dckr_oat_", r"[\w-]{20,}"),
    ("grafana", "glsa_ glc_", r"[A-Za-z0-9]{30}[A-Za-z0-9_+/=]{2,}"),
    ("sentry", "sntrys_ sntryu_", r"\w{30}[\w+/=-]{10,}"),
    ("atlassian", "ATATT3 ATCTT3 ATBB", r"[A-Za-z0-9_-]{20}[\w=-]{8,}"),
    ("figma", "figd_", r"[\w-]{30,}"),
    ("tailscale", "tskey-", r"[\w-]{20,}"),
    ("newrelic", "NRAK- NRII- NRIQ- NRJS-", r"[A-Za-z0-9_-]{19,}"),
    ("posthog", "phc_ phx_ phs_", r"[A-Za-z0-9]{40,}"),
    ("rubygems", "rubygems_", r"[0-9a-f]{48}"),
    ("heroku", "HRKU-", r"[\w-]{36,}"),
    ("onepassword", "ops_eyJ", r"[\w-]{60,}"),
    ("neon", "napi_", r"[a-z0-9]{40,}"),
    ("fly", "fo1_ fm1r_ fm1a_ fm2_", r"[\w-]{16}[\w+/=,-]{20,}"),
    ("jwt", "eyJ", r"[\w-]{13,1024}\.eyJ[\w-]{8,}\.[\w-]*"),
)

# A start counts where a word may begin: not inside one, but after an escape (`\nsk-…` of JSON inside JSON, `%20sk-…` of
# an address) and after the code that gives a terminal its colour.
_ESCAPED = r"(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})"
BOUNDARY = rf"(?:(?<![A-Za-z0-9])|{_ESCAPED}|(?<=%[0-9a-fA-F]{{2}})|(?<=[\[;]\dm)|(?<=[\[;]\d\dm))"


def any_of(words: tuple[str, ...]) -> str:
    """Return a pattern for any of these literals, as a tree of letters: three times as fast as alternatives."""
    tails: dict[str, list[str]] = {}
    for word in words:
        if not word:
            return ""
        tails.setdefault(word[0], []).append(word[1:])
    parts = [re.escape(letter) + any_of(tuple(rest)) for letter, rest in sorted(tails.items())]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


_STARTS = tuple(start for _, starts, _ in SHAPES for start in starts.split())
KINDS = (*(kind for kind, _, _ in SHAPES), "telegram", "discord")

# (kind, literals of which one is in every text that has such a secret, pattern; group 1 or 2 is the secret). For
# secrets without a characteristic start, and for words that precede one. They are searched only if a quick check has
# found what each group needs (`spans`). Here those with a run of `LONG` characters.
MARKED_RUNS: tuple[MarkedRule, ...] = (
    ("azure", (b"Q~",), r"(?<![\w~.-])([\w~.-]{3}\dQ~[\w~.-]{31,34})(?![\w~-])"),
    ("mailchimp", (b"-us",), r"(?<![0-9A-Za-z])([0-9a-f]{32}-us\d{1,2})(?![0-9A-Za-z])"),
    ("google", (b"1//0",), r"(?<![\w/])(1//0[\w-]{20,})"),
    ("terraform", (b".atlasv1.",), r"(?<![\w.])([A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,})"),
    ("airtable", (b"pat",), r"(?<![\w.])(pat[A-Za-z0-9]{14}\.[0-9a-f]{64})(?![\w])"),
    ("signature", (b"ignature=", b"IGNATURE="), r"(?i:signature)=([0-9a-f]{64})(?![0-9a-f])"),
    (
        "signature",
        (b"-signature", b"-Signature"),
        r"(?i:x-(?:amz|goog)-signature)\\{0,15}\"\s{0,3}:\s{0,3}\\{0,15}\"([0-9a-f]{64,1024})(?![0-9a-f])",
    ),
    ("url", (b"@",), r"://((?=[A-Za-z_.~%-]{0,256}\d)[\w~-]{16,256})@"),
    ("parameter", (b"?key=", b"&key="), r"[?&]key=([\w-]{16,512})"),
    (
        "oauth",
        (b"code=",),
        r"(?<![\w-])code=((?=[A-Za-z_-]{0,64}\d)[\w-]{16}[\w%./~+-]{0,1024})",
    ),
    (
        "docker",
        (b'"auth',),
        r"\\{0,15}\"auth\\{0,15}\"\s{0,3}:\s{0,3}\\{0,15}\"([A-Za-z0-9]{16}[A-Za-z0-9+/=]{0,2048})",
    ),
    (
        "yaml",
        (b"oken: ",),
        r"(?m)(?:^|\\n)[ \t]*(?:- +)?token: +[\"']?((?=[A-Za-z_-]{0,64}\d)[\w-]{16}[^\s\"'\\#]{0,2048})",
    ),
)
MARKED_WORDS: tuple[MarkedRule, ...] = (
    (
        "netrc",
        (b"login ",),
        r"\blogin +[^\s\"'\\]{1,200}(?:\s|\\[nrt]){1,4}password +([^\s\"'\\]{3,512})",
    ),
    ("xml", (b"assword>",), r"(?i)<password>(?!\[redacted)([^<\r\n]{3,512})</"),
    (
        "option",
        (b"curl",),
        r"\bcurl [^\r\n]{0,400}?(?<= )(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,200}:([^\s\"'\\]{3,512})",
    ),
    (
        "option",
        (b"mysql", b"mariadb"),
        r"\b(?:mysql|mysqldump|mysqladmin|mariadb) [^\r\n]{0,400}?(?<= )-p([^\s\"'\\]{3,512})",
    ),
    ("option", (b"sshpass",), r"\bsshpass +-p[ =]?[\"']?([^\s\"'\\]{3,512})"),
    (
        "pgpass",
        (b":5432:",),
        r"(?<![\w.*-])[\w.*-]{1,253}:5432:[^\s:]{1,64}:[^\s:]{1,64}:([^\s\"'\\]{3,512})",
    ),
)
# One of these is in every text with a secret of `MARKED_WORDS`, or with a field of a multipart form.
WORDS_THAT_MARK = (b"assword", b" -", b":5432:", b"form-data;")
# Names before a `=` or `:` that are not names of secrets in JSON.
MARKED_NAMES: tuple[MarkedRule, ...] = (
    (
        "authorization",
        (b"uthorization", b"UTHORIZATION"),
        (
            r"(?i:authorization)\\{0,15}[\"']? {0,3}[:=] {0,3}\\{0,15}[\"']?(?i:apikey|digest|negotiate|hawk) +"
            r"(?!\[redacted)([^\r\n\"'\\]{8,1024})"
        ),
    ),
    (
        "cookie",
        (b"ookie:", b"OOKIE:"),
        r"(?i)(?<![\w-])(?:set-)?cookie: {0,3}([^\s=;,\"'\\]{1,80}=[^\r\n\"'\\]{4,4096})",
    ),
    (
        "session",
        (b"essionid=", b"ESSID=", b"ESSIONID=", b"connect.sid=", b"essionId="),
        r"(?i)(?<![\w-])(?:sessionid|phpsessid|jsessionid|connect\.sid)=([\w%.+/-]{8,512})",
    ),
)

_IN_RUN = tuple(one for one in _STARTS if one[-1] != ".")
STARTS_IN_RUN = tuple(one.encode() for one in _IN_RUN)
# Up to this many searches, checking one literal after the other is quicker than compiling a pattern.
_FEW = 100
_looks = 0
_search: Seeker | None = None


def seeker() -> Seeker:
    """Return `start_in_run().search`, or a function that finds the same and compiles no pattern until it must."""
    global _looks, _search  # noqa: PLW0603  where threads count one too few, a literal more is looked for
    if _search is not None:
        return _search
    _looks += 1
    if _looks > _FEW:
        _search = start_in_run().search
    return _by_literals


def _by_literals(raw: bytes, at: int, end: int) -> re.Match[bytes] | None:
    run = raw[at:end]
    for one in STARTS_IN_RUN:  # a loop: `any` of a generator makes a Python call for each of them
        if one in run:
            return start_in_run().search(raw, at, end)
    return None


# Compiled when first needed: all of these together take 15 ms, and most processes need none.
def cache(make: Callable[[], re.Pattern[bytes]]) -> Callable[[], re.Pattern[bytes]]:
    """Replacement for `functools.cache`, for patterns."""
    made: list[re.Pattern[bytes]] = []

    def once() -> re.Pattern[bytes]:
        if not made:
            made.append(make())
        return made[0]

    return once


@cache
def exact() -> re.Pattern[bytes]:
    """Return the pattern of a secret with a shape; the number of its group is that of its kind."""
    shapes = [f"({any_of(tuple(starts.split()))}{rest})" for _, starts, rest in SHAPES]
    # A bot's number and its token; three parts, the first of which encodes a number in base64.
    shapes.append(r"(\d{8,10}:AA[\w-]{33}(?![\w-]))")
    shapes.append(r"([MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w-]))")
    return re.compile(f"{BOUNDARY}(?:{'|'.join(shapes)})".encode())


_marked: dict[str, re.Pattern[bytes]] = {}


def marked(
    raw: bytes, rules: tuple[MarkedRule, ...]
) -> Iterator[tuple[str, tuple[bytes, ...], re.Pattern[bytes]]]:
    """Yield kind, literals and pattern of each of the rules whose literal is in `raw`."""
    for kind, literals, pattern in rules:
        for one in literals:
            if one in raw:
                made = _marked.get(pattern)
                if made is None:
                    made = _marked[pattern] = _after_escapes(pattern)
                yield kind, literals, made
                break


def _after_escapes(pattern: str) -> re.Pattern[bytes]:
    """Let a word begin after an escape too: a line break in JSON is not a part of the word behind it."""
    begins = re.compile(r"\(\?<!\[[^]]*\]\)|\\b")
    made = begins.sub(lambda hit: f"(?:{hit[0]}|{_ESCAPED})", pattern, count=1)
    return re.compile(made.encode())


@cache
def start_in_run() -> re.Pattern[bytes]:
    return re.compile(any_of(_IN_RUN).encode())


@cache
def open_start() -> re.Pattern[bytes]:
    """Return the pattern of a start, with or without a dot, where a word may begin."""
    return re.compile(f"{BOUNDARY}{any_of(_STARTS)}".encode())


@cache
def start_before_run() -> re.Pattern[bytes]:
    dotted = any_of(tuple(one for one in _STARTS if one[-1] == "."))
    return re.compile(rf"(?:{dotted}|\d{{8,10}}:)\Z".encode())


@cache
def start_before_dot() -> re.Pattern[bytes]:
    return re.compile(rb"[MNO](?=[\w-]{23,27}\.)")


LONGEST_START_BEFORE_RUN = 11

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
ANY_WORD_BEFORE = tuple(WORDS_BEFORE)
# Addresses whose last part is a secret.
WEBHOOKS = (b"hooks.slack.com/", b"/api/webhooks/", b"webhook.office.com/")


@cache
def after_word() -> re.Pattern[bytes]:
    return re.compile(rb"[A-Za-z0-9._~+/%=-]{16,}")


@cache
def digit_or_capital() -> re.Pattern[bytes]:
    """Text that follows such a word in prose ("basic authentication-mechanisms") has neither."""
    return re.compile(rb"[0-9A-Z]")


@cache
def pem() -> re.Pattern[bytes]:
    return re.compile(
        rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
        rb"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
    )


@cache
def url_password() -> re.Pattern[bytes]:
    """Return the pattern of a password in a URL. It is matched at each `://`: the text before does not matter, and
    searching it backwards through a megabyte of base64 would take minutes.
    """
    return re.compile(rb"://[^\s/:@\"'\\<>]{0,256}:([^\s/@\"'\\<>]{1,512})@")


@cache
def open_url() -> re.Pattern[bytes]:
    """Return the pattern of an address at the end of a text whose password may not have ended yet."""
    return re.compile(rb"://[^\s/:@\"'\\<>]{0,256}:([^\s/@\"'\\<>]{1,512})\Z")


# The last words of names that a text assigns to, and the words that make `key` and `token` telling.
LAST_WORDS = (b"password", b"passwd", b"secret", b"token", b"key", b";pwd")
WORDS_OF_KEY = (
    *("api", "access", "private", "secret", "account", "shared", "signing", "encryption", "master"),
    *("admin", "service", "subscription"),
)
_WORDS_OF_TOKEN = (
    *("access", "auth", "refresh", "id", "session", "csrf", "bearer", "api", "secret", "security"),
    *("bot", "personal", "client"),
)
_QUOTE = r"(?:\\{0,15}[\"'])"
# No secret is longer, here and in `streams`. Session tokens of AWS and refresh tokens of Azure have 1,000 to 2,000
# characters, and all of them must be replaced.
LONGEST = 8 * 1024
# Also blanks that JSON escapes: files with tabs before the sign are sent to models inside JSON.
_SIGN = r"(?:\s|\\{1,15}[nrt]){0,3}(?:=>|[:=])(?:\s|\\{1,15}[nrt]){0,3}"


@cache
def assigned() -> re.Pattern[bytes]:
    """name=value and "name": "value" inside a text: a request body, a shell line, an env dump.

    Matched at the name's last word. Quotes may be escaped: JSON inside JSON is everywhere in tool
    arguments. Group 1 is a quoted value, group 2 a bare one.
    """
    names = [
        *("password", "passwd", ";pwd", "secret"),
        *(f"(?<={word})key|(?<={word}[_ -])key" for word in WORDS_OF_KEY),
        *(f"(?<={word})token|(?<={word}[_ -])token" for word in _WORDS_OF_TOKEN),
        *("(?<=[&?;-])token", "(?-i:TOKEN)"),
    ]
    quoted = rf"{_QUOTE}([^\"'\\\r\n]{{4,{LONGEST}}})"
    bare = rf"(?![\[({{<$*])([^\s\"'\\,;&<>{{}}()\[\]]{{6,{LONGEST}}})"
    pattern = rf"(?:{'|'.join(names)}){_QUOTE}?{_SIGN}(?:{quoted}|{bare})"
    return re.compile(pattern.encode(), re.IGNORECASE)


@cache
def open_assigned() -> re.Pattern[bytes]:
    """Return the pattern of an assignment at the end of a text whose value may not have ended yet."""
    quoted = rf"{_QUOTE}(?=[^\"'\\\r\n]{{1,{LONGEST}}}\Z)"
    bare = rf"(?=[^\s\"'\\,;&<>{{}}()\[\]]{{1,{LONGEST}}}\Z)"
    pattern = rf"(?:password|passwd|;pwd|secret|key|token){_QUOTE}?{_SIGN}(?:{quoted}|{bare})()"
    return re.compile(pattern.encode(), re.IGNORECASE)


@cache
def option() -> re.Pattern[bytes]:
    """Return the pattern of an option of a command line with its value: `--password hunter2`, `--token=…`."""
    return re.compile(
        rb"(?<![\w-])--(?:[a-z][a-z0-9]*-){0,4}"
        rb"(?:password|passwd|token|secret|api-?key|access-key|pat)"
        rb"(?: +|=)[\"']?([^\s\"'\\-][^\s\"'\\]{3,512})"
    )
