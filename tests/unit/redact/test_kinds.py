"""Every kind of secret in every form. Samples are made from the rules, so a new rule is tested as it is added."""

import base64
import json
import random
import re
import urllib.parse

import pytest

from playhead.redact import Redactor, StreamCleaner
from playhead.redact.shapes import SHAPES
from playhead.redact.spans import spans, suspicious

try:
    from re import _parser as sre
except ImportError:  # Python 3.10
    import sre_parse as sre

HEX = "0123456789abcdef"
ALNUM = HEX + "ghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
CHANCE = random.Random(15)


def some(letters: str, size: int) -> str:
    """Letters and digits in turn, as in real keys."""
    return "".join(CHANCE.choice("0123456789" if at % 4 == 3 else letters) for at in range(size))


def sample(pattern: str) -> str:
    """A text that fits a pattern of the table."""
    return "".join(map(_sample, sre.parse(pattern)))


def _sample(node) -> str:
    what, told = str(node[0]), node[1]
    if what == "LITERAL":
        return chr(told)
    if what == "MAX_REPEAT":
        least, most, inner = told
        return "".join(_sample(one) for at in range(min(max(least, 8), most)) for one in inner)
    if what == "IN":
        fits = re.compile("[" + "".join(_class(one) for one in told) + "]")
        return CHANCE.choice([one for one in ALNUM if fits.fullmatch(one)])
    if what == "SUBPATTERN":
        return "".join(map(_sample, told[3]))
    return ""  # looks ahead and behind


def _class(node) -> str:
    what, told = str(node[0]), node[1]
    if what == "RANGE":
        return f"{re.escape(chr(told[0]))}-{re.escape(chr(told[1]))}"
    if what == "CATEGORY":
        return r"\w" if "WORD" in str(told) else r"\d"
    return re.escape(chr(told))


STARTS = [(kind, start, rest) for kind, starts, rest in SHAPES for start in starts.split()]

# Text around a secret, and the secret: `{}` is where it stands.
IN_TEXT = {
    "azure": ("client secret {} ok", "abc8Q~" + some(ALNUM, 34)),
    "mailchimp": ("key {} ok", some(HEX, 32) + "-us12"),
    "google refresh": ('"refresh": "{}"', "1//0g" + some(ALNUM, 40)),
    "terraform": ("use {} here", some(ALNUM, 14) + ".atlasv1." + some(ALNUM, 60)),
    "airtable": ("use {} here", "pat" + some(ALNUM, 14) + "." + some(HEX, 64)),
    "sigv4": ("SignedHeaders=host, Signature={}", some(HEX, 64)),
    "token in address": ("git clone https://{}@github.com/x/y", some(ALNUM, 40)),
    "key in address": ("GET /v1/models?key={} HTTP/1.1", some(ALNUM, 39)),
    "oauth code": ("https://app.test/callback?code={}&state=x", some(ALNUM, 40)),
    "oauth form": ("code={}&grant_type=authorization_code", some(ALNUM, 40)),
    "docker auth": ('{"auths": {"x": {"auth": "{}"}}}', base64.b64encode(b"user:pw-12345-abcdef").decode()),
    "yaml token": ("api:\n  token: {}\n  x: 1", some(ALNUM, 32)),
    "netrc": ("machine x.test login bob password {}\n", "hunter2!x"),
    "xml": ("<user>bob</user><password>{}</password>", "hunter2!x"),
    "curl": ("curl -s -u bob:{} https://x.test", "hunter2!x"),
    "mysql": ("mysql -h db -u root -p{} shop", "hunter2!x"),
    "sshpass": ("sshpass -p {} ssh bob@x.test", "hunter2!x"),
    "pgpass": ("db.test:5432:shop:bob:{}", "hunter2!x"),
    "authorization apikey": ("Authorization: ApiKey {}", some(ALNUM, 24)),
    "authorization digest": ("authorization: Digest {}", 'username=bob, response=' + some(HEX, 32)),
    "cookie": ("Cookie: {}", "sid=abcd1234; theme=dark"),
    "set-cookie": ("Set-Cookie: {}", "sid=abcd1234; Path=/; HttpOnly"),
    "sessionid": ("GET /x sessionid={} ok", some(ALNUM, 32)),
    "phpsessid": ("PHPSESSID={}", some(ALNUM, 26)),
}  # fmt: skip
SECRETS = [
    *((f"{kind} {start}", "the key is {} indeed", start + sample(rest)) for kind, start, rest in STARTS),
    *((name, text, secret) for name, (text, secret) in IN_TEXT.items()),
]  # fmt: skip


