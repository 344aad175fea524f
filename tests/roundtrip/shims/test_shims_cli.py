"""Programs that cannot be hooked, recorded with what they start, and replayed with none of it there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests import warm_start

from playhead.replay.matching.taped import TapedCall, load
from playhead.tape.reader import Tape
from playhead.testing import ScriptedLLM

PLAYHEAD = (sys.executable, "-m", "playhead")

SHELL = """#!/usr/bin/env bash
echo '*' > .gitignore
git init -q . && git config user.email a@example.com && git config user.name A
echo one | git hash-object --stdin
sh -c 'git rev-parse --is-inside-work-tree; echo inner >&2; exit 3'
echo "code $?"
while read word; do git check-ref-format "$word"; echo "$word $?"; done <<WORDS
refs/heads/ok
no good
WORDS
git log 2>&1 | head -1
"""

NODE = """
const { execFileSync, spawn, exec } = require('child_process');
console.log(execFileSync('git', ['hash-object', '--stdin'], { input: 'one\\n' }).toString().trim());
exec('git rev-parse --is-inside-work-tree', (error, out, err) => {
  console.log(error && error.code, out, err);
  const talk = spawn('sh', ['-c', 'echo ready; while read x; do echo "got $x"; done; exit 4']);
  talk.stdout.on('data', (said) => {
    process.stdout.write(`said ${said}`);
    if (`${said}`.startsWith('ready')) talk.stdin.write('a\\n'); else talk.stdin.end();
  });
  talk.on('close', (code, signal) => {
    console.log('closed', code, signal);
    const sleeper = spawn('bash', ['-c', 'echo up; exec sleep 600'], { detached: true });
    sleeper.stdout.once('data', () => process.kill(-sleeper.pid, 'SIGTERM'));
    sleeper.on('close', (code, signal) => console.log('killed', code, signal));
  });
});
"""

NODES = [shutil.which("node")] if shutil.which("node") else []


class Playing:
    """`playhead …` in a folder and a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store"
        self.work = folder / "work"
        self.work.mkdir()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("PLAYHEAD_")}

    def __call__(self, verb: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        argv = [*PLAYHEAD, verb, "--store", str(self.store), *words]
        env = {**self.env, **env}
        return warm_start.run(
            argv, cwd=self.work, env=env, capture_output=True, text=True, check=False, timeout=100
        )

    def calls(self) -> list[TapedCall]:
        """Of the first run."""
        return load(Tape(min((self.store / "runs").iterdir()))).calls

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def without(self, *programs: str) -> str:
        """A PATH on which these are not; what is, is what a script cannot do without."""
        bare = self.folder / "bare"
        bare.mkdir(exist_ok=True)
        for name in ("bash", "env", "head", "node", "sh", "sleep"):
            if (found := shutil.which(name)) and name not in programs:
                (bare / name).unlink(missing_ok=True)
                (bare / name).symlink_to(found)
        return str(bare)


@pytest.fixture
def playhead(tmp_path: Path) -> Playing:
    return Playing(tmp_path)


def test_a_shell_script_replays_with_the_programs_it_ran_gone(playhead):
    script = playhead.file("agent.sh", SHELL)
    then = playhead("record", "--", script)
    assert then.returncode == 0, then.stderr
    assert "true\ncode 3\nrefs/heads/ok 0\nno good 1\nfatal:" in then.stdout
    # The script itself is the run; its `sh` is one call, and the git in there is a part of it.
    names = [call.name for call in playhead.calls()]
    assert names.count("git rev-parse") == 1
    assert sorted(names) == sorted(
        [
            *("git init", "git config", "git config", "git hash-object", "git rev-parse"),
            *("git check-ref-format", "git check-ref-format", "git log", "head"),
        ]
    )
    shutil.rmtree(playhead.work / ".git")
    now = playhead("replay", "last", PATH=playhead.without("git"))
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr
    assert "identical" in now.stderr
    assert not (playhead.work / ".git").exists()


@pytest.mark.parametrize("node", NODES)
def test_a_node_program_replays_with_the_programs_it_ran_gone(playhead, node):
    script = playhead.file("agent.js", NODE)
    bare = subprocess.run(
        [node, script], cwd=playhead.work, capture_output=True, text=True, check=True
    )
    then = playhead("record", "--", node, script)
    assert then.stdout == bare.stdout
    names = [call.name for call in playhead.calls()]
    assert names == ["git hash-object", "git rev-parse", "echo", "echo"]
    now = playhead("replay", "last", PATH=playhead.without("git", "bash", "sleep"))
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


def test_a_command_that_is_not_on_the_tape_is_refused_and_reported(playhead):
    script = playhead.file("agent.sh", "#!/bin/sh\ngit $WORD; echo $?\n")
    playhead("record", "--", script, WORD="version")
    tape = next((playhead.store / "runs").iterdir()).name
    changed = playhead.file("other.sh", "#!/bin/sh\ngit init; echo $?\n")
    report = str(playhead.folder / "report.json")
    now = playhead("replay", tape, "--report", report, "--", changed)
    assert now.returncode != 0
    assert now.stdout == "125\n"
    assert "No taped call matches process call 1 (git init" in now.stderr
    told = json.loads(Path(report).read_text())
    kinds = [one["kind"] for one in told["divergences"]]
    assert (kinds[0], kinds[-1]) == ("missed", "unused"), kinds
    assert not (playhead.work / ".git").exists()


def test_input_that_was_not_sent_then_is_refused(playhead):
    script = playhead.file("agent.sh", "#!/bin/sh\necho $WORD | git hash-object --stdin; echo $?\n")
    playhead("record", "--", script, WORD="one")
    other = playhead.file("agent.sh", "#!/bin/sh\necho two | git hash-object --stdin; echo $?\n")
    now = playhead("replay", "last", "--", other)
    assert now.stdout == "125\n"
    assert "sends other input to git hash-object than in the recording" in now.stderr


def test_processes_may_be_live_in_a_replay(playhead):
    script = playhead.file("agent.sh", "#!/bin/sh\ngit init -q .; echo $?\n")
    playhead("record", "--", script)
    shutil.rmtree(playhead.work / ".git")
    now = playhead("replay", "last", "--live", "process")
    assert now.stdout == "0\n", now.stderr
    assert (playhead.work / ".git").exists()


def test_a_program_that_cannot_be_started_is_one_more_thing_to_recover_from(playhead):
    playhead("record", "--", playhead.file("agent.sh", "#!/bin/sh\ngit version || echo $?\n"))
    for fault, code in (("raise:FileNotFoundError", 127), ("exit:9", 9), ("kill", 137)):
        now = playhead("replay", "last", "--fault", f"process:1={fault}")
        assert now.stdout == f"{code}\n", now.stderr


def test_shims_go_on_and_are_cleared_away_when_the_launcher_is_killed(playhead, tmp_path):
    os.mkfifo(tmp_path / "gate")
    # The sidecar starts its thread for shims when it knows the command: from then on it serves alone.
    children = "$(cat /proc/$PPID/task/$PPID/children)"
    threads = "$(ls /proc/$p/task | wc -l)"
    waits = f"until for p in {children}; do [ {threads} -gt 1 ] && break; done; do :; done"
    script = f"#!/bin/sh\n{waits}\nkill -9 $PPID\nread x < {tmp_path}/gate\ngit version\n"
    argv = [*PLAYHEAD, "record", "--no-proxy", "--store", str(playhead.store), "--"]
    with TemporaryDirectory() as short:  # pytest's own may be too long for the name of a socket
        launcher = subprocess.Popen(
            [*argv, playhead.file("agent.sh", script)], env={**playhead.env, "TMPDIR": short}
        )
        assert launcher.wait() == -9
        (folder,) = Path(short).glob("playhead-*")
        (tmp_path / "gate").write_text("go\n")
        while folder.exists():
            os.sched_yield()
    assert playhead.calls()[-1].name == "git version"


ASKING = """#!/bin/sh
# -S: a program that cannot be hooked.
PYTHON -S -c '
import json, os, urllib.request
body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
headers = {"content-type": "application/json"}
urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)).read()
'
git version
"""


def test_a_command_has_the_answer_as_its_cause_in_which_a_model_asked_for_it(playhead):
    asks = {"name": "Bash", "arguments": {"command": "git version --build-options; git version"}}
    script = playhead.file("agent.sh", ASKING.replace("PYTHON", sys.executable))
    with ScriptedLLM([{"text": "Let me see.", "tool_calls": [asks]}]) as llm:
        done = playhead("record", "--", script, **llm.environ())
    assert done.returncode == 0, done.stderr
    python, asked, git = playhead.calls()
    assert (asked.boundary, git.name) == ("llm", "git version")
    assert asked.event.absolute(asked.event.parent) == python.ref
    assert git.event.absolute(git.event.cause) == asked.ref


def test_a_run_that_was_killed_with_all_its_processes_is_killed_there_again(playhead):
    tapes = f"{playhead.store}/runs/*/tape-*.jsonl"
    # Told by the shim, and told by who passes it on: both are killed with it.
    told = ('"stream":"stdout","text":"in', '"kind":"output".*in\\\\n"')
    waits = "; ".join(f"until grep -qs '{one}' {tapes}; do :; done" for one in told)
    inner = playhead.file("inner.sh", f"echo in; {waits}; kill -9 0")
    script = playhead.file("agent.sh", f"#!/bin/sh\necho on; sh {inner}\necho never\n")
    argv = [*PLAYHEAD, "record", "--no-proxy", "--store", str(playhead.store), "--", script]
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # nobody is left to clear it
        env = {**playhead.env, "TMPDIR": folder}
        then = subprocess.run(argv, cwd=playhead.work, env=env, start_new_session=True, check=False)
    assert then.returncode == -9
    now = playhead("replay", "last")
    assert (now.returncode, now.stdout) == (0, "on\nin\n"), now.stderr


MOUNTED = """#!/usr/bin/env python3
import os, subprocess
print(os.getuid(), subprocess.run(["/bin/sh", "-c", "/usr/bin/git version; :"]).returncode)
"""


def test_shims_over_the_real_paths_are_met_by_their_full_names(playhead):
    script = playhead.file(
        "agent.sh", "#!/bin/sh\n/bin/sh -c '/usr/bin/git version; exit 4'\necho $?\n"
    )
    then = playhead("record", "--shim-mounts", "--", script)
    assert then.stdout.endswith("4\n"), then.stderr
    shell, git = playhead.calls()
    assert (shell.request["argv"][0], git.request["argv"][0]) == ("/bin/sh", "/usr/bin/git")
    assert git.event.absolute(git.event.parent) == shell.ref
    now = playhead("replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


def test_a_python_behind_mounted_shims_replays_with_its_stand_ins(playhead):
    script = playhead.file("agent.py", MOUNTED)
    then = playhead("record", "--shim-mounts", "--", sys.executable, script)
    assert then.stdout.split()[-2:] == [str(os.getuid()), "0"], then.stderr
    now = playhead("replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


PYTHON = """
import os, shutil, subprocess
print(shutil.which("git"), os.environ["PATH"], os.environ.get("SHELL"), "PLAYHEAD_SHIMS" in os.environ)
print(subprocess.run(["git", "version"], capture_output=True, text=True).stdout)
subprocess.run(["sh", "-c", "git version; :"])
"""


def test_a_python_in_the_run_tapes_its_own_and_does_not_see_the_shims(playhead):
    script = playhead.file("agent.py", PYTHON)
    env = {"SHELL": "/bin/bash"}
    argv = [sys.executable, script]
    bare = subprocess.run(
        argv, env={**playhead.env, **env}, capture_output=True, text=True, check=True
    )
    then = playhead("record", "--shim", "git", "--", *argv, **env)
    assert then.stdout == bare.stdout
    outer = [(call.name, call.event.data["via"]) for call in playhead.calls()]
    assert outer == [
        ("git version", "subprocess"),
        ("git version", "subprocess"),
        ("git version", "shim"),
    ]
    _, shell, inner = playhead.calls()
    assert inner.event.absolute(inner.event.parent) == shell.ref
    now = playhead("replay", "last", **env)
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


@pytest.mark.parametrize(
    ("options", "config", "calls"),
    [
        ((), "", 1),
        (("--no-shims",), "", 0),
        ((), "shims = false", 0),
        ((), 'shims = ["sh"]', 0),
        (("--shim", "git"), 'shims = ["sh"]', 1),
    ],
)
def test_which_programs_have_shims_is_the_users_to_say(playhead, options, config, calls):
    (playhead.work / "playhead.toml").write_text(config)
    done = playhead("record", *options, "--", playhead.file("agent.sh", "#!/bin/sh\ngit version\n"))
    assert done.returncode == 0, done.stderr
    assert len(playhead.calls()) == calls


def test_a_shim_for_nothing_is_a_mistake(playhead):
    done = playhead("record", "--shim", "no-such-program", "--", "true")
    assert done.returncode == 2
    assert "not found on PATH" in done.stderr
