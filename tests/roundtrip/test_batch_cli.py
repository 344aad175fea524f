"""`playhead batch` over ten recorded agents: one verdict each, whatever happens to the batch."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from junitparser import Failure, JUnitXml
from tests import warm_start

from playhead.llm.llm_script import Reply
from playhead.testing import ScriptedLLM

PLAYHEAD = [sys.executable, "-m", "playhead"]
ORDERS = range(10)

# What it does differently is told by files beside it: `odd` names the orders that are asked about in
# other words, `turns` makes every second run do so, and who asks about order 5 waits at `gate`.
AGENT = """
import http.client, json, os, pathlib, sys, urllib.parse
import playhead

order = int(sys.argv[1])
beside = pathlib.Path(__file__).parent

@playhead.tool(effect="read")
def lookup(order):
    return {"order": order, "state": "shipped"}

def is_odd():
    odd, turns = beside / "odd", beside / "turns"
    if turns.exists():
        done = turns.read_text()
        turns.write_text(done + ".")
        return len(done) % 2 == 1
    return odd.exists() and str(order) in odd.read_text().split()

if order == 5 and (beside / "gate").exists():
    (beside / "gate").read_text()
question = f"Where is order {order}?" + (" Answer in verse." if is_odd() else "")
found = lookup(order)
url = urllib.parse.urlsplit(os.environ["ANTHROPIC_BASE_URL"])
connection = http.client.HTTPConnection(url.hostname, url.port)
body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 99, "messages": [
    {"role": "user", "content": question + json.dumps(found)}]})
