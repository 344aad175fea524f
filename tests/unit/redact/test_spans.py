"""Every secret is found, whatever stands around it; prose, code and ids are left alone."""

import base64
import itertools
import json
import random
import re
import re._constants as sre
import re._parser as sre_parser
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.redact import Redactor, StreamCleaner, shapes
from playhead.redact.spans import spans, suspicious

ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "_-"
HEX = "0123456789abcdef"


def made(letters: str, length: int, seed: str) -> str:
    """Made here and not written down: a scanner of this repository should find nothing."""
    return "".join(random.Random(seed).choices(letters, k=length))


# As their issuers make them today.
CORPUS = {
    "anthropic": "sk-ant-api03-" + made(URLSAFE, 93, "a") + "AA",
    "openai legacy": "sk-" + made(ALNUM, 48, "b"),
    "openai project": "sk-proj-" + made(URLSAFE, 150, "c"),
    "openrouter": "sk-or-v1-" + made(HEX, 64, "d"),
    "langfuse": "sk-lf-" + "-".join(made(HEX, n, "e") for n in (8, 4, 4, 4, 12)),
    "github classic": "ghp_" + made(ALNUM, 36, "f"),
    "github fine-grained": "github_pat_" + made(ALNUM, 22, "g") + "_" + made(ALNUM, 59, "h"),
    "github app": "ghs_" + made(ALNUM, 36, "i"),
    "gitlab": "glpat-" + made(URLSAFE, 20, "j"),
    "aws": "AKIA" + made(string.ascii_uppercase + "234567", 16, "k"),
    "aws session": "ASIA" + made(string.ascii_uppercase + "234567", 16, "l"),
    "google": "AIza" + made(URLSAFE, 35, "m"),
    "google oauth": "ya29." + made(URLSAFE, 120, "n"),
    "google client": "GOCSPX-" + made(URLSAFE, 28, "o"),
    "slack bot": "xoxb-" + "-".join((made(string.digits, 12, "p"), made(ALNUM, 24, "q"))),
    "slack app": "xapp-1-" + made(ALNUM, 11, "r") + "-" + made(HEX, 64, "s"),
    "stripe": "sk_" + "live_" + made(ALNUM, 24, "t"),
    "stripe restricted": "rk_" + "live_" + made(ALNUM, 99, "u"),
    "stripe webhook": "whsec_" + made(ALNUM, 32, "v"),
    "hugging face": "hf_" + made(ALNUM, 34, "w"),
    "groq": "gsk_" + made(ALNUM, 52, "x"),
    "xai": "xai-" + made(ALNUM, 80, "y"),
    "perplexity": "pplx-" + made(ALNUM, 48, "z"),
    "replicate": "r8_" + made(ALNUM, 37, "0"),
    "tavily": "tvly-dev-" + made(ALNUM, 32, "1"),
    "pinecone": "pcsk_" + made(ALNUM, 6, "2") + "_" + made(ALNUM, 60, "3"),
    "langsmith": "lsv2_pt_" + made(HEX, 32, "4") + "_" + made(HEX, 10, "5"),
    "npm": "npm_" + made(ALNUM, 36, "6"),
    "pypi": "pypi-AgEIcHlwaS5vcmc" + made(URLSAFE, 150, "7"),
    "sendgrid": "SG." + made(URLSAFE, 22, "8") + "." + made(URLSAFE, 43, "9"),
    "mailgun": "key-" + made(HEX, 32, "aa"),
    "twilio": "SK" + made(HEX, 32, "ab"),
    "digitalocean": "dop_v1_" + made(HEX, 64, "ac"),
    "databricks": "dapi" + made(HEX, 32, "ad"),
    "linear": "lin_api_" + made(ALNUM, 40, "ae"),
    "notion": "ntn_" + made(ALNUM, 46, "af"),
    "supabase": "sbp_" + made(HEX, 40, "ag"),
    "shopify": "shpat_" + made(HEX, 32, "ah"),
    "planetscale": "pscale_tkn_" + made(URLSAFE, 43, "ai"),
    "postman": "PMAK-" + made(HEX, 24, "aj") + "-" + made(HEX, 34, "ak"),
    "doppler": "dp.pt." + made(ALNUM, 43, "al"),
    "vault": "hvs." + made(URLSAFE, 95, "am"),
    "age": "AGE-SECRET-KEY-1" + made(string.ascii_uppercase + string.digits, 58, "an"),
    "jwt": ".".join(("eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0In0", made(URLSAFE, 43, "ao"))),
    "telegram": "123456789:AA" + made(URLSAFE, 32, "ap") + "x",
    "discord": f"MT{made(ALNUM, 24, 'aq')}.{made(URLSAFE, 6, 'ar')}.{made(URLSAFE, 38, 'as')}",
}
SURROUNDINGS = [
    "{}",
    "my key is {}, keep it",
    'export KEY="{}"',
    "line one\n{}\nline three",
    '{{"text": "line\\n{}\\n"}}',
    "\x1b[32m{}\x1b[0m",
    "\x1b[1;31m{}\x1b[0m",
    "é{}é",
    "key={};",
    "<{}>",
    "\x1f{}",
]


