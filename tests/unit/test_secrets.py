"""No secret that is planted anywhere in a run survives anywhere in the run's folder."""

import base64
import dataclasses
import itertools
import os
import random
import string
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import playhead
from playhead.recording import deck
from playhead.recording.adapter import Adapter, FunctionAdapter
from playhead.recording.calls import Call
from playhead.tape.manifest import read_manifest
from playhead.tape.reader import Tape

ALNUM = string.ascii_letters + string.digits
numbers = itertools.count()


def made(start, length, seed):
    return start + "".join(random.Random(f"{start}{seed}").choices(ALNUM, k=length))


def secrets(seed):
    """One of each kind, different in every example."""
    return [
        made("sk-ant-api03-", 90, seed),
        made("sk-proj-", 120, seed),
        made("ghp_", 36, seed),
        made("xoxb-", 40, seed),
        made("hf_", 34, seed),
        f"AKIA{made('', 60, seed).upper()[:16]}",
        f"eyJ{made('', 30, seed)}.eyJ{made('', 30, seed)}.{made('', 43, seed)}",
    ]


def assert_gone(folder, *planted):
    """Neither as it is, nor as base64 or JSON spells it."""
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        raw = path.read_bytes()
        hidden = [raw, *_decoded(raw)]
        for secret in planted:
            needle = secret.encode()
            for text in hidden:
                assert needle not in text, (path.name, secret)
                # Nor half of it: what is cut in two is no less a secret.
                assert len(needle) < 40 or needle[12:-8] not in text, (path.name, secret)


def _decoded(raw):
    """Everything in there that is base64."""
    for word in raw.replace(b'"', b" ").split():
        if len(word) > 40 and not len(word) % 4:
            try:
                yield base64.b64decode(word, validate=True)
            except ValueError:
                continue


class Held(Adapter):
    """A stream whose pieces the test reports itself."""

    def live(self, crossing):
        return crossing

    def observe(self, crossing, result):
        return result


@dataclasses.dataclass
class Config:
    token: str
    nested: dict


class Odd:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return f"<Odd {self.text}>"


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**9), st.data())
def test_a_secret_planted_anywhere_is_gone(tmp_path_factory, seed, data):
    store = tmp_path_factory.mktemp("store")
    secret = data.draw(st.sampled_from(secrets(seed)))
    name = f"run {secret}"

    def work():
        with playhead.record(store=store, name=name, tags={"k": secret, secret: "v"}) as run:
            run.emit("text", f"before {secret} after")
            run.emit("nested", {"a": [{"b": ({"c": secret},)}], f"key {secret}": 1})
            run.emit("keys", {secret: {secret: [secret]}})
            run.emit(
                "bytes", [secret.encode(), bytearray(b"\xff" + secret.encode()), f"\udcff{secret}"]
            )
            run.emit("objects", [Config(secret, {"x": secret}), Odd(secret), {1: secret}, {secret}])
            run.emit(
                f"kind {secret}", who=f"who {secret}", why=f"why {secret}", cause=f"c:{secret}"
            )
            run.emit("large", {"a": "x " * 40_000 + secret + " y" * 40_000, "b": [secret] * 1_000})
            run.emit("bytes", b"\xfe" * 70_000 + secret.encode())
            run.emit("json", f'{{"arguments": "{{\\"key\\": \\"{secret}\\"}}"}}')
            run.emit("lines", f"one\n{secret}\ntwo\t{secret}\x1b[31m{secret}")
            with (
                playhead.lane(f"lane {secret}"),
                run.turn(f"turn {secret}", purpose=secret, input=[secret]) as turn,
            ):
                turn.seam(f"seam {secret}", {"x": secret})
                turn.retrieval([{"id": secret, "text": secret, "why": secret}])
                crossing = deck.declared().perform(
                    Call(
                        boundary="http",
                        name=f"GET {secret}",
                        request={
                            "url": f"https://x.test/?key={secret}",
                            "body": {"b64": _b64(secret)},
                        },
                        facts={"headers": [["authorization", f"Bearer {secret}"]]},
                    ),
                    Held(),
                )
                crossing.head({"status": 200, "headers": [["set-cookie", secret]]})
                cut = data.draw(st.integers(0, len(secret)))
                for piece in (f"body {secret[:cut]}", f"{secret[cut:]} end"):
                    crossing.chunk(piece.encode())
                crossing.returned({"value": secret})
                raise ValueError(secret, {"x": secret}) from KeyError(secret)

    with pytest.raises(ValueError, match=r"sk|ghp|xox|hf|AKIA|eyJ"):
        work()
    assert_gone(store, secret)
    (path,) = (store / "runs").iterdir()
    assert list(Tape(path).damage) == []
    kinds = [event.kind for event in Tape(path).events()]
    assert kinds[-2:] == ["run.end", "segment.end"]


