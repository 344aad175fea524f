"""Compare the native core with Python on generated values. Knows how to make values that are near every rule; what is
right is what Python says.
"""

from __future__ import annotations

import base64
import json
import math
import random
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from playhead.encoding import jsonbytes
from playhead.encoding.plain import Keys, is_plain
from playhead.host import native_core
from playhead.recording import encoder
from playhead.recording.encoder import NewEvent, OpenSegment, append
from playhead.redact import Redactor, clues, shapes
from playhead.redact.spans import OFFSETS, _near, is_confirmed, spans, suspicious
from playhead.tape import writer as writing
from playhead.tape.blobs import THRESHOLD

ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_HEX = "0123456789abcdef"
_WORDS = [
    "the",
    "agent",
    "read",
    "a",
    "file",
    "and",
    "called",
    "search",
    "about",
    "weather",
    "max_tokens",
    "task-list",
    "path",
    "pattern",
    "risk",
    "scraper-service.internal",
    "curl",
    "-s",
    "monkey",
    "turkey:",
    "keyboard",
    "=",
    "basic",
    "authentication_mechanisms",
    "toolu_01A09q90qw90lq917835lq9",
    "3f2b8c1e-9a4d-4e2f-8b7a-1c2d3e4f5a6b",
]
# Everything that a rule or the core treats apart from other bytes.
_PIECES: tuple[str, ...] = (
    *(start for _, starts, _ in shapes.SHAPES for start in starts.split()),
    *(one.decode() for rule in clues._RULES for one in rule[1]),
    *(one.decode() for one in (*shapes.WORDS_BEFORE, *shapes.WEBHOOKS, *shapes.LAST_WORDS)),
    *(one.decode("latin-1") for one in sorted(clues.LAST_SIX)),
    *(
        "form-data; name=",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----END RSA PRIVATE KEY-----",
        "://",
    ),
    *(
        "Authorization: Digest ",
        "<password>",
        "X-Amz-Signature",
        "AA",
        "eyJhbGciOi",
        "Password",
        "SECRET",
    ),
    *(
        '": "',
        "': '",
        "=",
        ":",
        " = ",
        "=>",
        '\\": \\"',
        "\\n",
        "\\u001b",
        "[1m",
        "[0;31m",
        "\x1b[32m",
    ),
    *(
        "@",
        ".",
        "/",
        "&",
        "?",
        ";",
        " ",
        "\n",
        "\r\n",
        "-",
        "_",
        "%20",
        "+",
        "\t",
        "\0",
        "\\",
        '"',
        "'",
    ),
    *(
        "é",
        "日本",
        "\u2028",
        "😀",
        "\x7f",
        "\x00",
        "<",
        ">",
        "{",
        "[",
        "$",
        "login a password ",
        "--",
    ),
)


@contextmanager
def without_core() -> Iterator[None]:
    core, native_core.core = native_core.core, None
    try:
        yield
    finally:
        native_core.core = core


def _some(rng: random.Random, letters: str, low: int, high: int) -> str:
    return "".join(rng.choices(letters, k=rng.randint(low, high)))


def _secret(rng: random.Random) -> str:
    """Near a shape of a key: its start, and characters of about the right number."""
    kind, starts, _ = rng.choice(shapes.SHAPES)
    letters = rng.choice((ALNUM, ALNUM + "_-", _HEX, ALNUM.upper()))
    size = rng.choice((8, 15, 16, 17, 20, 22, 24, 32, 35, 36, 40, 43, 48, 50, 64, 70))
    made = rng.choice(starts.split()) + _some(rng, letters, max(1, size - 1), size + 1)
    if kind in ("jwt", "sendgrid"):
        made += (
            "."
            + rng.choice(("eyJ", ""))
            + _some(rng, ALNUM, 6, 45)
            + "."
            + _some(rng, ALNUM, 0, 45)
        )
    return made