@pytest.mark.parametrize("secret", CORPUS.values(), ids=CORPUS)
@pytest.mark.parametrize("around", SURROUNDINGS)
def test_a_real_secret_is_found_whole_in_every_surrounding(secret, around):
    text = around.format(secret)
    raw = text.encode()
    assert any(secret.encode() in raw[start:end] for start, end, _ in spans(raw)), text
    assert suspicious(raw)
    told = json.dumps(text, ensure_ascii=False)
    assert suspicious(told.encode())
    assert suspicious(json.dumps({"arguments": told}, ensure_ascii=False).encode())


def fitting(pattern, chance):
    """A random ASCII text that fits the pattern, but for its lookaheads. Drawn by hypothesis, keys of this length
    take most of the time of this file.
    """
    return "".join(_fitting(op, value, chance) for op, value in pattern)


def _fitting(op, value, chance):
    if op is sre.LITERAL:
        return chr(value)
    if op is sre.IN:
        kinds = {sre.CATEGORY_WORD: f"{ALNUM}_", sre.CATEGORY_DIGIT: string.digits}
        chars = {
            sre.LITERAL: chr,
            sre.RANGE: lambda ends: "".join(map(chr, range(ends[0], ends[1] + 1))),
            sre.CATEGORY: kinds.__getitem__,
        }
        return chance.choice("".join(chars[kind](told) for kind, told in value))
    if op is sre.MAX_REPEAT:
        least, most, what = value
        return "".join(
            fitting(what, chance)
            for _ in range(chance.choice([least, min(most, least + chance.randrange(40))]))
        )
    assert op in (sre.ASSERT, sre.ASSERT_NOT), f"a shape with {op}: teach this test to draw it"
    return ""


@pytest.mark.parametrize(("starts", "rest"), [shape[1:] for shape in shapes.SHAPES])
def test_whatever_fits_a_shape_is_found(starts, rest):
    chance, pattern = random.Random(rest), sre_parser.parse(rest, re.ASCII)
    drawn = [
        one for _ in range(200) if re.fullmatch(rest, one := fitting(pattern, chance), re.ASCII)
    ]
    assert len(drawn) > 100
    for one in drawn[:100]:
        secret = f"{chance.choice(starts.split())}{one}".encode()
        raw = b"a " + secret + b" b"
        assert suspicious(raw)
        assert any(secret in raw[first:last] for first, last, _ in spans(raw))


