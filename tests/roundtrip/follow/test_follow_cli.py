"""Whatever a command starts is one process call on the tape, by whatever path and in whatever language, and
`playhead replay` serves it: no program runs, no request is sent.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests import warm_start

from playhead import clock
from playhead.launch.follow import tracer
from playhead.replay.matching.taped import TapedCall, load
from playhead.tape.reader import Tape
from playhead.testing import ScriptedLLM

PLAYHEAD = [sys.executable, "-m", "playhead"]


@pytest.fixture(autouse=True)
def can_follow():
    if why := tracer.why_not(os.environ):
        pytest.skip(f"needs a tracer, and {why}")


@pytest.fixture
def server():
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.path)
            self.send_response(200)
            self.send_header("content-length", "3")
            self.end_headers()
            self.wfile.write(b"ok\n")

        do_GET = do_POST  # noqa: N815  the name is the library's

        def log_message(self, *args: object) -> None:
            """Quietly."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made.server_address[1], seen
        made.shutdown()


class Playing:
    """`playhead …` in a folder and a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("PLAYHEAD_")}

    def __call__(self, verb: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        argv = [*PLAYHEAD, verb, "--store", str(self.store), *words]
        return self.run(argv, **env)

    def run(self, argv: list[str], **env: str) -> subprocess.CompletedProcess[str]:
        return warm_start.run(
            argv, cwd=self.folder, env={**self.env, **env}, capture_output=True, text=True,
            check=False, timeout=100,
        )  # fmt: skip

    def calls(self) -> list[TapedCall]:
        """Of the first run."""
        return load(Tape(min((self.store / "runs").iterdir()))).calls

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return f"./{name}"

    def compiled(self, name: str, source: str) -> str:
        code = self.folder / f"{name}.c"
        code.write_text(source)
        for options in (["-static"], []):
            argv = ["cc", "-w", *options, "-o", str(self.folder / name), str(code)]
            if subprocess.run(argv, check=False, capture_output=True).returncode == 0:
                return f"./{name}"
        return pytest.skip("needs a C compiler")


@pytest.fixture
def playhead(tmp_path: Path) -> Playing:
    return Playing(tmp_path)


# Writes a number into a file of its own, so that the test sees how often it ran.
COUNTED = "#!/bin/sh\necho ran >> {folder}/ran.log; date +%N; exit ${{1:-0}}\n"
STARTS = r"""
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void wait_for(const char *how, pid_t pid) {
    int status;
    waitpid(pid, &status, 0);
    printf("%s %d\n", how, WEXITSTATUS(status));
    fflush(stdout);
}