@pytest.fixture
def redactor():
    return Redactor(key=b"k" * 32)


@pytest.fixture(params=SECRETS, ids=lambda one: one[0])
def case(request):
    _, text, secret = request.param
    return text.replace("{}", secret), secret


def test_text(case, redactor):
    text, secret = case
    assert secret not in redactor.clean_text(text)
    assert redactor.clean_text(text) == redactor.clean_text(text)


def test_bytes_and_base64(case, redactor):
    text, secret = case
    assert secret.encode() not in redactor.clean_bytes(text.encode())
    hidden = redactor.clean({"$bytes": base64.b64encode(text.encode()).decode()})
    assert secret.encode() not in base64.b64decode(hidden["$bytes"])


def test_json_and_json_inside_json(case, redactor):
    text, secret = case
    told = text
    for depth in range(1, 5):
        told = json.dumps({"a": told})
        assert json.dumps(secret)[1:-1] not in redactor.clean_text(told), depth


def test_the_quick_look_sees_what_the_search_finds(case):
    text, _ = case
    for raw in (text.encode(), b"x" * 2000 + b"\n" + text.encode(), json.dumps(text).encode()):
        if spans(raw):
            assert suspicious(raw)


def test_streams_cut_in_two(redactor):
    """Only secrets with a start of their own: words before a secret may have passed already."""
    for kind, start, rest in STARTS:
        secret = start + sample(rest)
        raw = f"the key is {secret} indeed".encode()
        for cut in range(14, len(raw) - 8, 5):
            cleaner = StreamCleaner(redactor)
            pieces = [*cleaner.feed([(raw[:cut], 0)]), *cleaner.feed([(raw[cut:], 1)], last=True)]
            assert secret.encode() not in b"".join(piece for piece, _ in pieces), kind


# The words before these secrets are in the same piece, or close enough to count as context.
CUT = (
    "azure",
    "mailchimp",
    "google refresh",
    "terraform",
    "airtable",
    "sigv4",
    "token in address",
    "key in address",
)
CUT = (*CUT, "oauth code", "oauth form", "docker auth", "yaml token", "xml")