def _b64(text):
    return base64.b64encode(b"\xff" + text.encode()).decode()


def test_secrets_of_the_environment_are_gone_also_those_that_come_later(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_SERVICE_TOKEN", "no-shape-at-all-first")
    with playhead.record(store=tmp_path) as run:
        run.emit("x", {"text": "it is no-shape-at-all-first"})
        monkeypatch.setenv("OTHER_API_KEY", "no-shape-at-all-second")
        call = Call(boundary="tool", name="t", request="no-shape-at-all-second")
        deck.declared().perform(call, FunctionAdapter(lambda: None))
        for _ in range(70):
            run.emit("x", 1)
        run.emit("x", {"text": "it is no-shape-at-all-second"})
    assert_gone(tmp_path, "no-shape-at-all-first", "no-shape-at-all-second")


def by_item(name, value):
    os.environ[name] = value


def by_putenv(name, value):
    os.putenv(name, value)


def by_bytes(name, value):
    os.environb[name.encode()] = value.encode()


def by_deleting_first(name, value):
    del os.environ[name]
    os.environ[name] = value


def by_exchange(name, value):
    """The number of variables stays the same."""
    del os.environ["SOMETHING_ELSE"]
    os.environ[f"{name}_TOKEN"] = value


def by_update(name, value):
    os.environ.update({name: value})


def by_dotenv(name, value):
    """As `load_dotenv(override=True)` does it."""
    for key, one in {name: value, "PLAIN": "1"}.items():
        os.environ[key] = one


CHANGES = [by_item, by_putenv, by_bytes, by_deleting_first, by_exchange, by_update, by_dotenv]


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
def test_a_variable_that_gets_another_value_is_redacted_from_that_moment_on(
    tmp_path, monkeypatch, change
):
    old, new = "no-shape-at-all-first", "no-shape-at-all-second"
    monkeypatch.setenv("MY_SERVICE_TOKEN", old)
    monkeypatch.setenv("SOMETHING_ELSE", "x")
    monkeypatch.setenv("PLAIN", "x")
    monkeypatch.setenv("MY_SERVICE_TOKEN_TOKEN", "")  # so that it is gone afterwards
    del os.environ["MY_SERVICE_TOKEN_TOKEN"]

    @playhead.tool(name=f"tool {new}")
    def tool(text):
        return text

    def say_everywhere(run):
        """Twice each: in a cache after the first time."""
        for _ in range(3):
            run.emit(f"kind {new}", {"text": new}, who=f"who {new}", why=f"why {new}")
            with playhead.lane(f"lane {new}"):
                tool(new)
            request = Call(
                boundary="http",
                name=f"GET {new}",
                request={"url": f"https://x.test/?q={new}", "body": {"text": new}},
                facts={"headers": [["x-thing", new], ["user-agent", new]]},
            )
            crossing = deck.declared().perform(request, Held())
            crossing.head({"status": 200, "headers": [["x-echo", new]]})
            crossing.chunk(new.encode())
            crossing.returned()

    with playhead.record(store=tmp_path) as run:
        say_everywhere(run)
        tape = next(run.path.glob("tape-*"))
        until_now = tape.stat().st_size
        assert new.encode() in tape.read_bytes()
        change("MY_SERVICE_TOKEN", new)
        say_everywhere(run)
        run.emit("x", old)
    rest = tape.read_bytes()[until_now:]
    assert rest.count(b"redacted") > 20
    assert (rest.count(new.encode()), rest.count(old.encode())) == (0, 0)
    assert os.putenv.__module__ == "posix"


def test_a_forked_child_redacts_what_it_puts_into_its_environment(tmp_path, monkeypatch):
    secret = "no-shape-at-all-third"
    monkeypatch.setenv("MY_SERVICE_TOKEN", "no-shape-at-all-first")
    with playhead.record(store=tmp_path) as run:
        child = os.fork()
        if child == 0:
            os.environ["MY_SERVICE_TOKEN"] = secret
            run.emit("x", secret)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert_gone(tmp_path, secret)
    assert len(list(run.path.glob("tape-*"))) == 2


def test_a_secret_that_is_set_behind_our_back_is_found_soon(tmp_path, monkeypatch):
    """`posix.putenv`, `os.reload_environ`: the dict behind os.environ changes, and nothing is called."""
    monkeypatch.setenv("MY_SERVICE_TOKEN", "no-shape-at-all-first")
    with playhead.record(store=tmp_path) as run:
        monkeypatch.setitem(os.environ._data, b"MY_SERVICE_TOKEN", b"no-shape-at-all-fourth")
        for _ in range(64):
            run.emit("x")
        run.emit("x", "no-shape-at-all-fourth")
    assert_gone(tmp_path, "no-shape-at-all-fourth")


def test_secrets_on_the_command_line_are_gone(tmp_path):
    shape, plain = made("sk-ant-api03-", 60, 1), "hunter2hunter2hunter2"
    program = """
        import sys, playhead
        with playhead.record(store=sys.argv[1], run_id="r") as run:
            run.emit("x", {"argv": sys.argv, "command": " ".join(sys.argv)})
    """
    argv = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    argv += ["--api-key", plain, f"--token={plain}", shape, f"--password={plain}"]
    subprocess.run(argv, check=True)
    assert_gone(tmp_path, shape, plain)
    assert "--api-key" in read_manifest(tmp_path / "runs" / "r").command


def test_fields_and_headers_are_gone_by_name_alone(tmp_path):
    value = "nothing-special-about-it"
    with playhead.record(store=tmp_path) as run:
        run.emit(
            "x", {"password": value, "deep": [{"Authorization": value, "client_secret": [value]}]}
        )
        run.emit("x", {"env": {"DB_PASS": value, "STRIPE_KEY": value}})
        run.emit("x", [("X-Api-Key", value), ("cookie", value)])
        run.emit("x", Config(value, {"api_key": value}))
    assert_gone(tmp_path, value)


def test_own_patterns_and_names_are_gone(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "playhead.toml").write_text(
        '[redact]\npatterns = ["ACME-[0-9]{6}"]\nnames = ["tenant"]\n'
    )
    monkeypatch.chdir(folder)
    with playhead.record(store=tmp_path / "store") as run:
        run.emit("x", ["the customer ACME-123456", {"Tenant": "globex-corporation"}])
    assert_gone(tmp_path / "store", "ACME-123456", "globex-corporation")


def test_equal_secrets_stay_equal_in_all_tapes_of_a_store(tmp_path):
    found = set()
    for _ in range(2):
        with playhead.record(store=tmp_path) as run:
            run.emit("x", {"password": "hunter2"})
            run.emit("x", "password=hunter2!")
        found.add(next(e for e in Tape(run.path).events() if e.kind == "x").data["password"])
    assert len(found) == 1
    key = tmp_path / "redact.key"
    assert (len(key.read_bytes()), key.stat().st_mode & 0o777) == (32, 0o600)


def test_a_key_that_was_cut_short_is_made_anew(tmp_path):
    with playhead.record(store=tmp_path):
        pass
    (tmp_path / "redact.key").write_bytes(b"short")
    with playhead.record(store=tmp_path) as run:
        run.emit("x")
    assert len((tmp_path / "redact.key").read_bytes()) == 32


def test_a_forked_child_hides_secrets_too(tmp_path):
    secret = made("ghp_", 36, 5)
    with playhead.record(store=tmp_path) as run:
        child = os.fork()
        if child == 0:
            run.emit("x", secret)
            os._exit(0)
        os.waitpid(child, 0)
    assert_gone(tmp_path, secret)
    assert len(list(run.path.glob("tape-*"))) == 2


PROSE = [
    "The quick brown fox jumps over the lazy dog, and the customer's refund was approved.",
    {
        "id": "msg_01Xk7Qw9ZrT5",
        "at": "2026-11-15T07:11:05.123Z",
        "uuid": "3f2b8c1e-9a4d-4e2f-8b7a-1c2d3e4f5a6b",
    },
    {"max_tokens": 4096, "usage": {"input_tokens": 12, "output_tokens": 7}, "stop_token": "</s>"},
    {"path": "/usr/lib/python3.11/site-packages/some_package/module_name.py", "key": "value"},
    "def login(user, password=None):\n    token = make_token(user)\n    return token\n",
    ["9fceb02d0ae598e95dc970b74767f19372d61af8", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4"],
]


@pytest.mark.parametrize("value", PROSE, ids=range(len(PROSE)))
def test_ordinary_events_are_kept_as_they_are(tmp_path, value):
    with playhead.record(store=tmp_path) as run:
        run.emit("x", value)
    assert next(e for e in Tape(run.path).events() if e.kind == "x").data == value