CONTEXTS = [
    ("postgres://bob:{}@db.example.com/app", "hunter2"),
    ("redis://:{}@cache:6379", "hunter2"),
    ("mongodb+srv://app:{}@cluster0.example.net/?retryWrites=true", "p%40ss"),
    ("see https://user:{}@example.com/x.git and mail bob@example.com", "s"),
    ("Authorization: Bearer {}", "abcdef0123456789ABCDEF"),
    ("curl -H 'Authorization: Basic {}'", "dXNlcjpwYXNzd29yZDEyMw=="),
    ("authorization: token {}", "0123456789abcdef0123"),
    ("password={}", "hunter22"),
    ("PASSWORD={}", "correcthorse"),
    ("DB_PASSWORD = '{}'", "correct horse battery"),
    ("user=bob&password={}&x=1", "correcthorse"),
    ("https://x.test/cb?access_token={}", "abcdefghijk"),
    ('{{"password": "{}"}}', "tiger"),
    ('{{\\"api_key\\": \\"{}\\"}}', "abcdefgh"),
    ("api-key: {}", "0a1b2c3d4e5f"),
    ("client_secret: '{}'", "abcdefgh"),
    ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("AccountName=x;AccountKey={};Suffix=y", "Zm9v/YmFy+" * 8 + "=="),
    ("Server=db;Uid=sa;Pwd={};", "hunter22"),
    ("GITHUB_TOKEN={}", "abcdefgh"),
    ("https://hooks.slack.com/services/T00000000/B00000000/{}", "abcdefABCDEF012345678901"),
    ("https://discord.com/api/webhooks/123456789012345678/{}", "abcdefABCDEF0123456789_-"),
    ("https://acc.blob.core.windows.net/c?sv=1&sig={}", "abcdefABCDEF0123456789%2B"),
    ("https://b.s3.amazonaws.com/k?X-Amz-Signature={}", "0123456789abcdef" * 4),
]


@pytest.mark.parametrize(("text", "secret"), CONTEXTS)
def test_what_stands_before_it_tells_a_secret_that_has_no_shape(text, secret):
    raw = text.format(secret).encode()
    (start, end, _) = next(one for one in spans(raw) if secret.encode() in raw[one[0] : one[1]])
    assert raw[start:end] == secret.encode()


@pytest.mark.parametrize(("text", "secret"), CONTEXTS)
def test_a_secret_known_by_its_context_makes_json_suspicious(text, secret):
    assert suspicious(json.dumps({"text": text.format(secret)}).encode())


@pytest.mark.parametrize("text", ["mysql --password {} app", "tool --token {} run"])
def test_the_value_of_an_option_is_found_in_a_command_line_only(text):
    raw = text.format("hunter2").encode()
    assert spans(raw) == []
    assert [raw[start:end] for start, end, _ in spans(raw, options=True)] == [b"hunter2"]