def _discord(rng: random.Random) -> str:
    return rng.choice("MNOP") + ".".join(
        _some(rng, ALNUM + "-_", *size) for size in ((22, 28), (6, 6), (26, 40))
    )


def _assignment(rng: random.Random) -> str:
    name = rng.choice(("api", "access", "x", "auth", "my", "")) + rng.choice("_- ") * rng.randint(
        0, 1
    )
    name += rng.choice(
        ("key", "token", "password", "passwd", "secret", ";pwd", "cookie", "sessionid", "Token")
    )
    name = rng.choice((str, str.upper, str.title))(name)
    sign = rng.choice(
        (
            "=",
            ":",
            " = ",
            "\t= ",
            "\n:",
            "\\t= ",
            "\\\\n\t:",
            '": "',
            "': '",
            "=>",
            '\\": \\"',
            '\\\\\\": ',
            '" : ',
        )
    )
    return (
        name
        + sign
        + _some(rng, ALNUM + "%/.$*x ", 2, 14)
        + (_some(rng, ALNUM + "%", 480, 1500) if rng.random() < 0.02 else "")
        + rng.choice(("", "&", '"', "(", ",", "\n"))
    )


def _url(rng: random.Random) -> str:
    user = _some(rng, ALNUM + "%._", 0, 12) if rng.random() < 0.95 else "u" * rng.randint(250, 260)
    word = _some(rng, ALNUM + ":%~", 0, 12) if rng.random() < 0.95 else "p" * rng.randint(508, 516)
    return f"{rng.choice(('postgres', 'https', ''))}://{user}{rng.choice((':', ''))}{word}{rng.choice('@@/ ')}host/db"


def _marked(rng: random.Random) -> str:
    made = (
        lambda: _some(rng, ALNUM, 3, 3) + "8Q~" + _some(rng, ALNUM + "~.-_", 30, 35),
        lambda: _some(rng, _HEX, 31, 33) + "-us" + _some(rng, "0123456789a", 1, 2),
        lambda: "1//0" + _some(rng, ALNUM + "-_", 18, 24),
        lambda: _some(rng, ALNUM, 14, 14) + ".atlasv1." + _some(rng, ALNUM, 38, 60),
        lambda: "pat" + _some(rng, ALNUM, 13, 15) + "." + _some(rng, _HEX, 63, 65),
        lambda: rng.choice(("Signature=", "SIGNATURE=", "signature=")) + _some(rng, _HEX, 63, 65),
        lambda: 'X-Amz-Signature": "' + _some(rng, _HEX, 64, 66),
        lambda: "://" + _some(rng, ALNUM + "~-_", 14, 20) + "@host",
        lambda: rng.choice("?&x") + "key=" + _some(rng, ALNUM + "-_", 14, 20),
        lambda: "code=" + _some(rng, ALNUM + "-_%", 14, 22),
        lambda: '"auth' + rng.choice(('": "', '\\": \\"', "x")) + _some(rng, ALNUM + "+/=", 14, 20),
        lambda: (
            rng.choice(("\ntoken: ", "\\ntoken: ", "- token: ", "Token: "))
            + _some(rng, ALNUM, 14, 22)
        ),
        lambda: f"login me {rng.choice(('password', 'account'))} {_some(rng, ALNUM, 2, 6)}",
        lambda: f"<{rng.choice(('password', 'Password', 'PASSWORD'))}>{_some(rng, ALNUM, 2, 6)}</",
        lambda: f"curl {rng.choice(('', '-s '))}-u me:{_some(rng, ALNUM, 2, 6)} x",
        lambda: f"{rng.choice(('mysql', 'mysqldump', 'mariadb'))} -u x -p{_some(rng, ALNUM, 2, 6)}",
        lambda: f"sshpass -p {_some(rng, ALNUM, 2, 6)} ssh x",
        lambda: f"db.host:5432:name:user:{_some(rng, ALNUM, 2, 6)}",
        lambda: (
            f"Authorization: {rng.choice(('Digest', 'hawk', 'Bearer', 'Basic'))} {_some(rng, ALNUM, 7, 30)}"
        ),
        lambda: f"{rng.choice(('Cookie', 'Set-Cookie', 'COOKIE'))}: a={_some(rng, ALNUM, 3, 9)}",
        lambda: (
            f"{rng.choice(('sessionid', 'PHPSESSID', 'connect.sid'))}={_some(rng, ALNUM, 6, 12)}"
        ),
        lambda: (
            'form-data; name="'
            + rng.choice(("password", "file", "api_key"))
            + f'"\r\n\r\n{_some(rng, ALNUM, 3, 9)}\r\n--x'
        ),
        lambda: f"https://hooks.slack.com/services/T0/{_some(rng, ALNUM, 14, 26)}",
        lambda: f"{_some(rng, '0123456789', 7, 11)}:AA{_some(rng, ALNUM + '-_', 31, 35)}",
        lambda: (
            f"{rng.choice(('Bearer ', 'bearer+', 'Basic ', '?sig=', 'token '))}{_some(rng, ALNUM + '-_', 14, 30)}"
        ),
        lambda: (
            "-----BEGIN EC PRIVATE KEY-----\n"
            + _some(rng, ALNUM + "+/", 20, 90)
            + "\n-----END EC PRIVATE KEY-----"
        ),
        lambda: (
            f"--{rng.choice(('password', 'token', 'x-api-key', 'other'))}{rng.choice(' =')}{_some(rng, ALNUM, 3, 9)}"
        ),
        lambda: "fc-" + _some(rng, _HEX, 31, 33),
    )
    return rng.choice(made)()