@pytest.mark.parametrize("name", CUT)
def test_most_of_a_secret_without_a_start_never_passes_wherever_its_stream_is_cut(name, redactor):
    text, secret = IN_TEXT[name]
    raw, hidden = f"{'x' * 100}\n{text.replace('{}', secret)}\n{'y' * 80}".encode(), secret.encode()
    first = raw.index(hidden)
    for cut in range(first, first + len(hidden) + 3):
        cleaner = StreamCleaner(redactor)
        pieces = [*cleaner.feed([(raw[:cut], 0)]), *cleaner.feed([(raw[cut:], 1)], last=True)]
        assert hidden[: max(8, len(hidden) // 2)] not in b"".join(piece for piece, _ in pieces), cut


VALUE = "Correct-Horse+Battery/Staple?42"


@pytest.mark.parametrize("before", ["", "u:", "ab", "bob:"])
def test_a_known_secret_is_found_in_base64_and_in_addresses(before):
    redactor = Redactor(key=b"k" * 32, variables={"SHOP_PASSWORD": VALUE})
    encoded = base64.b64encode(f"{before}{VALUE}".encode()).decode()
    clean = redactor.clean_text(f"Basic x {encoded} y")
    assert "redacted" in clean
    assert encoded[6:-6] not in clean
    assert "Battery" not in redactor.clean_text(
        "https://x.test/?p=Correct-Horse%2BBattery%2FStaple%3F42"
    )


@pytest.mark.parametrize("name", ["X-Auth-Key", "x-functions-key", "X-Session", "x-session-token"])
def test_headers_that_hold_secrets(redactor, name):
    assert "abcd-1234" not in redactor.clean_header(name, "abcd-1234")[1]


HARMLESS = [
    "the pattern -p and -u of curl are options; mysql -h db -u root shop",
    "code=200 exit code=1 error_code=ECONNREFUSED",
    "token: string, next token: Hel",
    "cookie: a small cake. Cookie: yes",
    "login bob with the password that you know",
    "author: Bob; authorization: none",
    "see https://bob@example.com and ssh://git@github.com/x",
    "us-east-1 and eu-west-1; 1//01 + 2",
    "path patterns pat.match(x)",
    "sessionid is a cookie",
    "<p>The password> is</p>",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_prose_is_left_alone(redactor, text):
    assert redactor.clean_text(text) == text


def in_base64(text):
    return base64.b64encode(text.encode()).decode()


def in_url_safe_base64(text):
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def in_an_address(text):
    return f"https://x.test/?q={urllib.parse.quote(text)}"


@pytest.mark.parametrize("encode", [in_base64, in_url_safe_base64], ids=lambda one: one.__name__)
def test_every_kind_is_found_in_base64_of_a_text(redactor, encode):
    for name, text, secret in SECRETS:
        plain = f"?>~ {text.replace('{}', secret)}"
        for told in (encode(plain), json.dumps({"a": json.dumps({"data": f"x\n{encode(plain)}"})})):
            clean = redactor.clean_text(told)
            assert encode(plain) not in clean, name
            assert redactor.clean_text(clean) == clean, name
            assert redactor.clean_bytes(told.encode()).decode() == clean, name


def test_a_program_that_decodes_redacted_base64_gets_a_text_with_placeholders(redactor):
    _, _, secret = SECRETS[0]
    clean = redactor.clean_text(json.dumps({"content": in_base64(f"KEY={secret}\nMODE=a\n")}))
    text = base64.b64decode(json.loads(clean)["content"]).decode()
    assert text == f"KEY={redactor.clean_text(secret)}\nMODE=a\n"


def test_base64_that_is_no_text_or_has_no_secret_stays(redactor):
    image = base64.b64encode(b"\x89PNG\r\n\x1a\n" + CHANCE.randbytes(3000)).decode()
    for told in (in_base64("just a text, with nothing in it"), image, "msg_01Xk7Qw9ZrT5aBcDeFgHiJ"):
        assert redactor.clean_text(json.dumps({"a": told})) == json.dumps({"a": told})


@pytest.mark.parametrize("cut", range(20, 80, 7))
def test_base64_of_a_text_is_found_in_two_pieces(redactor, cut):
    _, _, secret = SECRETS[0]
    raw = f'{{"data": "{in_base64(f"the key is {secret} indeed, and more")}"}}'.encode()
    cleaner = StreamCleaner(redactor)
    pieces = [*cleaner.feed([(raw[:cut], 0)]), *cleaner.feed([(raw[cut:], 1)], last=True)]
    whole = b"".join(piece for piece, _ in pieces)
    assert secret.encode() not in base64.b64decode(json.loads(whole)["data"] + "==")


def test_every_kind_is_found_in_an_address(redactor):
    for name, text, secret in SECRETS:
        plain = in_an_address(text.replace("{}", secret))
        for address in (plain, in_an_address(plain)):
            clean = redactor.clean_text(address)
            assert secret not in urllib.parse.unquote(urllib.parse.unquote(clean)), name
            assert redactor.clean_text(clean) == clean, name


def all_escaped(text):
    return "".join(f"\\u{ord(one):04x}" for one in text)


def some_escaped(text):
    """As encoders of .NET and Go write it."""
    return "".join(one if one.isalnum() else f"\\u{ord(one):04X}" for one in text)


@pytest.mark.parametrize("escape", [all_escaped, some_escaped], ids=lambda one: one.__name__)
def test_every_kind_is_found_in_escapes_of_json(redactor, escape):
    for name, text, secret in SECRETS:
        told = f'{{"a": "{escape(text.replace("{}", secret))}"}}'
        for nested in (told, json.dumps({"b": told})):
            clean = redactor.clean_text(nested)
            inner = json.loads(json.loads(clean)["b"]) if nested != told else json.loads(clean)
            assert secret not in inner["a"], name
            assert redactor.clean_text(clean) == clean, name


@pytest.mark.parametrize("escape", [all_escaped, some_escaped], ids=lambda one: one.__name__)
def test_a_secret_in_escapes_that_a_stream_cuts_in_two_is_found(redactor, escape):
    for number, (kind, start, rest) in enumerate(STARTS):
        secret = start + sample(rest)
        raw = ('{"a": "' + escape(f"the key is {secret} indeed") + '"}').encode()
        first = raw.index(escape(secret).encode())
        # Five places, other ones for each kind: inside and between escapes.
        for cut in range(first + 1 + number % 13, first + len(escape(secret)), len(raw) // 5):
            cleaner = StreamCleaner(redactor)
            pieces = [*cleaner.feed([(raw[:cut], 0)]), *cleaner.feed([(raw[cut:], 1)], last=True)]
            clean = json.loads(b"".join(piece for piece, _ in pieces))
            assert secret not in clean["a"], (kind, cut)
