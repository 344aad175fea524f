"""Tests that run agents: recorded when told, replayed by default, failing closed."""

import json
import re
import shutil
import socket
import subprocess

import pytest

from playhead.errors import NoFence
from playhead.replay.fence import barrier
from playhead.replay.fence.inside import FenceNeeds
from playhead.testing import ScriptedLLM

pytest_plugins = ["pytester"]

AGENT = """
import json, os, urllib.request
import playhead
import pytest

@playhead.tool
def lookup(order):
    return {"order": order, "status": "shipped"}

def ask(question):
    messages = [{"role": "user", "content": question}]
    while True:
        body = json.dumps({"model": "claude-haiku-4-5", "max_tokens": 99, "messages": messages}).encode()
        request = urllib.request.Request(
            os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body, {"content-type": "application/json"}
        )
        answer = json.load(urllib.request.urlopen(request))
        messages.append({"role": "assistant", "content": answer["content"]})
        uses = [part for part in answer["content"] if part["type"] == "tool_use"]
        if not uses:
            return answer["content"][0]["text"]
        messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": use["id"], "content": json.dumps(lookup(**use["input"]))}
            for use in uses]})
"""

TEST = """
@pytest.mark.playhead("refund")
def test_agent(playhead_run):
    assert ask("Where is A-17?") == "It shipped."
    playhead_run.assert_tools("lookup")
    playhead_run.assert_no_tool("send_mail")
    assert playhead_run.steps == 2
    assert playhead_run.tokens > 0
    assert playhead_run.cost_usd < 1
"""

SCRIPT = [
    {"text": "Let me look.", "tool_calls": [{"name": "lookup", "arguments": {"order": "A-17"}}]},
    {"text": "It shipped."},
]


@pytest.fixture
def llm(monkeypatch):
    with ScriptedLLM(SCRIPT) as llm:
        for name, value in llm.environ().items():
            monkeypatch.setenv(name, value)
        yield llm


@pytest.fixture(autouse=True)
def _plain_pytest(monkeypatch):
    """Only the plugins that a test names: others cost seconds a start here."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def run(pytester, *args):
    # Another process: the hooks of the inner tests must not meet those of this one.
    return pytester.runpytest_subprocess(
        "-p", "playhead.pytest_plugin", "-p", "no:cacheprovider", *args
    )


def test_a_test_without_a_tape_fails_and_says_how_to_record_it(pytester, llm):
    pytester.makepyfile(AGENT + TEST)
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*refund.tape.jsonl does not exist. Record it: pytest --playhead=record*"]
    )
    assert llm.requests == []


def test_a_recorded_test_passes_with_the_server_gone(pytester, llm):
    pytester.makepyfile(AGENT + TEST)
    run(pytester, "--playhead=record").assert_outcomes(passed=1)
    assert (pytester.path / "tapes" / "refund.tape.jsonl").exists()
    llm.stop()
    run(pytester).assert_outcomes(passed=1)


def test_record_leaves_a_tape_that_is_there_alone_and_refresh_does_not(pytester, llm, monkeypatch):
    pytester.makepyfile(AGENT + TEST)
    run(pytester, "--playhead=record").assert_outcomes(passed=1)
    tape = pytester.path / "tapes" / "refund.tape.jsonl"
    before = tape.read_bytes()
    run(pytester, "--playhead=record").assert_outcomes(passed=1)
    assert tape.read_bytes() == before
    with ScriptedLLM(SCRIPT) as other:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", other.url)
        run(pytester, "--playhead=refresh").assert_outcomes(passed=1)
    assert tape.read_bytes() != before


def test_a_divergence_is_shown_as_a_diff(pytester, llm):
    pytester.makepyfile(AGENT + TEST)
    run(pytester, "--playhead=record").assert_outcomes(passed=1)
    pytester.makepyfile(AGENT + TEST.replace("Where is A-17?", "Where is B-1?"))
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*- 'Where is A-17[?]'*", "*+ 'Where is B-1[?]'*", "*pytest --playhead=refresh test_*::*"]
    )
    # Once, and without options that only `playhead replay` has.
    result.stdout.no_fnmatch_line("*another exception occurred*")
    result.stdout.no_fnmatch_line("*--live*")


def test_a_call_that_is_no_longer_made_fails_the_test(pytester, llm):
    pytester.makepyfile(AGENT + TEST)
    run(pytester, "--playhead=record").assert_outcomes(passed=1)
    pytester.makepyfile(AGENT + '@pytest.mark.playhead("refund")\ndef test_agent():\n    pass\n')
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*was never made*"])


def test_a_test_that_fails_while_it_is_recorded_leaves_no_tape(pytester, llm):
    pytester.makepyfile(AGENT + TEST.replace("It shipped.", "Something else."))
    run(pytester, "--playhead=record").assert_outcomes(failed=1)
    assert not (pytester.path / "tapes" / "refund.tape.jsonl").exists()


def test_off_leaves_the_world_alone(pytester, llm):
    pytester.makepyfile(
        AGENT + '@pytest.mark.playhead("refund")\ndef test_agent():\n    ask("x")\n'
    )
    run(pytester, "--playhead=off").assert_outcomes(passed=1)
    assert len(llm.requests) == 2


def test_async_tests_and_parallel_workers_replay_as_well(pytester, llm):
    test = """