def _block(rng: random.Random) -> str:
    """Base64 around the length at which it counts as a file, with keys at its ends."""
    text = base64.b64encode(rng.randbytes(rng.choice((700, 760, 768, 775, 800, 1600)))).decode()
    cut = rng.choice((0, 0, 1, 60, 63, 64, 65))
    if cut:
        text = text[:cut] + rng.choice((" ", "-", "sk-ant-" + "a1" * 12, "\n", "=")) + text[cut:]
    return (
        rng.choice(("", "Bearer ", "key=", "/", "M"))
        + text
        + rng.choice(("", ".", "==", "sk-" + "A1" * 12))
    )


def _encoded(rng: random.Random) -> str:
    """Base64 of a text, with or without a secret, in both alphabets, cut anywhere or after an escape."""
    plain = rng.choice(("", "?>~ ", "é")) + rng.choice((_secret, _assignment, _marked))(rng)
    plain += rng.choice(_WORDS) * rng.choice((0, 3, 60, 400))
    made = rng.choice((base64.b64encode, base64.urlsafe_b64encode))(plain.encode()).decode()
    made = made if rng.random() < 0.5 else made.rstrip("=")
    if rng.random() < 0.2:  # around the furthest place that the beginning is searched at
        made = "+" + "a/" * rng.randint(40, 55) + made
    return rng.choice(("", "\\n", "+", "/", "a/", '"', "%2F")) + made[rng.choice((0, 0, 0, 1, 4)) :]


_MAKERS = (
    _encoded,
    _secret,
    _secret,
    _discord,
    _assignment,
    _assignment,
    _url,
    _marked,
    _marked,
    _marked,
)


def text_of(rng: random.Random) -> str:
    parts: list[str] = []
    for _ in range(rng.choice((1, 2, 3, 5, 9))):
        choice = rng.random()
        if choice < 0.35:
            parts.append(rng.choice(_MAKERS)(rng))
        elif choice < 0.65:
            parts.append(rng.choice(_PIECES))
        elif choice < 0.75:
            parts.append(_some(rng, ALNUM + "-_", 13, 33))
        elif choice < 0.77:
            parts.append(_block(rng))
        else:
            parts.append(rng.choice(_WORDS))
        if rng.random() < 0.4:
            parts.append(rng.choice((" ", " ", '"', "\n", "\\n", ".", "/", ":", ": ", ", ")))
    text = "".join(parts)
    while rng.random() < 0.2:
        text = json.dumps({"arguments": text}, ensure_ascii=rng.random() < 0.5)
    return text


