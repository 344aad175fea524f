"""What a program printed, then and now: to the byte, or as far as its clock is its own."""

import dataclasses
import json

import pytest

from playhead import config, events
from playhead.launch import record_run as recording
from playhead.launch.opening import Wish
from playhead.recording import deck
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.deck import Call
from playhead.recording.encoder import NewEvent
from playhead.replay.matching.taped import TapedRun, load
from playhead.replay.report import printed_output as outputs
from playhead.tape.reader import Tape


@pytest.fixture
def printed(tmp_path):
    """A run that printed this, by a program that came by the proxy, or by a hooked one."""

    def make(stdout: str, stderr: str = "", library: str = "proxy") -> TapedRun:
        run = recording.open_run(Wish(store=tmp_path), config.load(), '"test"')
        call = Call(boundary="llm", name="model", facts={"library": library})
        deck.declared().perform(call, FunctionAdapter(lambda: None))
        for stream, text in (("stdout", stdout), ("stderr", stderr)):
            run.recorder.append(NewEvent(events.OUTPUT, {"stream": stream, "text": text}))
        recording.finish(run, None)
        return load(Tape(run.path))

    return make


def line(session: str, took: int, **more: object) -> str:
    return json.dumps({"session_id": session, "duration_ms": took, **more}) + "\n"


ONE, OTHER = "3f2b8c1e-9a4d-4e2f-8b7a-1c2d3e4f5a6b", "00000000-9a4d-4e2f-8b7a-1c2d3e4f5a6b"


def test_ids_times_and_racing_lines_of_a_native_program_do_not_count(printed):
    then = printed(line(ONE, 5, result="a") + line(ONE, 5, result="b"))
    now = printed(
        line(OTHER, 900, result="b")
        + line(OTHER, 1, type="tool_progress")
        + line(OTHER, 7, result="a")
    )
    assert outputs.difference(then, now) is None
    assert "own clock" in outputs.remarks(then, now)[0]


def test_ids_in_a_form_of_the_program_s_own_do_not_count_but_their_pairing_does(printed):
    def told(task: str, run: str, other: str) -> str:
        tasks = [{"task_id": task, "run_id": run}, {"task_id": task, "run_id": other}]
        return json.dumps({"type": "system", "tasks": tasks}) + "\n"

    then = printed(told("b7b7hxhcn1", "0mwiu3cyp-01cb4ba6", "0mwiu3cyp-01cb4ba6"))
    same = printed(told("bgqmqk2p31", "0mwiuqffy-720fd7e0", "0mwiuqffy-720fd7e0"))
    other = printed(told("bgqmqk2p31", "0mwiuqffy-720fd7e0", "0mwiuaaaa-720fd7e1"))
    assert outputs.difference(then, same) is None
    assert outputs.difference(then, other) is not None


def test_a_tool_that_is_announced_because_it_is_slow_does_not_count(printed):
    def task(kind: str, **more: object) -> str:
        return line(ONE, 5, type="system", subtype=kind, task_id="b7b7hxhcn", **more)

    slow = task("task_started", is_backgrounded=False) + task("task_notification", status="done")
    agent = task("task_started", is_backgrounded=True) + task("task_notification", status="done")
    plain = line(ONE, 5, result="a")
    assert outputs.difference(printed(plain), printed(slow + plain)) is None
    assert outputs.difference(printed(plain), printed(agent + plain)) is not None


def test_another_result_does_count(printed):
    told = outputs.difference(
        printed(line(ONE, 5, result="a")), printed(line(OTHER, 5, result="b"))
    )
    assert told.startswith("stdout line 1: ")


def test_stderr_of_a_native_program_is_told_and_not_judged(printed):
    then, now = printed("same\n", "Attempt 1 failed\n"), printed("same\n", "ready\n")
    assert outputs.difference(then, now) is None
    assert outputs.remarks(then, now) == [
        "Not part of the verdict: stderr line 1: 'Attempt 1 failed' → 'ready'."
    ]


def test_a_hooked_program_prints_the_same_bytes(printed):
    then, now = printed(line(ONE, 5), library="httpx"), printed(line(OTHER, 5), library="httpx")
    assert outputs.difference(then, now) is not None
    assert outputs.remarks(then, now) == []


def joined(run: TapedRun) -> TapedRun:
    """The same run, as if its stderr had gone where its stdout went: `2>&1`."""
    facts = {"output": {"stdout": "piped", "stderr": "with stdout"}}
    return dataclasses.replace(run, run_start=dataclasses.replace(run.run_start, data=facts))


@pytest.mark.parametrize(
    ("together", "expected"),
    [
        ("one\noops <A at 0x7f90605a3c50>\ntwo\n", None),
        ("oops <A at 0x7f90605a3c50>\none\ntwo\n", None),
        ("two\noops <A at 0x7f90605a3c50>\none\n", "stdout: 'two' is at another place"),
        ("one\noops <A at 0x7f90605a3c50>\n", "output: 'two' is missing"),
        ("one\ntwo\noops <A at 0x7f90605a3c50>\nthree\n", "output: 'three' is new"),
    ],
)
def test_joined_streams_are_compared_with_separate_ones_in_the_order_of_each(
    printed, together, expected
):
    apart = printed("one\ntwo\n", "oops <A at 0x7f90605a3c50>\n", library="httpx")
    assert outputs.difference(apart, joined(printed(together, library="httpx"))) == expected


@pytest.mark.parametrize(
    ("together", "is_same"),
    [
        ("\r10 %one\n\r20 %two\n\n", True),
        ("one\n\r10 %\r20 %two\n\n", True),
        ("\r10 %one\n\r30 %two\n\n", False),
        ("\r20 %one\n\r10 %two\n\n", False),
        ("\r10 %one\n\r20 %two\n", False),
    ],
)
def test_a_line_of_joined_streams_may_hold_parts_of_both(printed, together, is_same):
    apart = printed("one\ntwo\n", "\r10 %\r20 %\n", library="httpx")
    found = outputs.difference(apart, joined(printed(together, library="httpx")))
    assert (found is None) is is_same