import asyncio
@pytest.mark.asyncio
@pytest.mark.playhead("refund")
async def test_agent(playhead_run):
    assert await asyncio.to_thread(ask, "Where is A-17?") == "It shipped."
"""
    pytester.makepyfile(AGENT + test)
    asynchronous = (
        "-p",
        "pytest_asyncio.plugin",
        "-o",
        "asyncio_default_fixture_loop_scope=function",
    )
    run(pytester, "--playhead=record", *asynchronous).assert_outcomes(passed=1)
    llm.stop()
    run(pytester, "-p", "xdist.plugin", "-n", "2", *asynchronous).assert_outcomes(passed=1)


def test_no_secret_is_in_a_tape_that_git_will_hold(pytester, llm):
    pytester.makepyfile(AGENT + TEST)
    run(pytester, "--playhead=record").assert_outcomes(passed=1)
    text = (pytester.path / "tapes" / "refund.tape.jsonl").read_text()
    assert llm.environ()["ANTHROPIC_API_KEY"] not in text
    assert all(isinstance(json.loads(line), dict) for line in text.splitlines())


STATIC_CLIENT = """
#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct sockaddr_in to = {AF_INET, htons(atoi(argv[1])), {htonl(INADDR_LOOPBACK)}, {0}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return connect(fd, (struct sockaddr *)&to, sizeof to) ? 7 : write(fd, "hello", 5) != 5;
}
"""

# Everything here goes past Playhead's hooks: nothing in Python's audit events, no call on the tape.
PAST_HOOKS = """
import ctypes, os, struct, unittest, warnings
import pytest

libc = ctypes.CDLL(None)

def connected():
    port = struct.pack(">H", int(os.environ["PORT"]))
    to = struct.pack("=H2sI8x", 2, port, 0x0100007F)
    return libc.connect(libc.socket(2, 1, 0), to, 16) == 0

@pytest.fixture(scope="module")
def wide():
    made = []
    yield made
    libc.system(b"echo wide >> torn-down.log")

@pytest.fixture
def client():
    return connected()

@pytest.mark.playhead
def test_sends(client, wide, capsys, request):
    wide.append(1)
    ran = [libc.system(f"$CLIENT $PORT {n}; test $? = 0".encode()) == 0 for n in range(2)]
    libc.system(b"echo line >> written.log")
    assert capsys.readouterr().out == ""
    warnings.warn("an old thing", DeprecationWarning)
    if os.environ["EXPECTED"] == "sent":
        assert client and all(ran)
    else:
        assert not client and not any(ran)

@pytest.mark.playhead
def test_with_a_temporary_folder(tmp_path, wide):
    (tmp_path / "kept").write_text("x")
    assert os.environ["EXPECTED"] == "sent" or wide == []

