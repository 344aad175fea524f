"""What is hidden stays equal where it was equal, and everything else stays as it was."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.encoding.values import freeze, is_plain
from playhead.redact import Redactor
from playhead.redact.forms import is_placeholder, secrets_in_place
from playhead.redact.streams import StreamCleaner

KEY = b"k" * 32
SECRET = "sk-ant-api03-" + "Ab1" * 12
OTHER = "ghp_" + "Cd2" * 12


@pytest.fixture
def redactor():
    return Redactor(key=KEY)


def test_equal_secrets_get_equal_placeholders_and_others_do_not(redactor):
    first, second, third = (redactor.clean_text(one) for one in (SECRET, f"x {SECRET}", OTHER))
    assert first.startswith("sk-ant-api03-redacted0anthropic0")
    assert second == f"x {first}"
    assert third != first


# A session token of AWS in an address: the escape in its beginning leaves no long run of letters there.
LONG_TOKEN = "IQoJ%2Fb3JpZ2luX2Vj%2BEAaCXVz" + "Ab1Cd2%2F" * 180


@pytest.mark.parametrize(
    "text",
    [
        f"https://x.test/a?X-Amz-Security-Token={LONG_TOKEN}&X=1",
        f'{{"refresh_token": "{LONG_TOKEN}"}}',
        f"AZURE_CLIENT_SECRET={LONG_TOKEN}",
    ],
)
def test_a_token_of_two_thousand_characters_is_replaced_whole(redactor, text):
    for form in (text, json.dumps(text)):
        assert LONG_TOKEN[-40:] not in redactor.clean_text(form)
    cleaner, clean = StreamCleaner(redactor), b""
    for at in range(0, len(text), 100):
        clean += b"".join(one for one, _ in cleaner.feed([(text[at : at + 100].encode(), at)]))
    clean += b"".join(one for one, _ in cleaner.feed([], last=True))
    assert LONG_TOKEN[-40:].encode() not in clean


@pytest.mark.parametrize("blank", ["\t", "\t\t", " \t ", "\n", "\r\n"])
def test_a_blank_before_the_sign_hides_no_password(redactor, blank):
    text = f"user = me; password{blank}= hunter2hunter"
    for form in (text, json.dumps({"content": text}), json.dumps(json.dumps([text]))):
        assert redactor.suspects(form.encode())
        assert "hunter2hunter" not in redactor.clean_text(form)


def test_a_letter_beyond_ascii_before_the_name_hides_no_token(redactor):
    assert "hunter2" not in redactor.clean_text("die größeTOKEN=hunter2hunter2")


def test_a_path_with_the_name_after_a_backslash_hides_no_token(redactor):
    assert "hunter2" not in redactor.clean_text("C:\\x&\\TOKEN=hunter2hunter2")


def test_a_signature_in_capitals_is_replaced_without_one_in_small_letters(redactor):
    signature = "0a1b2c3d" * 8
    assert signature not in redactor.clean_text(f"SIGNATURE={signature}")


def test_placeholders_depend_on_the_key_of_the_store(redactor):
    assert redactor.clean_text(SECRET) != Redactor(key=b"j" * 32).clean_text(SECRET)


def test_cleaning_twice_changes_nothing_more(redactor):
    text = f'password="{SECRET}" https://bob:{OTHER}@x.test Authorization: Bearer {OTHER}'
    once = redactor.clean_text(text)
    assert SECRET not in once
    assert OTHER not in once
    assert redactor.clean_text(once) == once


def test_only_the_password_of_an_address_is_hidden(redactor):
    clean = redactor.clean_text("https://user:s@host.test/its/path")
    assert clean.startswith("https://user:redacted-url-")
    assert clean.endswith("@host.test/its/path")


def test_fields_are_hidden_by_name_whatever_they_hold(redactor):
    clean = redactor.clean(
        {
            "password": "a",
            "api_key": {"primary": "b", "ids": [1, "c"]},
            "secret": 42,
            "Authorization": "Bearer abc",
            "user": "bob",
            "max_tokens": 5,
            "access_token": None,
        }
    )
    assert "redacted-field-" in clean["password"]
    assert set(clean["api_key"]) == {"primary", "ids"}
    assert all(
        is_placeholder(str(one)) for one in (clean["api_key"]["primary"], *clean["api_key"]["ids"])
    )
    assert is_placeholder(str(clean["secret"]))
    assert clean["Authorization"].startswith("Bearer redacted")
    assert (clean["user"], clean["max_tokens"], clean["access_token"]) == ("bob", 5, None)


@pytest.mark.parametrize("number", [42, -7, 8812345671, 123456.5, 99887766554433221100])
def test_a_secret_number_stays_a_number_in_values_and_in_json(redactor, number):
    clean = redactor.clean({"password": number, "total": number})
    assert type(clean["password"]) is int
    assert clean["password"] != number
    assert clean["password"] < 2**53  # JavaScript has no larger integers
    assert clean["total"] == number
    assert redactor.clean(clean) == clean  # a placeholder that comes back in a replay stays
    text = json.dumps({"password": 8812345671, "user": "bob"})
    once = redactor.clean_text(text)
    assert "8812345671" not in once
    assert type(json.loads(once)["password"]) is int
    assert redactor.clean_text(once) == once
    assert redactor.clean({"password": 8812345671})["password"] == json.loads(once)["password"]


def test_names_of_the_users_own_count_in_any_case_and_are_never_forgotten():
    redactor = Redactor(key=KEY, names=["Tenant"])
    for number in range(20_000):
        assert redactor.safe_keys.learn([f"key{number}"])
    assert not any(redactor.safe_keys.learn([name]) for name in ("tenant", "TENANT", "Tenant"))
    assert redactor.clean({"TENANT": "acme", "other": "acme"})["other"] == "acme"
    assert "acme" not in redactor.clean({"TENANT": "acme"})["TENANT"]


def test_secrets_in_keys_are_hidden(redactor):
    assert SECRET not in json.dumps(redactor.clean({f"for {SECRET}": 1, "list": [{SECRET: 2}]}))


def test_pairs_and_maps_are_hidden_by_name(redactor):
    frozen = freeze({"headers": [("X-Api-Key", "abc")], "map": {1: 2, "password": "abc"}})
    assert "abc" not in json.dumps(redactor.clean(frozen))


@pytest.mark.parametrize("made", [bytes, bytearray])
def test_secrets_in_bytes_are_hidden_and_the_bytes_can_be_read_back(redactor, made):
    frozen = redactor.clean(freeze(made(b"\xff\x00" + SECRET.encode() + b"\x00")))
    raw = base64.b64decode(next(iter(frozen.values())))
    assert SECRET.encode() not in raw
    assert raw.startswith(b"\xff\x00sk-ant-api03-redacted0anthropic0")


def test_secrets_in_text_that_is_no_unicode_are_hidden(redactor):
    frozen = redactor.clean(freeze(f"\udcff{SECRET}"))
    assert SECRET.encode() not in base64.b64decode(frozen["$text"])


def test_base64_bodies_are_looked_into_and_kept_where_there_is_nothing(redactor):
    body = base64.b64encode(b"\xff\x00 " + SECRET.encode()).decode()
    assert not redactor.safe_keys.learn(["b64"])
    assert SECRET.encode() not in base64.b64decode(redactor.clean({"b64": body})["b64"])
    harmless = base64.b64encode(bytes(range(256))).decode()
    assert redactor.clean({"b64": harmless}) == {"b64": harmless}
    assert redactor.clean({"b64": "not base64 at all!"}) == {"b64": "not base64 at all!"}


def test_a_field_with_a_codec_is_hidden_whole(redactor):
    clean = redactor.clean(freeze({"password": b"hunter2", "token": (1, "abcdefghijkl")}))
    assert all(isinstance(one, str) and "redacted" in one for one in clean.values())


def test_values_of_variables_are_hidden_wherever_they_stand():
    redactor = Redactor(
        key=KEY,
        variables={
            "MY_TOKEN": "correct-horse",
            "QUOTED_SECRET": 'quo"ted\\value\n',
            "UMLAUT_PASSWORD": "schlüssel-größe",
            "SHORT_KEY": "prod",
            "HOME": "/home/bob-the-builder",
        },
    )
    for text in ("a correct-horse b", 'x quo"ted\\value\n y', "schlüssel-größe"):
        assert redactor.suspects(json.dumps(text, ensure_ascii=False).encode())
        assert "redacted" in redactor.clean_text(text)
        nested = json.dumps({"text": text})
        assert "redacted" in redactor.clean_text(nested)
    assert redactor.clean_text("prod in /home/bob-the-builder") == "prod in /home/bob-the-builder"


def test_a_value_that_contains_another_is_hidden_whole():
    redactor = Redactor(key=KEY, variables={"A_KEY": "abcdefgh", "B_KEY": "abcdefgh-ijklmnop"})
    assert redactor.clean_text("abcdefgh-ijklmnop").count("redacted") == 1


def test_variables_that_come_later_are_learnt_and_the_earlier_ones_kept():
    redactor = Redactor(key=KEY, variables={"A_KEY": "first-value"})
    redactor.renew({"B_KEY": "second-value-that-is-long"})
    assert redactor.suspects(b"second-value-that-is-long")
    clean = redactor.clean_text("first-value second-value-that-is-long")
    assert clean.count("redacted-variable-") == 2


def test_patterns_of_the_users_own_see_texts_as_they_are():
    redactor = Redactor(key=KEY, patterns=[r"^TENANT-\d+$", r'id="\d+"'])
    assert redactor.suspects(b'"TENANT-12"')
    clean = redactor.clean({"a": "TENANT-12", "b": "x TENANT-12", "c": 'the id="77" one'})
    assert clean["a"] == redactor.placeholder("own", "TENANT-12")
    assert clean["b"] == "x TENANT-12"
    assert clean["c"] == f"the {redactor.placeholder('own', 'id=' + json.dumps('77'))} one"
    assert redactor.clean_bytes(b'\xff id="77"').startswith(b"\xff redacted-own-")


def test_headers_are_hidden_by_name_and_the_scheme_stays(redactor):
    clean = redactor.clean_headers(
        [("Authorization", "Bearer abc"), ("X-Api-Key", "k"), ("Cookie", "a=b"), ("Accept", "*/*")]
    )
    assert clean[0][1].startswith("Bearer redacted-header-")
    assert clean[1][1].startswith("redacted-header-")
    assert clean[2][1].startswith("a=redacted-header-")
    assert clean[3] == ["Accept", "*/*"]


def test_values_of_options_on_a_command_line_are_hidden(redactor):
    words = ["tool", "--password", "hunter2", "--token=abcdef", "-v", "--api-key", "--json", SECRET]
    clean = redactor.clean_argv(words)
    assert [clean[at] for at in (0, 1, 4, 5, 6)] == [
        "tool",
        "--password",
        "-v",
        "--api-key",
        "--json",
    ]
    assert clean[3].startswith("--token=redacted")
    assert not {"hunter2", SECRET} & set(clean)
    assert redactor.clean({"argv": words})["argv"] == clean
    assert "hunter2" not in redactor.clean({"shell": "mysql --password hunter2"})["shell"]
    assert not any(redactor.safe_keys.learn([name]) for name in ("argv", "command", "shell"))


names = st.sampled_from(["a", "password", "b64", "argv", "command", "token", "user"])
keys = st.text(max_size=8) | names
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@given(plain)
def test_an_event_that_is_plain_and_not_suspicious_is_as_clean_as_can_be(value):
    redactor = Redactor(key=KEY)
    if is_plain(value, redactor.safe_keys):
        encoded = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        if not redactor.suspects(encoded):
            assert redactor.clean(value) == value


words = st.sampled_from(
    ["git", "-v", "--json", "--password", "--token=abcdef", "--api-key", "-p", "hunter2", "x\\y"]
) | st.text(max_size=8)


@given(st.lists(words, min_size=1, max_size=4), st.booleans())
def test_a_command_line_that_is_written_unchanged_holds_no_secret(argv, is_shell):
    redactor = Redactor(key=KEY)
    line = " ".join(argv)
    request = {"shell": line} if is_shell else {"argv": argv}
    data = {"boundary": "process", "request": {**request, "stdin": "pipe"}, "command": line}
    encoded = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    if is_plain(data, redactor.safe_keys.of(data)) and not redactor.suspects(encoded):
        assert redactor.clean(data) == data


def test_an_ordinary_command_line_is_written_unchanged_and_one_with_a_password_is_not(redactor):
    def is_unchanged(*argv, **more):
        request = {"argv": list(argv), "stdin": "inherited", **more}
        data = {"boundary": "process", "request": request, "command": " ".join(argv)}
        return is_plain(data, redactor.safe_keys.of(data))

    assert is_unchanged("git", "log", "--oneline", "-3")
    assert not is_unchanged("mysql", "--password", "hunter2")
    assert not is_unchanged("tool", "-token=hunter2")
    assert not is_unchanged("git", "status", env={"command": "mysql --password hunter2"})


@given(plain)
def test_what_holds_no_secret_comes_back_equal(value):
    redactor = Redactor(key=KEY)
    frozen = freeze(value)
    clean = redactor.clean(frozen)
    if not secrets_in_place(json.dumps(clean)):
        assert clean == frozen


@given(plain, st.sampled_from([SECRET, OTHER]))
def test_a_secret_planted_anywhere_in_a_value_is_gone(value, secret):
    redactor = Redactor(key=KEY)
    for planted in ([value, secret], {"a": value, f"k {secret}": 1}, {"x": [f"{value} {secret}"]}):
        frozen = freeze(planted)
        encoded = json.dumps(frozen, ensure_ascii=False).encode()
        assert redactor.suspects(encoded)
        assert secret not in json.dumps(redactor.clean(frozen))
