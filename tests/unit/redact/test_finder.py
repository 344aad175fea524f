"""Looking for beginnings finds what looking everywhere finds."""

import json
import random

import pytest

from playhead.redact import Redactor, finder, shapes

SECRETS = [
    "sk-ant-api03-Ab1Ab1Ab1Ab1Ab1xx",
    "sk-abcdefghij0123456789AB",
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2_" * 6,
    "glpat-" + "Ab1_" * 6,
    "AKIA" + "A1B2" * 4,
    "AIza" + "a1B2-" * 7,
    "ya29." + "a1" * 12,
    "xoxb-123456789012",
    "hooks.slack.com/services/T000/B000/XXXXXXXXXXXX",
    "sk_live_" + "a1" * 9,
    "rk_test_" + "a1" * 9,
    "whsec_" + "a1" * 9,
    "hf_" + "a1" * 18,
    "gsk_" + "a1" * 24,
    "xai-" + "a1" * 24,
    "npm_" + "a1" * 18,
    "pypi-" + "a1" * 30,
    "SG." + "a" * 22 + "." + "b" * 43,
    "AccountKey=" + "a1+/" * 12,
    "eyJabcdefgh.eyJabcdefgh.xyz",
    "Bearer abcdef0123456789",
    "bearer abcdef0123456789",
    "basic YWJjZGVmZ2hpams=",
    "https://user:pass@host/x",
    "postgres+psycopg://u:p4ss@h",
    "password=hunter22",
    "PASSWD: hunter22",
    '"api_key": "abcdef123"',
    "client_secret:abcdefg",
    "ACCESS_TOKEN=abcdefg",
    "id-token = abcdefg",
    "Private_Key=abcdefg",
    "secretkey=abcdefgh",
    "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
]
# None that a URL's scheme may hold: a key glued to an address is found here, and not there.
BETWEEN = [" ", "é", "→", "İ", "\n", '"', "\\", ":", "=", "://", "@", "_", " token ", " sk-, "]
PROSE = ["some words of prose ", "get_weather(city) ", "2026-11-15 ", "1234567 "]


@pytest.mark.parametrize("secret", SECRETS)
def test_every_shape_is_found(secret):
    found = []
    finder.replace(f"before {secret} after", lambda hit: found.append(hit.group()) or "")
    assert len(found) == 1


@pytest.mark.parametrize("secret", [*SECRETS, "some prose", "2026-11-15", "a_b-c"])
def test_a_text_is_suspected_alone_as_within_an_event(secret):
    encoded = json.dumps({"text": secret}).encode()
    assert finder.may_hold(secret) == Redactor(key=b"key").suspects(encoded)


@pytest.mark.parametrize("seed", range(40))
def test_beginnings_find_what_the_whole_pattern_finds(seed):
    redactor = Redactor(key=b"key")
    chance = random.Random(seed)
    for _ in range(250):
        words = [chance.choice([*SECRETS, *PROSE]) for _ in range(chance.randint(1, 9))]
        text = "".join(word + chance.choice(BETWEEN) for word in words)
        everywhere = shapes.combined().sub(redactor._replace, text)
        assert finder.replace(text, redactor._replace) == everywhere


def test_a_text_without_any_beginning_comes_back_as_it_is():
    text = "nothing to see here, not even once" * 100
    assert finder.replace(text, lambda hit: "") is text
    assert not finder.may_hold(text)