connection.request("POST", "/v1/messages", body, {"content-type": "application/json"})
print(json.loads(connection.getresponse().read())["content"][0]["text"])
"""


UNFENCED = ("--unfenced", "--allow-unproven")
# A replay restores the files of the recording; the files beside the agent that steer it are of today.
TODAY = "--in-place"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder with an agent, and a store with ten runs of it. The model stays up, for who asks it."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "agent.py").write_text(AGENT)
    replies = [Reply(text=f"Order {order} shipped.") for order in ORDERS]
    anew = [Reply(text=f"Order {order} has shipped.") for order in ORDERS]
    with ScriptedLLM([*replies, *anew]) as llm:
        for order in ORDERS:
            argv = [*PLAYHEAD, "record", "--store", "store", "--name", f"order-{order}"]
            argv += ["--tag", "env=ci" if order < 8 else "env=dev", "--quiet", "--"]
            subprocess.run(
                [*argv, sys.executable, "agent.py", str(order)],
                cwd=folder,
                env={**os.environ, **llm.environ()},
                check=True,
            )
        yield folder


@pytest.fixture
def folder(recorded, tmp_path, monkeypatch):
    """The agent of `recorded`, and a copy of its store."""
    shutil.copytree(recorded / "store", tmp_path / "store")
    # A copy is the user's own only in the user's own store.
    monkeypatch.setenv("PLAYHEAD_HOME", str(tmp_path / "store"))
    yield recorded
    for name in ("odd", "turns", "gate"):
        (recorded / name).unlink(missing_ok=True)


@pytest.fixture
def batch(folder, tmp_path):
    """`batch("tag:env=ci", "--jobs", "1")`, with what it found as `.found`."""

    def run(*words: str, env: dict[str, str] | None = None):
        out = tmp_path / "results.json"
        out.unlink(missing_ok=True)
        ended = warm_start.run(
            [*argv_of(tmp_path), "--json", str(out), *words],
            cwd=tmp_path, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        ended.found = json.loads(out.read_text()) if out.exists() else None
        return ended

    return run


def argv_of(tmp_path: Path) -> list[str]:
    return [*PLAYHEAD, "batch", "--store", str(tmp_path / "store")]


def outcomes(ended) -> dict[str, str]:
    return {case["name"]: case["outcome"] for case in ended.found["cases"]}


def test_ten_tapes_that_still_hold_pass_with_a_line_each(batch):
    ended = batch("name:order-*")
    assert ended.returncode == 0, ended.stderr
    assert ended.found["counts"]["passed"] == 10
    assert len(ended.stderr.splitlines()) == 10
    assert "10 passed" in ended.stdout


def test_filters_hold_together_and_a_named_run_comes_on_top(batch):
    ended = batch("tag:env=dev", "status:ok", "since:1d", "--dry-run")
    assert sorted(line.split()[1] for line in ended.stdout.splitlines()) == ["order-8", "order-9"]
    first = ended.stdout.split()[0]
    assert len(batch("tag:env=ci", first, "--dry-run").stdout.splitlines()) == 9


def test_the_one_that_asks_in_other_words_diverged_and_the_batch_leaves_with_3(
    batch, folder, tmp_path
):
    (folder / "odd").write_text("3")
    junit = tmp_path / "junit.xml"
    written = ("--junit", str(junit), "--html", str(tmp_path / "page.html"))
    ended = batch("tag:env=ci", TODAY, *written)
    assert ended.returncode == 3
    assert [name for name, said in outcomes(ended).items() if said != "passed"] == ["order-3"]
    (suite,) = JUnitXml.fromfile(str(junit))
    assert (suite.tests, suite.failures, suite.errors) == (8, 1, 0)
    (bad,) = [case for case in suite if not case.is_passed]
    assert bad.name.startswith("order-3 [")
    assert isinstance(bad.result[0], Failure)
    assert bad.result[0].type == "diverged"
    assert "differs in body" in bad.result[0].message
    page = (tmp_path / "page.html").read_text()
    assert "order-3" in page
    assert "<script" not in page


def test_a_broken_invariant_leaves_with_5_and_says_where(batch):
    ended = batch("tag:env=dev", "--must-not-call", "lookup", "--must-say", "Order 9")
    assert ended.returncode == 5
    assert outcomes(ended) == {"order-8": "broken", "order-9": "broken"}
    by_name = {case["name"]: case["verdicts"][0]["broken"] for case in ended.found["cases"]}
    assert [one["what"] for one in by_name["order-9"]] == ["must_not_call"]
    assert [one["what"] for one in by_name["order-8"]] == ["must_not_call", "must_say"]
    assert by_name["order-9"][0]["call"] == 1


def test_invariants_stand_in_the_config_too(batch, tmp_path):
    (tmp_path / "playhead.toml").write_text("[batch.invariants]\nmax_steps = 1\n")
    ended = batch("name:order-1")
    assert ended.returncode == 5
    assert "max_steps: expected at most 1, found 2 at call #2" in ended.stdout
    assert batch("name:order-1", "--max-steps", "2").returncode == 0


def test_a_damaged_tape_is_unusable_and_the_others_are_replayed(batch, tmp_path):
    (victim,) = (
        manifest.parent
        for manifest in tmp_path.glob("store/runs/*/manifest.json")
        if json.loads(manifest.read_text())["name"] == "order-2"
    )
    assert subprocess.run([*PLAYHEAD, "unseal", str(victim)], check=False).returncode == 0
    for segment in victim.glob("tape-*.jsonl"):
        segment.write_bytes(segment.read_bytes().replace(b"shipped", b"shipqed", 1))
    ended = batch("tag:env=ci")
    assert ended.returncode == 4
    assert ended.found["counts"] == {
        "passed": 7,
        "diverged": 0,
        "broken": 0,
        "unusable": 1,
        "error": 0,
    }
    assert "damaged" in ended.stdout


def test_shards_are_parts_that_make_the_whole(batch):
    whole = set(batch("name:*", "--dry-run").stdout.splitlines())
    parts = [
        batch("name:*", "--dry-run", "--shard", f"{part}/3").stdout.splitlines()
        for part in (1, 2, 3)
    ]
    assert sum(map(len, parts)) == len(whole) == 10
    assert set().union(*parts) == whole


def test_single_file_tapes_are_found_in_a_folder_and_by_a_glob(batch, folder, tmp_path):
    for order in (0, 1):
        subprocess.run(
            [*PLAYHEAD, "promote", "--store", str(tmp_path / "store"),
             next(iter(batch(f"name:order-{order}", "--dry-run").stdout.split())), str(tmp_path / "tests")],
            check=True, capture_output=True,
        )  # fmt: skip
    other = ["--", sys.executable, str(folder / "agent.py")]
    ended = batch("tests", *other, "0")
    assert outcomes(ended) == {"order_0": "passed", "order_1": "diverged"}, ended.found
    assert [case["tape"] for case in ended.found["cases"]] == [
        "tests/tapes/order_0.tape.jsonl",
        "tests/tapes/order_1.tape.jsonl",
    ]
    assert batch("tests/**/*_1.tape.jsonl", *other, "1").returncode == 0


def test_repeats_tell_how_often_a_tape_passes(batch, folder):
    (folder / "turns").write_text("")
    # In a fence nothing is left from one round for the next.
    ended = batch("name:order-4", "--repeat", "4", "--jobs", "1", *UNFENCED)
    assert ended.returncode == 3
    (case,) = ended.found["cases"]
    assert (case["passes"], case["rounds"], case["pass_rate"], case["flaky"]) == (2, 4, 0.5, True)
    assert "passed 2 of 4" in ended.stdout


def test_fail_fast_ends_with_the_first_that_does_not_pass(batch, folder):
    (folder / "odd").write_text("7")
    ended = batch("tag:env=ci", TODAY, "--jobs", "1", "--fail-fast")
    assert ended.returncode == 3
    assert ended.found["not_run"] == 7
    assert "7 not run" in ended.stdout


def test_a_batch_that_was_killed_goes_on_where_it_was(batch, folder, tmp_path):
    os.mkfifo(folder / "gate")
    # A fence has pipes of its own: there, the gate could not be opened from here.
    argv = [*argv_of(tmp_path), "name:order-*", "--jobs", "1", *UNFENCED]
    with subprocess.Popen(argv, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as killed:
        told = [killed.stderr.readline() for _ in range(4)]
        killed.kill()
    assert ["passed" in line for line in told] == [True] * 4
    # The replay that was under way, if it was, is let go: it belongs to nobody now.
    gate = os.open(folder / "gate", os.O_RDWR)
    (folder / "gate").unlink()
    os.close(gate)
    ended = batch("name:order-*", "--jobs", "1", "--resume", *UNFENCED)
    assert ended.returncode == 0, ended.stderr
    numbers = [line.split("/")[0].strip() for line in ended.stderr.splitlines()]
    assert numbers == [*"56789", "10"]
    assert ended.found["counts"]["passed"] == 10
    assert list(tmp_path.glob("store/batches/*")) == []


def test_a_cancelled_batch_ends_its_replays_and_says_how_to_go_on(folder, tmp_path):
    os.mkfifo(folder / "gate")
    argv = [*argv_of(tmp_path), "name:order-*", "--jobs", "1"]
    with subprocess.Popen(argv, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as cancelled:
        cancelled.stderr.readline()
        cancelled.terminate()
        told = cancelled.stderr.read()
    assert cancelled.returncode == 130
    assert "--resume to continue" in told
    assert "Traceback" not in told
    assert len(list(tmp_path.glob("store/batches/*"))) == 1


def test_a_replay_that_hangs_is_ended_and_the_others_go_on(batch, folder):
    os.mkfifo(folder / "gate")
    # In place: elsewhere a replay does not see a pipe that the recorded run did not find.
    ended = batch("tag:env=ci", TODAY, "--timeout", "8s", "--jobs", "2")
    assert ended.returncode == 1
    assert [name for name, said in outcomes(ended).items() if said == "error"] == ["order-5"]
    assert "timed out after 8 s" in ended.stdout


def test_the_options_of_replay_are_passed_on_and_wrong_ones_told_once(batch):
    ended = batch("tag:env=dev", "--live", "llm", "--min-similarity", "0.6")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    figures = [case["verdicts"][0]["figures"] for case in ended.found["cases"]]
    assert all(0.6 <= one["similarity"] < 1 for one in figures)
    wrong = batch("tag:env=dev", "--match-threshold", "7")
    assert wrong.returncode == 2
    assert wrong.found is None


def test_a_budget_stops_a_live_batch_and_a_higher_one_continues_it(batch):
    words = ("tag:env=dev", "--live", "llm", "--jobs", "2")
    price = batch("name:order-8", *words[1:]).found["spent_usd"]
    assert price > 0
    stopped = batch(*words, "--budget", f"{price * 1.5:.6f}")
    assert stopped.returncode == 1
    assert (len(stopped.found["cases"]), stopped.found["not_run"]) == (1, 1)
    assert "--resume and a higher --budget" in " ".join(stopped.stdout.split())
    ended = batch(*words, "--budget", f"{price * 9:.6f}", "--resume")
    assert ended.returncode == 0, ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert len(ended.found["cases"]) == 2


def test_merged_shards_have_the_verdicts_of_the_whole(batch, folder, tmp_path):
    (folder / "odd").write_text("9")
    found = []
    for part in ("1/2", "2/2"):
        ended = batch("tag:env=dev", TODAY, "--shard", part)
        path = tmp_path / f"shard-{part[0]}.json"
        path.write_text(json.dumps(ended.found))
        found.append(str(path))
    merged = tmp_path / "merged.json"
    argv = [*PLAYHEAD, "batch", "merge", *found, "--json", str(merged)]
    assert subprocess.run(argv, check=False, capture_output=True).returncode == 3
    members = json.loads(merged.read_text())
    names = {case["name"]: case["outcome"] for case in members["cases"]}
    assert names == {"order-8": "passed", "order-9": "diverged"}


def test_a_github_step_gets_a_summary(batch, folder, tmp_path):
    (folder / "odd").write_text("9")
    summary = tmp_path / "summary.md"
    batch("tag:env=dev", TODAY, env={"GITHUB_STEP_SUMMARY": str(summary)})
    text = summary.read_text()
    assert text.startswith("### Playhead batch: 1 passed, 1 diverged\n")
    assert "order-9" in text


def test_an_accepted_replay_is_what_the_next_batch_replays(batch, folder, tmp_path):
    (folder / "odd").write_text("6")
    live = batch("name:order-6", TODAY, "--live", "llm")
    (case,) = live.found["cases"]
    replay = case["verdicts"][0]["replay"]
    accept = [*PLAYHEAD, "accept", "--store", str(tmp_path / "store"), replay]
    assert subprocess.run(accept, check=False, capture_output=True).returncode == 0
    ended = batch("tag:golden=true", TODAY)
    assert ended.returncode == 0, ended.stdout
    assert [case["tape"] for case in ended.found["cases"]] == [replay]


def test_an_unproven_replay_fails_a_batch_unless_it_is_allowed(batch):
    ended = batch("name:order-3", "--unfenced")
    assert ended.returncode == 3
    assert "unproven" in ended.stdout
    assert batch("name:order-3", *UNFENCED).returncode == 0


NOISY = """
import os, subprocess, sys
is_fancy = sys.stdout.isatty()
size = os.get_terminal_size(1) if is_fancy else "no"
print("\\x1b[32masking\\x1b[0m" if is_fancy else "asking", size, flush=True)
subprocess.run(["sh", "-c", "echo from a child; echo aside >&2"])
done = subprocess.run(["date", "+%N"], capture_output=True, text=True)
print(done.stdout, end="")
print("done", file=sys.stderr)
"""


def on_terminal(words, folder, env, columns=80):
    """Run with a terminal as all three streams; its output."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (30, columns))
    running = subprocess.Popen(
        words,
        cwd=folder,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    out = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not piece:
            break
        out += piece
    os.close(ours)
    return running.wait(), out.decode()


@pytest.mark.parametrize("recorded_on", ["terminal", "pipes", "file"])
def test_the_verdict_of_a_batch_does_not_depend_on_redirections(tmp_path, recorded_on):
    (tmp_path / "noisy.py").write_text(NOISY)
    env = {**os.environ, "PLAYHEAD_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    record = [*PLAYHEAD, "record", "--name", "noisy", "--", sys.executable, "noisy.py"]
    quiet = subprocess.DEVNULL
    if recorded_on == "terminal":
        code, _ = on_terminal(record, tmp_path, env, columns=50)
    elif recorded_on == "pipes":
        code = subprocess.run(
            record, cwd=tmp_path, env=env, capture_output=True, check=False
        ).returncode
    else:
        with (tmp_path / "out.txt").open("w") as file:
            code = subprocess.run(
                record, cwd=tmp_path, env=env, stdin=quiet, stdout=file, stderr=file, check=False
            ).returncode
    assert code == 0
    words = [*PLAYHEAD, "batch", "name:noisy", "--json", str(tmp_path / "results.json")]
    found = {}

    def judge(how, code):
        results = json.loads((tmp_path / "results.json").read_text())
        case = results["cases"][0]
        found[how] = (code, case["outcome"])
        assert case["outcome"] == "passed", (how, case)

    judge("terminal", on_terminal(words, tmp_path, env)[0])
    judge(
        "pipes",
        subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, check=False).returncode,
    )
    with (tmp_path / "log.txt").open("w") as file:
        ended = subprocess.run(
            words, cwd=tmp_path, env=env, stdin=quiet, stdout=file, stderr=file, check=False
        )
        judge("one file", ended.returncode)
    script = f"{shlex.join(words)} 2>/dev/null <&- | cat > log2.txt; exit ${{PIPESTATUS[0]}}"
    judge(
        "closed stdin",
        subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, check=False).returncode,
    )
    assert found == dict.fromkeys(found, (0, "passed"))