def test_plain(wide):
    assert wide == ([1] if os.environ["EXPECTED"] == "sent" else [])

@pytest.mark.playhead
def test_skipped():
    pytest.skip("not today")
"""

ONLY_IN_REPLAYS = """
@pytest.mark.playhead("test_sends")
def test_fails_with_output():
    print("printed by the test")
    assert [1, 2] == [1, 3]

@pytest.mark.playhead("test_sends")
@pytest.mark.xfail(raises=ZeroDivisionError, strict=True)
def test_expected_failure():
    1 / 0

class TestWithSubtests(unittest.TestCase):
    @pytest.mark.playhead("test_sends")
    def test_parts(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertNotEqual(number, 1)

@pytest.mark.playhead("test_sends")
def test_crashes():
    os._exit(9)

@pytest.mark.playhead("test_sends", fenced=False)
def test_in_this_process(client):
    pass
"""


@pytest.fixture
def sent(monkeypatch, tmp_path):
    """A listener whose port PORT names, and the path of a static client in CLIENT. Counts connections."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source, program = tmp_path / "client.c", tmp_path / "client"
    source.write_text(STATIC_CLIENT)
    subprocess.run([compiler, "-static", str(source), "-o", str(program)], check=True)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        listening.setblocking(False)
        monkeypatch.setenv("PORT", str(listening.getsockname()[1]))
        monkeypatch.setenv("CLIENT", str(program))

        def count():
            found = 0
            while True:
                try:
                    listening.accept()[0].close()
                except BlockingIOError:
                    return found
                found += 1

        yield count


def has_namespaces():
    try:
        barrier.build(FenceNeeds(own=()), ["namespaces"]).abandon()
    except NoFence:
        return False
    return True


@pytest.mark.skipif(not has_namespaces(), reason="needs namespaces")
def test_a_replayed_test_sends_nothing_past_the_hooks_and_its_report_is_that_of_a_plain_test(
    pytester, sent, monkeypatch
):
    pytester.makepyfile(PAST_HOOKS)
    monkeypatch.setenv("EXPECTED", "sent")
    recorded = run(pytester, "--playhead=record")
    recorded.assert_outcomes(passed=3, skipped=1, warnings=1)
    assert sent() == 3

    monkeypatch.setenv("EXPECTED", "nothing")
    replayed = run(pytester, "--junitxml=out.xml")
    replayed.assert_outcomes(passed=3, skipped=1, warnings=1)
    replayed.stdout.no_fnmatch_line("*unfenced*")
    assert sent() == 0
    assert (pytester.path / "written.log").read_text() == "line\n"
    # Once a run: the child has a copy of the module's fixture and does not tear it down.
    assert (pytester.path / "torn-down.log").read_text() == "wide\n" * 2
    assert list(pytester.path.glob("runpytest-1/*temporary*/kept"))
    told = (pytester.path / "out.xml").read_text()
    assert '<property name="playhead_fence" value="fenced"' in told
    # By the real clock: teardown begins in taped time and ends outside it.
    seconds = [float(one) for one in re.findall(r'<testcase [^>]*time="([^"]+)"', told)]
    assert len(seconds) == 4
    assert all(0 <= one < 60 for one in seconds)

    pytester.makepyfile(PAST_HOOKS.partition("@pytest.mark.playhead")[0] + ONLY_IN_REPLAYS)
    failing = run(pytester)
    # One of the failures is a subtest: pytest counts its test as passed.
    failing.assert_outcomes(passed=2, failed=3, xfailed=1)
    failing.stdout.fnmatch_lines(
        [
            "*assert [[]1, 2[]] == [[]1, 3[]]*",
            "*printed by the test*",
            "*The test ended its process: *exit code 9*",
            "*playhead: 1 test replayed unfenced (switched off)*",
        ]
    )
    assert sent() == 1  # a test that is not fenced: hooks did not see its connection

    required = run(pytester, "-o", "playhead_fence=required", "-k", "in_this_process")
    required.assert_outcomes(errors=1)
    assert sent() == 0