int main(int argc, char **argv) {
    char *words[] = {argv[1], "3", NULL}, *shell[] = {"sh", "-c", "./counted 4; exit 5", NULL};
    pid_t pid = fork();
    if (!pid)
        execve(argv[1], words, environ);
    wait_for("fork", pid);
    if (!(pid = vfork())) {
        execv(argv[1], words);
        _exit(99);
    }
    wait_for("vfork", pid);
    posix_spawn(&pid, argv[1], NULL, NULL, words, environ);
    wait_for("spawn", pid);
    if (!(pid = fork()))
        execv("/bin/sh", shell);
    wait_for("shell", pid);
    printf("system %d\n", WEXITSTATUS(system("./counted 6")));
    return 2;
}
"""


def test_a_static_program_is_followed_however_it_starts_others(playhead):
    counted = playhead.file("counted", COUNTED.format(folder=playhead.folder))
    program = playhead.compiled("starts", STARTS)
    then = playhead("record", "--no-workspace", "--", program, counted)
    assert then.returncode == 2, then.stderr
    assert [line for line in then.stdout.splitlines() if " " in line] == [
        *("fork 3", "vfork 3", "spawn 3", "shell 5", "system 6"),
    ]
    calls = playhead.calls()
    assert [call.outcome.data["value"] for call in calls] == [3, 3, 3, 5, 6]
    assert calls[0].request["argv"] == [counted, "3"]
    ran = (playhead.folder / "ran.log").read_text()
    for _ in range(3):
        now = playhead("replay", "last")
        assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr
        assert "identical" in now.stderr
    assert (playhead.folder / "ran.log").read_text() == ran


EXAMPLE = """#!/bin/bash
{node} -e 'fetch(process.env.SERVER + "/from-node", {{method: "POST"}}).then((r) => r.text()).then(console.log)'
echo deploy >> deployed.log
/usr/bin/curl -s -X POST "$SERVER/from-curl"
(perl -e 'print rand(), "\\n"') | cat
x=$(/bin/sh -c 'date +%N; exit 3'); echo "$x $?"
"""


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_the_programs_of_a_script_are_served_and_its_own_writes_stay_in_the_fence(playhead, server):
    port, seen = server
    script = playhead.file("agent.sh", EXAMPLE.format(node=shutil.which("node")))
    then = playhead("record", "--", script, SERVER=f"http://127.0.0.1:{port}")
    assert then.returncode == 0, then.stderr
    assert "partial" not in then.stderr
    assert seen == ["/from-node", "/from-curl"]
    for _ in range(3):
        now = playhead("replay", "last")
        assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr
    assert len(seen) == 2
    assert (playhead.folder / "deployed.log").read_text() == "deploy\n"


CLEARED = """
env -i /usr/bin/curl -s -d x http://127.0.0.1:{port}/bare
env -i PATH="$PATH" sh -c 'curl -s -d x http://127.0.0.1:{port}/in-shell | cat'
env -u PLAYHEAD_PARENT curl -s -d x http://127.0.0.1:{port}/unset
"""


@pytest.mark.skipif(not os.path.exists("/usr/bin/curl"), reason="needs curl")
def test_a_program_without_its_environment_belongs_to_its_call(playhead, server):
    port, seen = server
    script = playhead.file("agent.sh", "#!/bin/bash" + CLEARED.format(port=port))
    then = playhead("record", "--", script)
    assert then.returncode == 0, then.stderr
    assert "partial" not in then.stderr
    now = playhead("replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr
    assert seen == ["/bare", "/in-shell", "/unset"]


def test_a_program_reads_a_named_pipe_to_its_end_after_the_writers_have_left(playhead):
    script = "mkfifo up; seq 3 > up & exec 3< up; wait; cat <&3; echo done"
    then = playhead("record", "--", "bash", "-c", script)
    assert (then.returncode, then.stdout) == (0, "1\n2\n3\ndone\n"), then.stderr


UNCHANGED = r"""#!/bin/bash
bash -c 'exit 7'; echo "code $?"
for signal in KILL TERM SEGV; do bash -c "kill -$signal \$\$" 2>/dev/null; echo "$signal $?"; done
/nonexistent/x 2>/dev/null; echo "code $?"
no-such-program 2>/dev/null; echo "code $?"
/etc/passwd 2>/dev/null; echo "code $?"
mkfifo up
sh -c 'trap "echo got term; exit 4" TERM; echo > up; while :; do sleep 0.1; done' & p=$!
read x < up; kill $p; wait $p; echo "code $?"
set -m
sleep 100 & p=$!
[ "$(cut -d' ' -f5 /proc/$p/stat)" = $p ] && echo its own group
kill -STOP $p; until grep -q 'State:.T' /proc/$p/status; do :; done; jobs | grep -o Stopped
kill -CONT $p; until grep -q 'State:.S' /proc/$p/status; do :; done; jobs | grep -o Running
kill -TERM -- -$p; wait $p 2>/dev/null; echo "code $?"
timeout 0.2 sleep 5; echo "timeout $?"
yes | head -1; echo "${PIPESTATUS[@]}"
setsid -w sh -c 'echo in a session of its own'
env -i /usr/bin/env | wc -l
(ulimit -n 64; sh -c 'ulimit -n')
exec -a other bash -c 'echo "called $0"'
"""


def test_a_recorded_program_ends_stops_and_is_signalled_as_without_us(playhead):
    script = playhead.file("agent.sh", UNCHANGED)
    bare = playhead.run([script])
    (playhead.folder / "up").unlink()
    then = playhead("record", "--", script)
    assert then.stdout == bare.stdout
    assert "its own group\nStopped\nRunning\ncode 143\ntimeout 124\ny\n141 0\n" in then.stdout


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_a_debugger_works_inside_a_followed_command(playhead):
    script = playhead.file("agent.sh", "#!/bin/sh\nstrace -f -o trace.log true; echo $?\n")
    assert playhead("record", "--", script).stdout == "0\n"
    assert "execve" in (playhead.folder / "trace.log").read_text()


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_a_command_that_traces_is_not_followed_and_the_tape_says_so(playhead):
    then = playhead("record", "--", "strace", "-f", "-o", "trace.log", "sh", "-c", "true; exit 3")
    assert then.returncode == 3
    assert "1 hole" in then.stderr


def test_a_python_of_a_script_is_hooked_and_one_that_cannot_be_is_a_call(playhead):
    python = sys.executable
    words = "import os; print(os.environ.get('PYTHONPATH'), os.urandom(4).hex())"
    script = f'#!/bin/sh\n{python} -c "{words}"\n{python} -I -S -c "{words}"\n'
    then = playhead("record", "--", playhead.file("agent.sh", script))
    (call,) = playhead.calls()
    assert call.request["argv"][1:3] == ["-I", "-S"]
    now = playhead("replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


@pytest.mark.parametrize(
    "before",
    [["timeout", "60"], ["env", "X=1"], ["nice"], ["make", "-s", "-f", "rules"], ["sh", "run.sh"]],
    ids=lambda words: words[0],
)
def test_what_a_wrapper_starts_is_recorded_as_if_it_had_been_named(playhead, before):
    playhead.file("rules", f"agent:\n\t{sys.executable} agent.py\n")
    playhead.file("run.sh", f"exec {sys.executable} agent.py\n")
    playhead.file("agent.py", "import subprocess\nsubprocess.run(['sh', '-c', 'date +%N'])\n")
    is_script = before[0] in ("make", "sh")
    command = [*before, *([] if is_script else [sys.executable, "agent.py"])]
    then = playhead("record", "--", *command)
    assert then.returncode == 0, then.stderr
    assert [(call.name, call.event.data["via"]) for call in playhead.calls()] == [
        ("date", "subprocess")
    ]
    now = playhead("replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


TELLS = """
import os, subprocess, sys
print(sys.argv[1], os.urandom(4).hex(), flush=True)
print(subprocess.run(["bash", "-c", "echo $RANDOM"], capture_output=True, text=True).stdout, end="")
"""
# The shell itself computes, because a replay would serve `sleep` at once.
IN_PARALLEL = """
later() {{ test "$1" != "$2" || for ((i = 0; i < 200000; i++)); do :; done; }}
timeout 60 {python} tells.py again; timeout 60 {python} tells.py again
(later "$FIRST" two; exec {python} tells.py one > one.txt) &
(later "$FIRST" one; exec {python} tells.py two > two.txt) &
wait
cat one.txt two.txt
:
"""


def test_pythons_of_a_script_get_their_own_answers_in_whichever_order_they_start(playhead):
    playhead.file("tells.py", TELLS)
    playhead.file("run.sh", IN_PARALLEL.format(python=sys.executable))
    then = playhead("record", "--", "bash", "run.sh", FIRST="one")
    assert len(set(then.stdout.splitlines())) == 8, then.stderr
    for first in ("one", "two"):
        now = playhead("replay", "last", FIRST=first)
        assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


# A replay does not wait for `time.sleep`, so without the order of the tape the first process would print first.
TAKES_TURNS = """
import sys, time
for turn in range(2):
    time.sleep(float(sys.argv[2]))
    print("line", turn, "of", sys.argv[1])
    sys.stdout.flush()