def raw_of(rng: random.Random) -> bytes:
    raw = text_of(rng).encode()
    if rng.random() < 0.1 and raw:
        at = rng.randrange(len(raw))
        raw = raw[:at] + rng.randbytes(rng.randint(1, 4)) + raw[at + rng.randint(0, 3) :]
    if rng.random() < 0.05:
        raw = raw[rng.randrange(len(raw) + 1) :]
    return raw


_VALUES = tuple(
    f"{word}{tail}"
    for word in ("hunter2hunter2", "S3cr3t/with+signs==", "tök€n-wörd-x")
    for tail in ("", "-0123456789abcdef")
)
REDACTED_VARIABLES = {f"V{at}_SECRET": one for at, one in enumerate(_VALUES)}


def compare_search(rng: random.Random, redactor: Redactor) -> None:
    """One text: the same answer to "is it suspicious?", and the same secrets."""
    raw = raw_of(rng)
    if rng.random() < 0.1:
        raw += rng.choice(redactor.values) + raw_of(rng)
    options = rng.random() < 0.2
    with without_core():
        expected = (suspicious(raw), redactor.suspects(raw), spans(raw, options=options))
    found = (suspicious(raw), redactor.suspects(raw), spans(raw, options=options))
    assert found == expected, (raw, options, found, expected)
    compare_levels(raw.decode("utf-8", "replace"))


def compare_near(rng: random.Random) -> None:
    """One text: a rule that is matched near its literal alone finds what it finds in the whole text."""
    raw = (_marked(rng) + rng.choice((" ", "\n", "\\n", "")) + _marked(rng)).encode()
    for _, literals, pattern in shapes.marked(raw, clues._RULES):
        offsets = OFFSETS.get(literals[0])
        if offsets is not None:
            near = {hit.span(hit.lastindex) for hit in _near(raw, literals, pattern, *offsets)}
            whole = {hit.span(hit.lastindex) for hit in pattern.finditer(raw)}
            assert whole <= near, raw


_RULES_ALONE = Redactor(key=b"k" * 32)


def compare_levels(text: str) -> None:
    """Events are searched as JSON, and only those that look suspicious text by text: both must find the same."""
    if not _RULES_ALONE.suspects(jsonbytes.encode_std({"text": text})):
        assert _RULES_ALONE.clean_text(text) == text, text


# -- values as JSON -----------------------------------------------------------------------------------------


class _Text(str):
    __slots__ = ()


class _Dict(dict[str, Any]):
    pass


class _Count(int):
    pass


_KEYS = ("text", "n", "tags", "ok", "größe", "with space", 'quote"d', "a\\b", "\x1f", "", "日本")
_ODD: tuple[Any, ...] = (
    *(
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        0.0,
        1e-5,
        1e-4,
        9.99e15,
        1e16,
        -1e16,
        5e-324,
        1.7976931348623157e308,
    ),
    *(2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**200, 0, -1, True, False, None),
    *(
        "\ud800",
        "\udfff x",
        "\x00",
        "\x7f",
        "\x1f\x80",
        "\u2028",
        _Text("x"),
        _Count(3),
        b"x",
        (1, 2),
        {1, 2},
    ),
    *(
        {1: 2},
        {"password": "x" * 9},
        {"$type": 1},
        {_Text("text"): 1},
        _Dict(text=1),
        {"unseen": 1},
        [],
        {},
        [[]],
        [{}],
    ),
)


