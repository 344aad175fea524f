"""Tests that run agents: recorded when told, replayed by default, failing closed."""

import json

import pytest

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
        ["*- 'Where is A-17[?]'*", "*+ 'Where is B-1[?]'*", "*--playhead=refresh*"]
    )


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


def test_a_replayed_test_is_reported_as_unfenced(pytester, llm):
    pytester.makepyfile(AGENT + TEST)
    run(pytester, "--playhead=record").assert_outcomes(passed=1)
    done = run(pytester, "--junitxml=out.xml")
    done.stdout.fnmatch_lines(["*playhead: 1 test replayed unfenced*"])
    told = (pytester.path / "out.xml").read_text()
    assert '<property name="playhead_fence" value="unfenced"' in told
