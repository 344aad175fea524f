"""The quick look for secrets: JSON's own numbers are none, and numbers inside texts may be."""

import json

import pytest

import playhead
from playhead.host import native_core
from playhead.redact import Redactor

REDACTOR = Redactor(key=b"k" * 32)


def suspects(data) -> bool:
    return REDACTOR.suspects(json.dumps(data, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    "data",
    [
        {"call": 17, "how": "returned", "took_ns": 1_234_567_890, "value": "fine"},
        {"sizes": [12345, 67890], "at_ns": [123_456_789]},
        {"n": -1234567},
        {"outer": {"inner": 1234567}},
    ],
)
def test_numbers_of_the_event_itself_cost_no_second_look(data):
    assert not suspects(data)


@pytest.mark.parametrize(
    "text",
    [
        "auth_token:abc123def456,",
        '{"auth_token":12345678}',
        "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB",
    ],
)
def test_numbers_and_tokens_inside_a_text_are_looked_at_closely(text):
    assert suspects({"took_ns": 1234567, "value": text})


@pytest.mark.parametrize("is_native", [True, False])
def test_a_secret_on_a_line_of_its_own_is_redacted_in_an_event(is_native, tmp_path, monkeypatch):
    if not is_native:
        monkeypatch.setattr(native_core, "core", None)
    secrets = {
        "Xy78Q~1uMD7yOdy6cZr1BOjIMOnYFaKEnc4ijyA9": "see:\n{}",
        "0123456789abcdef0123456789abcdef-us14": "a\t{}",
        "1//0gAbCdEfGhIjKlMnOpQrStUv": "is\n{}",
        "V1ayxBFuKSRyhM.atlasv1.vgbH4v5KpP9FV7QrjteD4DXheFBg21auKEW0VaNnw": "terraform:\r\n{}",
        "patyLE4SmvCWOdqHB." + "80e1ac0ec9d6749f" * 4: "airtable\n{}",
        "gcyyjbEqkh2fi5XrDErm": "then\ncode={}",
        "hunter2netrc": "machine host\nlogin me\npassword {}\n",
        "hunter2curl": "try:\ncurl -u me:{} https://example.com",
        "hunter2mysql": "or\nmysql -u me -p{} db",
        "hunter2ssh": "or\nsshpass -p {} ssh host",
        "hunter2pg": "and\ndb.host:5432:name:user:{}\n",
        "hunter2form": json.dumps('x; form-data; name="password"\r\n\r\n{}\r\n--x'),
    }
    with playhead.record(store=tmp_path) as run:
        for secret, text in secrets.items():
            run.emit("x", {"text": text.replace("{}", secret)})
    tape = b"".join(one.read_bytes() for one in run.path.glob("tape-*.jsonl"))
    assert [secret for secret in secrets if secret.encode() in tape] == []


@pytest.mark.parametrize("is_native", [True, False])
def test_a_control_character_in_a_password_hides_it_in_no_event(is_native, tmp_path, monkeypatch):
    if not is_native:
        monkeypatch.setattr(native_core, "core", None)
    # At the beginning, where the rest alone would be too short, and in JSON inside JSON.
    texts = {
        f"t{code}w": f"login a password {chr(code)}t{code}w"
        for code in range(32)
        if not chr(code).isspace() or code > 27
    }
    texts["hun1"] = "mysql -u me -p\x08hun1 db"
    texts["hun2"] = "PASSWORD=\x1b\x1b\x1bhun2"
    texts["hun3"] = json.dumps({"file": "sshpass -p \x07hun3 ssh host"})
    with playhead.record(store=tmp_path) as run:
        for text in texts.values():
            run.emit("x", {"text": text})
    tape = b"".join(one.read_bytes() for one in run.path.glob("tape-*.jsonl"))
    assert [secret for secret in texts if secret.encode() in tape] == []
