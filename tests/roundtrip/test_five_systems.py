"""What users of the five systems do at the command line, each from recording to verdict."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import warm_start

from playhead.exporters.promoted_test import fixtures_of
from playhead.story import tell
from playhead.story.story_json import item_at
from playhead.tape.reader import Tape
from playhead.views.tui.run_lines import item_lines

PLAYHEAD = [sys.executable, "-m", "playhead"]


class Desk:
    """A folder and a store of its own, and programs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PLAYHEAD_")}
        self.env = {**kept, "PLAYHEAD_HOME": str(self.home), "NO_COLOR": "1", "COLUMNS": "100"}

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def run(self, *words: object, **env: str) -> subprocess.CompletedProcess[str]:
        return warm_start.run(
            [str(word) for word in words],
            cwd=self.folder,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )

    def python(self, *words: object, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, *words, **env)

    def play(self, *words: object, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run(*PLAYHEAD, *words, **env)

    def runs(self) -> list[str]:
        return sorted(path.name for path in (self.home / "runs").iterdir())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


NIGHTLY = """
import os
import subprocess
import playhead
print(os.environ["MY_API_KEY"][:3], os.environ["MY_MODEL"])
with playhead.record(run_id="nightly", force=True, intercept=True{more}):
    print(subprocess.run(["date", "+%N"], capture_output=True, text=True).stdout, end="")
"""


@pytest.mark.parametrize("more", ["", ", store='home'"])
def test_a_replay_of_a_program_that_forces_its_run_leaves_the_recording_alone(desk, more):
    app = desk.write("app.py", NIGHTLY.format(more=more))
    first = desk.python(app, MY_API_KEY="sk-1234567890abcdef", MY_MODEL="large")
    assert first.returncode == 0, first.stderr
    assert desk.runs() == ["nightly"]
    before = {path: path.read_bytes() for path in (desk.home / "runs/nightly").iterdir()}
    for _ in range(2):
        again = desk.play("replay", "nightly")
        assert "identical" in again.stdout + again.stderr, again.stdout + again.stderr
        assert again.returncode == 0
    assert {path: path.read_bytes() for path in (desk.home / "runs/nightly").iterdir()} == before
    assert not [name for name in desk.runs() if ".old" in name]
    assert list(desk.folder.glob("**/nightly.old*")) == []


SILENT = """
import playhead, subprocess, sys

class Job:
    subs = []
    def emit(self, kind, **data):
        for one in self.subs:
            one(kind, **data)

job = Job()
job.subs.append(playhead.on_event())
job.emit("agent:prompt", agent="Dreamer", reason="the user asked", text="x" * 5000)
job.emit("verify:result", who="Judge", why="three votes", ruling="pass", votes={"yes": 3})
job.emit("pod:memory_recalled", count=2)
if "fail" in sys.argv:
    raise ValueError("no")
"""


def listed(desk, *words):
    return json.loads(desk.play("list", "--json", "--all", *words).stdout)


def test_a_callback_without_a_run_opens_one_and_each_event_has_who_and_why(desk):
    app = desk.write("app.py", SILENT)
    assert desk.python(app).returncode == 0
    (run,) = listed(desk)
    assert (run["name"], run["status"], run["events"] >= 3) == ("app", "ok", True)
    rows = [json.loads(line) for line in desk.play("events", "last", "--json").stdout.splitlines()]
    own = {row["kind"]: row for row in rows if ":" in row["kind"]}
    prompt, verdict, memory = own.values()
    assert (prompt["who"], prompt["why"]) == ("Dreamer", "the user asked")
    assert (verdict["who"], verdict["why"]) == ("Judge", "three votes")
    assert memory["who"] == "app"
    assert prompt["data"]["agent"] == "Dreamer"
    assert "3 ev" in desk.play("list", "--all").stdout
    assert "3 events emitted" in desk.play("show", "last").stdout


def test_a_tapped_program_that_dies_of_an_error_leaves_a_failed_run(desk):
    app = desk.write("app.py", SILENT)
    assert desk.python(app, "fail").returncode == 1
    (run,) = listed(desk)
    assert (run["status"], run["failure"]) == ("failed", "ValueError: no")


def test_a_long_event_is_shown_in_full(desk):
    desk.python(desk.write("app.py", SILENT))
    rows = [json.loads(line) for line in desk.play("events", "last", "--json").stdout.splitlines()]
    prompt = next(row for row in rows if row["kind"] == "agent:prompt")
    shown = desk.play("show", "last", "--event", prompt["seq"])
    assert shown.returncode == 0, shown.stderr
    assert "".join(shown.stdout.split()).count("x" * 5000) == 1
    assert "Dreamer" in shown.stdout
    assert "the user asked" in shown.stdout
    assert "".join(desk.play("show", "last", "--full").stdout.split()).count("x" * 5000) == 1
    assert "x" * 200 not in desk.play("show", "last").stdout
    as_json = json.loads(desk.play("show", "last", "--event", prompt["seq"], "--json").stdout)
    assert as_json["data"]["text"] == "x" * 5000
    unknown = desk.play("show", "last", "--event", 999)
    assert unknown.returncode == 2
    assert "has no event 999" in unknown.stderr


SWITCHED = """
import playhead, subprocess, sys
with playhead.turn("respond"):
    subprocess.run(["true"])
    if "fail" in sys.argv:
        raise ValueError("no")
"""


@pytest.mark.parametrize("words", [["app.py"], ["-m", "app"]])
def test_the_variable_records_a_program_that_imports_playhead(desk, words):
    desk.write("app.py", SWITCHED)
    ended = desk.python(*words, PLAYHEAD_RECORD="1")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    (run,) = listed(desk)
    assert (run["status"], run["calls"], run["name"]) == ("ok", 1, words[-1])
    assert "turn respond" in desk.play("show", "last", PLAYHEAD_RECORD="1").stdout
    assert len(listed(desk)) == 1


@pytest.mark.parametrize("value", [None, "0", ""])
def test_without_the_variable_nothing_is_recorded(desk, value):
    desk.write("app.py", SWITCHED)
    assert (
        desk.python("app.py", **({} if value is None else {"PLAYHEAD_RECORD": value})).returncode
        == 0
    )
    assert not (desk.home / "runs").exists()


def test_a_program_that_fails_under_the_variable_is_a_failed_run(desk):
    desk.write("app.py", SWITCHED)
    assert desk.python("app.py", "fail", PLAYHEAD_RECORD="1").returncode == 1
    (run,) = listed(desk)
    assert (run["status"], run["failure"]) == ("failed", "ValueError: no")


def test_a_program_with_a_run_of_its_own_gives_the_switched_on_run_its_name(desk):
    desk.write(
        "app.py",
        "import playhead\nwith playhead.record(name='nightly', tags={'a': 'b'}) as run:\n    run.emit('x')\n",
    )
    desk.python("app.py", PLAYHEAD_RECORD="1")
    (run,) = listed(desk)
    assert (run["name"], run["tags"]) == ("nightly", {"a": "b"})


SERVER = """
import playhead
with playhead.record(name="server"):
    for number in range(12):
        try:
            with playhead.turn("answer", purpose=f"request {number}") as turn:
                turn.seam("parse", {"intent": f"refund {number}"})
                turn.retrieval([
                    {"source_id": "doc-1", "score": 0.91, "snippet": "abc", "bytes_in_prompt": 3},
                    {"source_id": "doc-2", "score": 0.2, "snippet": "defg", "included": False,
                     "drop_reason": "below the threshold"},
                ])
                assert turn.seam_count == 1
                if number % 2:
                    raise KeyError(number)
        except KeyError:
            pass
"""


def test_failed_turns_that_the_program_caught_are_counted_everywhere(desk):
    desk.python(desk.write("server.py", SERVER))
    desk.python("-c", "import playhead\nwith playhead.record(name='good'): pass")
    good, bad = listed(desk)
    assert (bad["status"], bad["failed_turns"], good["failed_turns"]) == ("ok", 6, 0)
    assert [run["name"] for run in listed(desk, "--failed-turns")] == ["server"]
    assert "6 failed turns" in desk.play("list", "--all").stdout
    shown = desk.play("show", bad["id"]).stdout
    assert "6 turns failed" in shown.split("turn answer")[0]
    assert "KeyError: 1" in shown
    stats = desk.play("stats", "--all")
    assert "6 failed turns" in stats.stdout, stats.stdout
    totals = json.loads(desk.play("show", bad["id"], "--json").stdout)["totals"]
    assert totals["failed_turns"] == 6


def test_seam_data_and_sources_are_shown(desk):
    desk.python(desk.write("server.py", SERVER))
    shown = desk.play("show", "last").stdout
    assert "refund 0" in shown
    lines = [line for line in shown.splitlines() if "doc-" in line]
    assert "0.91" in lines[0]
    assert "included" in lines[0]
    assert "dropped" in lines[1]
    assert "below the threshold" in lines[1]


POOL = """
import subprocess, sys, threading, time
import playhead

class Pool:
    def __init__(self, tasks):
        self.tasks, self._lock = tasks, threading.Lock()
    def claim_next(self, worker):
        with self._lock:
            for name, state in self.tasks.items():
                if state == "todo":
                    self.tasks[name] = f"doing:{worker}"
                    return name
    def mark_complete(self, name):
        with self._lock:
            self.tasks[name] = f"done at {time.time()}"

pool = Pool({f"t{n}": "todo" for n in range(6)})
playhead.watch(pool, snapshot="tasks", mutations=["claim_next", "mark_complete"])
workers = int(sys.argv[1])
meet = threading.Barrier(workers)

def work(worker):
    with playhead.lane(worker):
        while name := pool.claim_next(worker):
            meet.wait()
            subprocess.run(["echo", name], capture_output=True)
            pool.mark_complete(name)

threads = [threading.Thread(target=work, args=(f"worker-{n}",)) for n in range(workers)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.mark.parametrize("workers", [1, 3])
def test_the_final_state_of_a_shared_store_is_part_of_the_verdict(desk, workers):
    app = desk.write("pool.py", POOL)
    ended = desk.play(
        "record", "--no-workspace", "--record-session", "night", "--", sys.executable, app, workers
    )
    assert ended.returncode == 0, ended.stderr
    session = desk.folder / "night"
    assert session.stat().st_mode & 0o777 == 0o600
    good = desk.play("replay", session)  # this user recorded it, so nothing is asked
    assert "identical" in good.stdout + good.stderr, good.stdout + good.stderr
    for verb in (["show"], ["events", "--pretty"], ["verify"], ["play", "--speed", "1000"]):
        told = desk.play(verb[0], session, *verb[1:])
        assert told.returncode == 0, (verb, told.stderr)
    lines = [json.loads(line) for line in session.read_text().splitlines()]
    assert all(line["thread"] for line in lines if line.get("kind") == "call")
    for line in lines:
        if line.get("kind") == "snapshot" and line["data"]["when"] == "end":
            line["data"]["value"] = dict.fromkeys(line["data"]["value"], "LOST")
    session.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert desk.play("replay", session).returncode == 4  # edited: it could be another person's
    bad = desk.play("replay", session, "--trust")
    assert bad.returncode == 3, bad.stdout + bad.stderr
    assert "Pool at the end" in bad.stdout + bad.stderr


def test_a_killed_session_is_found_by_its_file(desk):
    app = desk.write(
        "app.py",
        "import os, playhead, signal, subprocess\n"
        "with playhead.record(intercept=True):\n"
        "    subprocess.run(['true'])\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n",
    )
    desk.python(app, PLAYHEAD_RECORD_SESSION="night.session")
    shown = desk.play("show", "night.session")
    assert "interrupted" in shown.stdout, shown.stderr
    assert "process true" in shown.stdout
    assert (desk.folder / "night.session").stat().st_mode & 0o777 == 0o600


def test_a_failed_turn_as_a_fixture_has_error_seams_and_time(desk):
    desk.python(desk.write("server.py", SERVER))
    (run,) = listed(desk)
    story = tell(Tape(desk.home / "runs" / run["id"]))
    turns = fixtures_of(story)["turns.json"]
    failed = next(turn for turn in turns if turn["how"] == "raised")
    assert failed["error"]["type"] == "KeyError"
    assert failed["error"]["traceback"]
    assert [(seam["name"], seam["value"]) for seam in failed["seams"]] == [
        ("parse", {"intent": "refund 1"})
    ]
    assert failed["took_ns"] > failed["seams"][0]["at_ns"] > 0


def test_retention_works_after_a_loop(desk):
    desk.write("playhead.toml", "[retention]\nauto = true\nkeep = 1\n")
    for name in ("one", "two"):
        words = ("--record", "--stage", "work:1", "--session", name, "--", "true")
        ended = desk.play("loop", *words)
        assert ended.returncode == 0, ended.stderr
    assert desk.runs() == ["two"]


ORCHESTRATOR = """
import playhead
details = {"config": {"workers": 3, "api_key": "sk-ant-api03-%s"}, "completed": ["t0", "t1"]}
with playhead.record(name="night", details=details) as run:
    run.emit("pool:started")
"""


@pytest.mark.parametrize("how", ["alone", "joined", "file"])
def test_the_manifest_keeps_the_configuration_and_the_completed_tasks(desk, how):
    app = desk.write("app.py", ORCHESTRATOR % ("a1B2" * 24))
    started = [sys.executable, app]
    if how == "alone":
        ended = desk.python(app)
    else:
        words = ["--record-session", "night.session"] if how == "file" else []
        ended = desk.play("record", *words, "--", *started)
    assert ended.returncode == 0, ended.stderr
    run = "night.session" if how == "file" else "last"
    told = json.loads(desk.play("show", run, "--json").stdout)["details"]
    assert told["completed"] == ["t0", "t1"]
    assert told["config"]["workers"] == 3
    assert "a1B2a1B2" not in json.dumps(told)
    assert 'completed: ["t0", "t1"]' in desk.play("show", run).stdout
    script = f"import playhead; print(playhead.load({run!r}).details['completed'])"
    assert desk.python("-c", script).stdout == "['t0', 't1']\n"
    if how == "joined":
        recorded = desk.home / "runs" / desk.runs()[0]
        before = sorted(path.name for path in recorded.iterdir())
        assert "identical" in desk.play("replay", "last").stderr
        assert before == sorted(path.name for path in recorded.iterdir())


def test_the_terminal_ui_and_the_api_have_a_long_event_in_full(desk):
    desk.python(desk.write("app.py", SILENT))
    (run,) = listed(desk)
    story = tell(Tape(desk.home / "runs" / run["id"]))
    prompt = next(
        item for item in story.items.values() if getattr(item, "kind", "") == "agent:prompt"
    )
    lines = "".join(line.plain.strip() for line in item_lines(story, prompt, 80))
    assert lines.count("x" * 5000) == 1
    assert "the user asked" in lines
    assert item_at(story, prompt.ref)["data"]["text"] == "x" * 5000


def test_the_next_failure_is_each_failed_turn_and_each_failed_call_in_none(desk):
    desk.python(
        desk.write(
            "server.py",
            """
import playhead

@playhead.tool(effect="read")
def lookup(order):
    raise LookupError(order)

with playhead.record(name="server"):
    for number in range(4):
        try:
            with playhead.turn("answer", purpose=f"request {number}"):
                if number == 1:
                    lookup("A-1")
                if number:
                    raise KeyError(number)
        except LookupError:
            pass
""",
        )
    )
    (run,) = listed(desk)
    assert run["failed_turns"] == 3
    story = tell(Tape(desk.home / "runs" / run["id"]))
    found = [story.items[ref] for ref in story.failures()]
    assert [getattr(item, "purpose", item.name) for item in found] == [
        "lookup",
        "request 2",
        "request 3",
    ]
