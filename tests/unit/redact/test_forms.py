"""Placeholders in the form of what they replace, so that programs can parse them in a replay."""

import base64
import json
from http.cookies import SimpleCookie

import pytest

from playhead.redact import Redactor, StreamCleaner


def part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def token(claims, signature="dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"):
    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims)}.{signature}"


def claims_of(text):
    payload = text.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


@pytest.fixture
def redactor():
    return Redactor(key=b"k")


def forms(redactor, jwt):
    """The token in each place where it may stand."""
    yield redactor.clean({"access_token": jwt})["access_token"]
    yield redactor.clean_text(f"the token is {jwt} today").split()[3]
    yield redactor.clean_header("Authorization", f"Bearer {jwt}")[1].split()[1]
    yield json.loads(redactor.clean_bytes(json.dumps({"id_token": jwt}).encode()))["id_token"]


def test_a_token_keeps_its_claims_and_loses_its_signature(redactor):
    jwt = token({"sub": "1234567890", "exp": 1_900_000_000})
    for clean in forms(redactor, jwt):
        assert claims_of(clean) == {"sub": "1234567890", "exp": 1_900_000_000}
        signature = clean.split(".")[2]
        assert signature.startswith("redacted_")
        assert len(signature) == 43
        assert base64.urlsafe_b64decode(signature + "=")
        assert "dozjgNryP4J3" not in clean


def test_secrets_in_the_claims_are_replaced(redactor):
    clean = redactor.clean({"token": token({"sub": "x", "password": "hunter2hunter2"})})["token"]
    assert claims_of(clean)["sub"] == "x"
    assert claims_of(clean)["password"].startswith("redacted")


def test_a_placeholder_goes_through_a_replay_unchanged(redactor):
    jwt = token({"sub": "1234567890"})
    for clean in forms(redactor, jwt):
        assert list(forms(redactor, clean)) == [clean] * 4


def test_equal_tokens_stay_equal_and_others_differ(redactor):
    one, two = (token({"sub": "1"}, sign * 43) for sign in "ab")
    assert redactor.placeholder("jwt", one) == redactor.placeholder("jwt", one)
    assert redactor.placeholder("jwt", one) != redactor.placeholder("jwt", two)


@pytest.mark.parametrize("size", range(1, 60))
def test_a_signature_of_any_length_can_be_decoded(redactor, size):
    clean = redactor.placeholder("jwt", token({"sub": "1"}, "q" * size))
    signature = clean.split(".")[2]
    assert base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))


def test_a_cookie_stays_a_cookie(redactor):
    raw = "sid=8a7sd6f87as6df87; Path=/; HttpOnly; Expires=Wed, 09 Jun 2027 10:18:14 GMT"
    clean = redactor.clean_header("Set-Cookie", raw)[1]
    assert "8a7sd6f87as6df87" not in clean
    assert clean.endswith("; Path=/; HttpOnly; Expires=Wed, 09 Jun 2027 10:18:14 GMT")
    jar = SimpleCookie(clean)
    assert jar["sid"].value.startswith("redacted-header-")
    sent = redactor.clean_header("Cookie", f"sid={jar['sid'].value}; lang=x")[1]
    real = redactor.clean_header("Cookie", "sid=8a7sd6f87as6df87; lang=x")[1]
    assert sent == real


def test_a_cookie_without_a_name_is_hidden_whole(redactor):
    assert redactor.clean_header("Cookie", "8a7sd6f87as6df87")[1].startswith("redacted-header-")


KEYS = {
    "sk-proj-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8" * 2: "sk-proj-",
    "sk-ant-api03-" + "Zy9Xw8Vu7Ts6Rq5" * 3: "sk-ant-api03-",
    "ghp_" + "a1B2c3D4e5F6" * 3: "ghp_",
    "AIza" + "SyD4-x7Kq_92mNbVcXz1aQpZ7mNbVcXz1aQ": "AIza",
    "xoxb-123456789012-abcdefghijkl1234567890": "xoxb-",
    "glpat-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8": "glpat-",
}


@pytest.mark.parametrize(("key", "start"), KEYS.items(), ids=KEYS.values())
def test_a_key_keeps_its_beginning_and_its_length(redactor, key, start):
    found = {
        redactor.clean({"api_key": key})["api_key"],
        redactor.clean_text(f"use {key} today").split()[1],
        redactor.clean_header("x-api-key", key)[1],
        json.loads(redactor.clean_bytes(json.dumps({"api_key": key}).encode()))["api_key"],
    }
    (clean,) = found
    assert clean.startswith(start)
    assert "redacted" in clean
    assert len(clean) == max(len(key), len(clean.rstrip("x")))
    assert len(key) == len(clean) or len(key) < 40
    assert key[len(start) :] not in clean
    assert redactor.clean_text(f"use {clean} today") == f"use {clean} today"
    assert redactor.clean_header("x-api-key", clean)[1] == clean


def test_a_hexadecimal_secret_stays_a_number_of_its_length(redactor):
    secret = "4f8e2a6c0b1d3957" * 4
    clean = redactor.clean({"client_secret": secret})["client_secret"]
    assert len(clean) == 64
    assert int(clean, 16)
    assert clean != redactor.clean({"client_secret": secret[::-1]})["client_secret"]
    assert redactor.clean({"client_secret": clean})["client_secret"] == clean


@pytest.mark.parametrize(
    "text", ["password: {}\n", "DB_PASSWORD={}\n", "password = {}\n", "?api_key={}&b=1"]
)
def test_a_password_becomes_a_word_that_needs_no_quotes(redactor, text):
    clean = redactor.clean_text(text.format("correct-horse-9"))
    before, after = text.split("{}")
    word = clean.removeprefix(before).removesuffix(after)
    assert word.startswith("redacted-")
    assert word.replace("-", "").isalnum()
    assert redactor.clean_text(clean) == clean


def test_text_beside_a_placeholder_is_not_taken_for_a_part_of_it(redactor):
    word = redactor.clean({"password": "hunter2hunter2"})["password"]
    joined = f"hunter2hunter2{word}"
    assert "hunter2" not in redactor.clean({"password": joined})["password"]


def test_a_stream_that_carries_a_placeholder_keeps_it(redactor):
    clean = redactor.clean_text("key sk-proj-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8" * 2)
    stream = StreamCleaner(redactor)
    out = [*stream.feed([(clean.encode(), 0)]), *stream.feed([], last=True)]
    assert b"".join(piece for piece, _ in out).decode() == clean