"""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_pythons_of_a_script_print_in_the_order_of_the_tape(playhead, unbuffered):
    playhead.file("turns.py", TAKES_TURNS)
    python = sys.executable
    playhead.file("run.sh", f"{python} turns.py late 0.4 & {python} turns.py early 0 & wait\n")
    then = playhead("record", "--", "bash", "run.sh", PYTHONUNBUFFERED=unbuffered)
    for _ in range(2):
        now = playhead("replay", "last", PYTHONUNBUFFERED=unbuffered)
        assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


def test_programs_that_are_gone_are_served_all_the_same(playhead):
    tools = playhead.folder / "tools"
    tools.mkdir()
    (tools / "publish").write_text("#!/bin/sh\ndate +%N\n")
    (tools / "publish").chmod(0o755)
    script = playhead.file("agent.sh", "#!/bin/sh\npublish it\n")
    then = playhead("record", "--", script, PATH=f"{tools}:{os.environ['PATH']}")
    shutil.rmtree(tools)
    now = playhead("replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


def test_a_script_reads_what_its_program_wrote_outside_the_workspace(playhead, tmp_path_factory):
    file = tmp_path_factory.mktemp("elsewhere") / "cwd.txt"
    playhead.file("run.sh", f"#!/bin/bash\nsh -c 'date +%N > {file}'\nread n < {file}\necho $n\n")
    then = playhead("record", "--quiet", "--", "./run.sh")
    assert then.stdout.strip().isdigit(), then.stderr
    file.write_text("other")
    now = playhead("replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr
    assert file.read_text() == "other"
    playhead("replay", "last", "--unfenced")  # this one may not write it at all
    assert file.read_text() == "other"


def test_where_nothing_can_be_followed_shims_are_used_and_the_tape_says_so(playhead):
    script = playhead.file("agent.sh", "#!/bin/sh\ngit version\n/usr/bin/env true\n")
    then = playhead("record", "--", script, PLAYHEAD_FOLLOW="0")
    assert [call.name for call in playhead.calls()] == ["git version"]
    assert "1 hole" in then.stderr


# Asks a model without starting any program.
CLAUDE = r"""#!/bin/bash
url=${ANTHROPIC_BASE_URL#http://}; host=${url%%/*}; path=${url#"$host"}
body='{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"?"}]}'
exec 3<>/dev/tcp/${host%:*}/${host#*:}
printf 'POST %s/v1/messages HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n' "$path" "$host" >&3
printf 'Content-Length: %d\r\nConnection: close\r\n\r\n%s' ${#body} "$body" >&3
while IFS= read -r line <&3; do [[ $line == *text* ]] && echo "$line"; done
[[ $line == *text* ]] && echo "$line"
exit 0
"""


@pytest.mark.parametrize(
    "wrapper",
    [
        "export ANTHROPIC_BASE_URL={url}\n./claude\n",
        "export ANTHROPIC_BASE_URL={url}\nexec ./claude\n",
        "env ANTHROPIC_BASE_URL={url} ./claude; true\n",
        "ANTHROPIC_BASE_URL={url} timeout 60 nice ./claude; true\n",
        "(export ANTHROPIC_BASE_URL={url}; ./claude | cat)\n",
    ],
)
def test_a_base_url_that_a_wrapper_sets_is_led_through_the_proxy(playhead, wrapper):
    playhead.file("claude", CLAUDE)
    with ScriptedLLM([{"text": "Here I am."}]) as llm:
        playhead.file("run.sh", wrapper.format(url=llm.url))
        then = playhead("record", "--", "bash", "run.sh")
    assert "Here I am." in then.stdout, then.stderr
    assert "partial" not in then.stderr
    (llm_call,) = [call for call in playhead.calls() if call.boundary == "llm"]
    assert str(llm_call.event.parent).endswith(":0")  # not inside a process call
    now = playhead("replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


def test_nothing_stays_behind_when_a_command_has_ended(playhead):
    playhead("record", "--", playhead.file("agent.sh", "#!/bin/sh\nsh -c 'echo in; sleep 0.1 &'\n"))
    mark = os.fsencode(str(playhead.store))

    def left() -> list[str]:
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if mark in Path(f"/proc/{pid}/environ").read_bytes():
                    found.append(Path(f"/proc/{pid}/cmdline").read_bytes().decode())
        return found

    deadline = clock.mono_ns() + 20_000_000_000
    while (now := left()) and clock.mono_ns() < deadline:
        os.sched_yield()
    assert now == []


def test_live_models_are_asked_through_the_proxy_and_nothing_else_has_a_network(playhead, server):
    port, seen = server
    playhead.file("claude", CLAUDE)
    with ScriptedLLM([{"text": "Here I am."}, {"text": "Again."}]) as llm:
        start = f"export ANTHROPIC_BASE_URL={llm.url}\n./claude\n"
        playhead.file("run.sh", start)
        playhead("record", "--", "bash", "run.sh")
        sends = f"{start}exec 3<>/dev/tcp/127.0.0.1/{port}; echo GET / HTTP/1.0 >&3; echo >&3; read x <&3"
        report = str(playhead.folder / "report.json")
        now = playhead(
            "replay", "last", "--live", "llm", "--report", report, "--", "bash", "-c", sends
        )
    assert "Again." in now.stdout, now.stderr
    assert "Connection refused" in now.stderr
    assert seen == []
    assert not json.loads(Path(report).read_text())["fence"]["network_open"]


TIMERS = """#!/bin/bash
read count < {count}
for ((n = 0; n < count; n++)); do uname -s > /dev/null; done
echo done
"""


@pytest.mark.parametrize(("name", "code"), [("claude", 0), ("run.sh", 3)])
@pytest.mark.parametrize("again", [1, 3])
def test_an_agent_may_run_a_program_for_itself_more_or_less_often_and_a_script_may_not(
    playhead, tmp_path_factory, name, code, again
):
    count = tmp_path_factory.mktemp("outside") / "count"
    count.write_text("2\n")
    agent = playhead.file(name, TIMERS.format(count=count))
    then = playhead("record", "--", agent)
    assert then.returncode == 0, then.stderr
    count.write_text(f"{again}\n")
    now = playhead("replay", "last")
    assert now.returncode == code, now.stderr


# A program that starts others on terminals of their own, as Qwen Code and Codex do; `-S` keeps hooks out of it.
ON_TERMINALS = """
import os, pty, sys

def show(*argv):
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)
    shown = b""
    while True:
        try:
            piece = os.read(fd, 4096)
        except OSError:
            break
        shown += piece
    print(shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)

show("./counted.sh", "3")
show("sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo three; echo error >&2; date +%N > now.txt")
show("sh", "-c", "seq 1 20000 | tail -n 3; cat now.txt")
"""


def test_what_a_program_shows_on_a_terminal_of_its_own_is_recorded_and_shown_again(playhead):
    playhead.file("counted.sh", COUNTED.format(folder=playhead.folder))
    playhead.file("terminals.py", ON_TERMINALS)
    then = playhead("record", "--", sys.executable, "-S", "terminals.py")
    assert "three\\r\\nerror\\r\\n' 0" in then.stdout, then.stdout + then.stderr
    now = playhead("replay", "last")
    assert now.returncode == 0, now.stderr
    assert now.stdout == then.stdout
    assert (playhead.folder / "ran.log").read_text() == "ran\n"


def test_programs_that_an_agent_runs_for_itself_may_differ_and_are_not_run(
    playhead, tmp_path_factory
):
    elsewhere = tmp_path_factory.mktemp("elsewhere")  # not among the files that a replay restores
    playhead.file("counted.sh", COUNTED.format(folder=playhead.folder).replace("date", "cat; date"))
    looks = f"echo {elsewhere}/* | ./counted.sh > /dev/null\n"
    looks += f"test ! -e {elsewhere}/more || ./counted.sh 7 > /dev/null 2>&1\n"
    agent = playhead.file("claude", f"#!/bin/sh\n{looks}echo done\n")
    then = playhead("record", "--", agent)
    assert then.stdout == "done\n", then.stderr
    (elsewhere / "more").touch()
    now = playhead("replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr
    assert (playhead.folder / "ran.log").read_text() == "ran\n"


def test_files_that_an_agent_writes_beside_a_filter_are_its_own(playhead):
    # The name of an agent: it is executed in a replay, too.
    agent = playhead.file(
        "claude",
        "#!/bin/bash\necho one > a.txt\nsed -i s/one/uno/ a.txt\nread line < a.txt; echo $line\n"
        "echo eins > a.txt\ntouch done.txt\n",
    )
    then = playhead("record", "--", "bash", "-c", f"{agent} | tee log.txt")
    assert then.stdout == "uno\n", then.stderr
    for name in ("a.txt", "log.txt", "done.txt"):
        (playhead.folder / name).unlink()
    now = playhead("replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr
    # How many of the short-lived states of a.txt the recording catches is not promised.
    assert "files: identical (3 changed by the run" in now.stderr
