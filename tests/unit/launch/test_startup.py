"""What a process of a run loads at its start that it would not load without us."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import playhead
from playhead.launch.guest import rules, variables
from playhead.launch.guest.variables import Ticket
from playhead.recording.recorder import Recorder
from playhead.redact import Redactor
from playhead.tape.store import new_run, open_store, redaction_key

# Small, and most of them C. What a list like this is for: `typing`, `re`, `json`, `pathlib`, `functools`,
# `collections` and `threading` would cost each process more than all that is ours.
NEEDED = {
    *("__future__", "_bisect", "_collections", "_contextvars", "_functools", "_json", "_operator"),
    *("_weakrefset", "atexit", "binascii", "contextvars", "errno", "fcntl", "gc", "itertools"),
    *("resource", "select", "types", "zlib"),
}
# Modules that avoid `typing` although not every process loads them, and why.
STREAMS = ("feeding", "sockets", "talk", "tls", "loop_tls", "lookups")
LOADED_LATER = {
    "playhead.hooks.ambient.random_draws": "loaded with `random`, which loads no typing",
    "playhead.hooks.ambient.warning_filters": "loaded with `warnings`, which loads no typing",
    "playhead.hooks.input.asyncio_stdin": "loaded with `asyncio`",
    "playhead.hooks.input.passwords": "loaded with `getpass`, which loads no typing",
    "playhead.hooks.order.event_loops": "loaded with `asyncio`",
    "playhead.hooks.order.log_handlers": "loaded with `logging`",
    "playhead.hooks.order.noted_locks": "loaded with `threading`, which loads no typing",
    "playhead.hooks.order.queues": "loaded with `queue`, which loads no typing",
    "playhead.hooks.order.task_sets": "loaded with `asyncio`",
    "playhead.hooks.order.thread_waits": "loaded with `threading`, which loads no typing",
    "playhead.hooks.order.worker_results": "loaded with `concurrent.futures`",
    **dict.fromkeys(
        (f"playhead.hooks.stream.{name}" for name in STREAMS), "loaded with `socket` or `asyncio`"
    ),
    "playhead.hooks.order.pipe_waits": "loaded with `multiprocessing`",
    "playhead.hooks.order.process_queues": "loaded with `multiprocessing`",
    "playhead.hooks.state.sqlite_order": "loaded with `sqlite3`",
    "playhead.encoding.levels": "loaded for runs below the level `full`",
    "playhead.encoding.form_fields": "loaded where a form is described or compared",
    "playhead.hooks.state.written_files": "loaded where the files of a workspace are recorded",
    "playhead.host.own_listeners": "loaded with `socket`",
    "playhead.launch.shims.fallback": "stands in for a program that is gone; must start at once",
    "playhead.launch.spawn_command": "the launcher's own start",
}
PROBE = "import sys; sys.stdout.write('\\n'.join(sys.modules))"


@pytest.fixture
def ticket(tmp_path):
    run = new_run(open_store(tmp_path / "home"), "20261115-071105-k3f9", 0)[1]
    redactor = Redactor(key=redaction_key(run.parent.parent))
    recorder = Recorder(run=run, run_id=run.name, who="me", redactor=redactor)
    rules.post(recorder)
    yield Ticket(run=str(run), parent=recorder.root, seed="7")
    rules.withdraw(run)
    recorder.close()


def modules_loaded(python: str, env: dict[str, str]) -> set[str]:
    return set(subprocess.check_output([python, "-c", PROBE], env=env, text=True).split())


@pytest.mark.parametrize("secret", [{}, {"OPENAI_API_KEY": "sk-proj-Abcdefgh12345678901234"}])
def test_a_process_that_does_nothing_loads_next_to_nothing(guest_python, secret, ticket):
    plain = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **secret}
    bare = modules_loaded(guest_python, plain)
    recorded = modules_loaded(guest_python, variables.write(plain, ticket))
    ours = {one for one in recorded if one.partition(".")[0] == "playhead"}
    assert "playhead.recording.recorder" in ours
    assert recorded - bare - ours - NEEDED == set()


def test_only_modules_that_every_process_loads_do_without_typing(ticket):
    """See `playhead.host.lean`: everywhere else the usual imports are the better ones."""
    package = Path(playhead.__file__).parent
    plain = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    loaded = modules_loaded(sys.executable, variables.write(plain, ticket))
    without = {
        ".".join(("playhead", *path.relative_to(package).with_suffix("").parts)).removesuffix(
            ".__init__"
        )
        for path in package.rglob("*.py")
        if "\nTYPE_CHECKING = False\n" in path.read_text()
    }
    assert without - loaded - LOADED_LATER.keys() == set()


def test_a_secret_of_its_own_is_hidden_all_the_same(ticket):
    secret = "hunter2-hunter2-hunter2"
    env = variables.write({"PATH": os.environ["PATH"], "DB_PASSWORD": secret}, ticket)
    subprocess.run([sys.executable, "-c", "pass", secret], env=env, check=True)
    (tape,) = {*Path(ticket.run).glob("tape-*")} - {Path(ticket.run) / f"tape-{os.getpid()}.jsonl"}
    first = tape.read_bytes().splitlines()[0]
    assert "redacted" in json.loads(first)["data"]["argv"][1]
    assert secret.encode() not in first


# What the launcher loads for a Python command without LLM calls, beside which nothing else is needed: each of
# these took 3 to 40 ms of every `record` and `replay` before it was put off.
UNNEEDED = (
    *("asyncio", "msgspec", "playhead.llm", "playhead.story", "subprocess", "tomllib", "zstandard"),
    *("playhead.launch.proxy.proxy_server", "playhead.launch.shims.caller"),
    *("playhead.launch.shims.programs", "playhead.launch.sidecar.shim_service"),
    *("playhead.tape.sealed.seal_index", "playhead.tape.sealed.zstd"),
    *("playhead.replay.modes.mixed", "playhead.replay.modes.fork", "playhead.replay.modes.faults"),
)
UNNEEDED_TO_RECORD = (
    *UNNEEDED,
    *("playhead.library", "playhead.replay.begin", "playhead.replay.fence.landlock"),
    *(
        "playhead.replay.fence.namespaces",
        "playhead.replay.matching",
        "playhead.views.text.console",
    ),
    *("playhead.tape.reading.seek", "rich"),
)
UNNEEDED_TO_REPLAY = (*UNNEEDED, "playhead.views.text.comparison_text", "rich.table")
# In the program itself, beside the replay's own modules.
UNNEEDED_IN_A_REPLAY = (
    *UNNEEDED,
    *("email", "hashlib", "playhead.cli", "playhead.library", "playhead.replay.matching.nearest"),
    *(
        "playhead.replay.report.divergence",
        "playhead.views",
        "playhead.workspace.history",
        "sqlite3",
    ),
)


@pytest.fixture
def launch(tmp_path):
    """Run the command line; its modules, and what the command printed."""

    def run(*words: str) -> tuple[set[str], str]:
        argv = [sys.executable, "-X", "importtime", "-m", "playhead", *words]
        own = {"PLAYHEAD_HOME": str(tmp_path / "home"), "LANG": "C.UTF-8"}
        env = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ} | own
        ended = subprocess.run(
            argv, env=env, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        lines = [line for line in ended.stderr.splitlines() if line.startswith("import time:")]
        return {line.rpartition("|")[2].strip() for line in lines}, ended.stdout

    return run


def among(loaded: set[str], names: tuple[str, ...]) -> list[str]:
    below = tuple(f"{name}." for name in names)
    return sorted(one for one in loaded if one in names or one.startswith(below))


def test_the_launcher_loads_only_what_a_recorded_command_needs(launch):
    words = ("record", "--quiet", "--", sys.executable, "-c", "print(1)")
    launch(*words)  # compiles an extension, once for a machine
    loaded, printed = launch(*words)
    assert printed == "1\n"
    assert "playhead.launch.closing" in loaded
    assert among(loaded, UNNEEDED_TO_RECORD) == []


def test_a_replay_loads_only_what_it_needs(launch):
    launch("record", "--quiet", "--run-id", "r1", "--", sys.executable, "-c", PROBE)
    loaded, printed = launch("replay", "--quiet", "r1")
    assert "playhead.replay.report.verdict" in loaded
    assert among(loaded, UNNEEDED_TO_REPLAY) == []
    inside = set(printed.split())
    assert "playhead.replay.modes.taped_mode" in inside
    assert among(inside, UNNEEDED_IN_A_REPLAY) == []