@pytest.mark.parametrize("name", ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
def test_a_private_key_is_found_from_its_first_line_to_its_last(name):
    body = "\n".join(made(ALNUM + "+/", 64, name + str(line)) for line in range(12))
    key = f"-----BEGIN {name}PRIVATE KEY-----\n{body}\n-----END {name}PRIVATE KEY-----"
    raw = f"before\n{key}\nafter".encode()
    assert [raw[start:end].decode() for start, end, _ in spans(raw)] == [key]
    assert suspicious(json.dumps(raw.decode()).encode())


def test_a_private_key_that_is_cut_off_is_hidden_to_the_end():
    raw = b"-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nabc"
    assert spans(raw) == [(0, len(raw), "pem")]


HARMLESS = [
    "The customer asked whether the refund had been sent; we looked at the order.",
    "2026-11-15T07:11:05.123456Z 3f2b8c1e-9a4d-4e2f-8b7a-1c2d3e4f5a6b msg_01Xk7Qw9ZrT5AbCdEfGh",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "call_abc123DEF456ghi789JKL012 toolu_01A09q90qw90lq917835lq9 chatcmpl-9x8y7z6w5v4u3t2s1r0q",
    "def test_torn_tail_yields_every_whole_event(tmp_path): ...",
    "risk-management-framework-overview-2024 task-force-one-two-three",
    "sk-learn-and-other-kebab-words-in-a-row",
    "/usr/local/lib/python3.11/site-packages/playhead/recording/record.py",
    "max_tokens=4096, input_tokens: 1200, next_page_token=abc",
    "password: required, token: string, secret: none",
    "def login(user, password=None, api_key=settings.API_KEY, secret=get_secret2()):",
    "api_key=os.environ['OPENAI_API_KEY']",
    "client = OpenAI(api_key=config.openai_key)",
    'the "password" field, the api key, a secret: nobody knows',
    "basic authentication-mechanisms and bearer authentication-schemes",
    "see https://example.com/a/b?q=1 or write to bob@example.com",
    "git@github.com:owner/repository-with-a-long-name.git",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "primary_key=42 foreign_key='users.id' public_key: id_rsa.pub keyboard=us monkey: banana",
    "temperature=0.7 top_p=1 tokenizer=cl100k_base",
    "--verbose --output-format=json --model gpt-4o-mini-2024-07-18",
    "sentence-transformers/all-MiniLM-L6-v2 gpt-4o-mini-2024-07-18 claude-sonnet-4-5-20250929",
    "DEBUG:urllib3.connectionpool:https://api.openai.com:443 POST /v1/chat/completions 200 None",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_prose_code_and_ids_are_left_alone(text):
    assert spans(text.encode()) == []


def test_known_values_are_found_wherever_they_stand():
    raw = b"a hunter2-hunter2 b hunter2"
    assert spans(raw, {b"hunter2": "variable"}) == [
        (2, 9, "variable"),
        (10, 17, "variable"),
        (20, 27, "variable"),
    ]


def test_two_secrets_in_one_run_are_both_found():
    first, second = CORPUS["github classic"], CORPUS["github app"]
    raw = f"{first}-{second}".encode()
    assert [raw[start:end].decode() for start, end, _ in spans(raw)] == [first, second]


def test_secrets_that_overlap_become_one():
    raw = b"password=sk-ant-api03-abcdefghijklmnopqrst"
    (span,) = spans(raw)
    assert raw[span[0] : span[1]] == b"sk-ant-api03-abcdefghijklmnopqrst"


@pytest.mark.parametrize(
    "unit",
    [
        b"a",
        b"sk-",
        b"://a:",
        b"password=",
        b"-----BEGIN PRIVATE KEY",
        b"eyJ.",
        b"eyJ-",
        b"\\",
        b"aGk/",
        b"--a-",
    ],
)
def test_looking_takes_time_in_proportion_to_the_text(unit):
    # Quadratic, this would take hours and not the seconds that a test may take.
    raw = unit * (300_000 // len(unit))
    suspicious(raw)
    spans(raw)


WORDS = [
    *CORPUS.values(),
    *(text.format(secret) for text, secret in CONTEXTS),
    *HARMLESS,
    *(
        "sk-",
        "password",
        "=",
        ": ",
        '"',
        "\\",
        "token",
        "://",
        "@",
        "-----BEGIN RSA PRIVATE KEY-----",
    ),
    *("é", "\n", "\x1b[31m", "a" * 16, "Bearer ", "key", "_", "-", ".", "hunter22"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=6), st.sampled_from(["", " ", "\n", ","]))
def test_whatever_is_found_in_a_text_makes_every_event_with_that_text_suspicious(words, between):
    # Otherwise a text would be cleaned or not depending on what stands beside it, and a replay,
    # which looks at a request alone, would see another request than the tape.
    text = between.join(words)
    encoded = json.dumps(text, ensure_ascii=False).encode()
    if spans(text.encode()):
        assert suspicious(text.encode())
        assert suspicious(encoded)
        assert suspicious(b'{"a":' + encoded + b',"b":1}')


@given(st.binary(max_size=300))
def test_any_bytes_can_be_looked_at(raw):
    found = spans(raw)
    assert all(0 <= start < end <= len(raw) for start, end, _ in found)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(found))


def test_a_key_block_right_behind_a_hash_is_suspicious():
    text = b"sha256:" + b"e3b0c44298fc1c14" * 4 + b"-----BEGIN RSA PRIVATE KEY-----"
    assert spans(text)
    assert suspicious(text)


def test_a_secret_beside_a_large_file_in_base64_is_found():
    picture = base64.b64encode(random.Random(1).randbytes(200_000))
    key = CORPUS["openai project"].encode()
    token = b"a1B2" * 5 + base64.b64encode(random.Random(2).randbytes(900))
    text = b'{"url":"data:image/png;base64,' + picture + b'","key":"' + key + b'"}'
    (found,) = spans(text)
    assert text[found[0] : found[1]] == key
    assert suspicious(text)
    text = b"Authorization: Bearer " + token + b" " + picture
    (found,) = spans(text)
    assert text[found[0] : found[1]] == token
    assert suspicious(text)
    value = picture[5000:5040]
    assert spans(picture, {value: "variable"}) == [(5000, 5040, "variable")]
    assert suspicious(picture, (value[:16],))


def test_a_secret_in_the_texts_of_binary_data_is_found():
    binary = random.Random(1).randbytes(100_000)
    key = CORPUS["github classic"].encode()
    raw = binary + b"\0" + key + b"\0" + binary + b"password=hunter22\n\0"
    found = [raw[start:end] for start, end, _ in spans(raw)]
    assert found == [key, b"hunter22"]
    assert suspicious(raw)
    assert not spans(binary)
    assert spans(binary, {binary[500:520]: "variable"}) == [(500, 520, "variable")]


def test_files_are_searched_at_tens_of_megabytes_a_second():
    binary = random.Random(1).randbytes(2_000_000)
    began = time.process_time()
    assert not spans(binary)
    assert not suspicious(base64.b64encode(binary))
    # 0.15 s; 2.6 s before such data was told from text.
    assert time.process_time() - began < 1.3


FORM = (
    b'--b\r\nContent-Disposition: form-data; name="key"\r\n\r\na.txt\r\n'
    b'--b\r\nContent-Disposition: form-data; name="x-amz-security-token"\r\n\r\n/0CFrRVzVNyOpnqEjnwicLShkoJxPP\r\n'
    b'--b\r\nContent-Disposition: form-data; name="password"\r\nContent-Type: text/plain\r\n\r\nhunter2!\r\n'
    b'--b\r\nContent-Disposition: form-data; name="x-amz-signature"\r\n\r\n'
    + b"4f8e2a6c" * 8
    + b"\r\n--b--\r\n"
)


@pytest.mark.parametrize("raw", [FORM, json.dumps(FORM.decode()).encode()], ids=["plain", "json"])
def test_secret_fields_of_a_multipart_form_are_found_and_others_are_not(raw):
    assert suspicious(raw)
    found = [raw[start:end] for start, end, _ in spans(raw)]
    assert found == [b"/0CFrRVzVNyOpnqEjnwicLShkoJxPP", b"hunter2!", b"4f8e2a6c" * 8]


@pytest.mark.parametrize("size", [1, 7, 30, 61, 1000])
def test_a_form_that_is_sent_in_pieces_is_redacted_as_a_whole_one_is(size):
    redactor = Redactor(key=b"k")
    stream = StreamCleaner(redactor)
    out = []
    for at in range(0, len(FORM), size):
        out += stream.feed([(FORM[at : at + size], 0)])
    out += stream.feed([], last=True)
    assert b"".join(piece for piece, _ in out) == redactor.clean_bytes(FORM)


def test_a_key_of_hexadecimal_digits_alone_is_not_taken_for_a_uuid():
    raw = json.dumps({"text": "fc-" + "0123456789abcdef" * 2}).encode()
    assert suspicious(raw)
    assert len(spans(raw)) == 1


def test_a_name_at_the_end_of_a_text_has_no_value():
    assert not suspicious(b"monkey=3, and no value behind this api_key")