def value_of(rng: random.Random, depth: int = 0) -> Any:
    choice = rng.random()
    if choice < 0.04:
        return rng.choice(_ODD)
    if choice < 0.30 and depth < 5:
        return {rng.choice(_KEYS): value_of(rng, depth + 1) for _ in range(rng.randint(0, 5))}
    if choice < 0.45 and depth < 5:
        return [value_of(rng, depth + 1) for _ in range(rng.randint(0, 5))]
    if choice < 0.55:
        return rng.choice(
            (
                rng.randint(-(2**64), 2**64),
                rng.randint(-99, 99),
                rng.random(),
                rng.uniform(-1e17, 1e17),
            )
        )
    if choice < 0.6:
        return "".join(
            chr(rng.choice((rng.randint(0, 0x7F), rng.randint(0, 0x10FFFF))))
            for _ in range(rng.randint(0, 40))
        )
    if choice < 0.62:
        deep: Any = 1
        for _ in range(rng.choice((50, 97, 98, 99, 100, 101, 102, 400))):
            deep = [deep] if rng.random() < 0.5 else {"text": deep}
        return deep
    return rng.choice(_WORDS) if choice < 0.8 else text_of(rng)


def compare_encoding(rng: random.Random, keys: Keys, redactor: Redactor) -> None:
    """One value: bytes only where Python would write them, and the same."""
    value = value_of(rng)
    most = THRESHOLD if rng.random() < 0.9 else rng.randint(0, 60)
    search = redactor.native_search() if rng.random() < 0.8 else (None, None)
    assert search is not None
    known = set(keys.known)
    found = native_core.core.encode(value, known, most, *search)
    expected: bytes | None = None
    try:
        if is_plain(value, Keys()):
            expected = jsonbytes.encode_std(value)
    except (ValueError, RecursionError):
        expected = None
    if found is None:
        # Left to Python: the value is not plain, or large, or has a key that was not seen before.
        assert expected is None or len(expected) > most or not _known(value, known), (
            value,
            expected,
        )
        return
    encoded, clue = found if type(found) is tuple else (found, None)
    assert encoded == expected, (value, encoded, expected)
    if search[0] is not None:
        with without_core():
            is_suspect = redactor.suspects(encoded)
        assert is_suspect == is_confirmed(encoded, clue, (), search[1]), (encoded, clue)


def _known(value: Any, known: set[str]) -> bool:
    parts = [value]
    for part in parts:
        if isinstance(part, dict):
            if any(type(key) is not str or key not in known for key in part):
                return False
            parts += part.values()
        elif isinstance(part, list):
            parts += part
    return True


def known_keys() -> Keys:
    keys = Keys()
    keys.learn(_KEYS)
    return keys


# -- lines of a tape ----------------------------------------------------------------------------------------


def compare_lines(rng: random.Random, folder: Path, count: int) -> None:
    """Two segments with the same events at the same times: the same bytes."""
    ticks = [rng.randrange(2**62) for _ in range(count * 2)]
    events = [
        (
            jsonbytes.quote(rng.choice(_WORDS)),
            f'"pid":1,"lane":{jsonbytes.quote_as_is(rng.choice(("main", "tâche/3", "日")))},',
            jsonbytes.encode_std({"text": text_of(rng) * rng.choice((1, 1, 1, 40))}),
        )
        for _ in range(count)
    ]
    files = []
    for is_native in (True, False):
        made = folder / str(is_native)
        made.mkdir()
        clock = iter(ticks)
        real = writing.wall_ns, writing.mono_ns
        writing.wall_ns = writing.mono_ns = lambda clock=clock: next(clock)  # type: ignore[assignment, misc]
        core = native_core.core
        try:
            if not is_native:
                native_core.core = None
            writer = writing.SegmentWriter(made)
            for event in events:
                writer.append(*event)
            writer.close()
        finally:
            native_core.core = core
            writing.wall_ns, writing.mono_ns = real
        files.append(Path(writer.path).read_bytes())
        assert (writer.seq, writer.size) == (count, len(files[-1]))
    assert files[0] == files[1]


def _event_of(rng: random.Random) -> NewEvent:
    """An event with every kind of field, in most cases plain."""
    data = value_of(rng) if rng.random() < 0.7 else {"text": text_of(rng), "n": value_of(rng)}
    redacted: bool | str = False
    if rng.random() < 0.3:
        headers = [["Host", "example.com"], ["x-api-key", f"sk-ant-redacted-anthropic-{'0' * 8}"]]
        data = {"n": data, "headers": headers, "text": text_of(rng)}
        redacted = "headers"
    elif rng.random() < 0.1:
        data, redacted = {"text": text_of(rng), "unseen and redacted": [1, None]}, True
    refs = (None, None, 0, 7, 2**63 - 1, 2**63, -1, "4711:3", text_of(rng)[:60], True)
    return NewEvent(
        rng.choice(("x", "call", "tool:result", "größe", text_of(rng)[:40], _Text("kind"))),
        data,
        rng.choice(('""', '"agent.py:42 respond"', '"é.py:1 f"')),
        rng.choice(refs) if rng.random() < 0.4 else 0,
        rng.choice(refs) if rng.random() < 0.4 else None,
        redacted,
        rng.random() < 0.5,
        rng.choice((None, None, "agent", "größe", text_of(rng)[:300], _Text("who"))),
        rng.choice((None, None, "a reason", text_of(rng), 5)),
    )


class _Counted:
    """The core, and how many events it has written."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self.written = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def append(self, tape: Any, *event: Any) -> int | None:
        seq: int | None = self._core.append(tape, *event)
        self.written += seq is not None
        return seq


def _events_on_tape(folder: Path, seed: int, count: int, *, redact: bool) -> bytes:
    rng = random.Random(seed)
    ticks = iter(range(10**18, 2 * 10**18, 977))
    redactor = Redactor(key=b"k" * 32, variables=REDACTED_VARIABLES) if redact else None
    with ExitStack() as patches:
        for module in (writing, encoder):
            for name in ("wall_ns", "mono_ns"):
                patches.enter_context(mock.patch.object(module, name, ticks.__next__))
        segment = OpenSegment(folder, who="test", redactor=redactor)
        writer = writing.SegmentWriter(folder)
        segment.write_to(writer)
        for at in range(count):
            if at == count // 2:
                segment.learn_secrets({"LATE_SECRET": "toolu_01A09q90qw90lq917835lq9"})
            event = _event_of(rng)
            try:
                assert append(segment, event) == writer.seq - 1
            except (TypeError, ValueError):
                # Only data that the caller wrongly declares as final JSON; time has passed in neither form.
                assert event.redacted is True
        writer.close()
    return Path(writer.path).read_bytes()


def compare_events(folder: Path, seed: int, count: int) -> int:
    """Two segments with the same events: the same bytes. Return how many events the core wrote in one step."""
    core = native_core.core
    native_core.core = counted = _Counted(core)
    try:
        for redact in (True, False):
            made = {}
            for is_native in (True, False):
                place = folder / f"{redact}-{is_native}"
                place.mkdir()
                native_core.core = counted if is_native else None
                made[is_native] = _events_on_tape(place, seed, count, redact=redact)
            for ours, theirs in zip(made[True].splitlines(), made[False].splitlines(), strict=True):
                assert ours == theirs, (ours, theirs)
    finally:
        native_core.core = core
    return counted.written


def compare(count: int, seed: int) -> None:
    """Compare `count` texts, as many values, a tenth as many lines, and a fifth as many events."""
    rng = random.Random(seed)
    keys = known_keys()
    redactor = Redactor(key=b"k" * 32, variables=REDACTED_VARIABLES)
    for _ in range(count):
        compare_search(rng, redactor)
        compare_encoding(rng, keys, redactor)
        compare_near(rng)
    with tempfile.TemporaryDirectory() as folder:
        compare_lines(rng, Path(folder), max(20, count // 10))
        written = compare_events(Path(folder), seed, max(20, count // 10))
        assert written > count // 40
