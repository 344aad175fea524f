"""Answers to an agent that is not Python come in the order in which the recorded agent got them."""

import subprocess
import threading
from pathlib import Path

import pytest

from playhead import events
from playhead.event import Event
from playhead.replay.answer_order import AnswerOrder
from playhead.replay.matching.taped import TapedCall, TapedRun
from playhead.tape.reader import Tape

SECOND = 1_000_000_000


def call(number: int, start: float, end: float | None, **data: object) -> TapedCall:
    """A taped call from `start` to `end`, in seconds."""

    def event(kind: str, seq: int, at: float) -> Event:
        facts = {"library": "proxy", "request": {"url": "http://model"}, **data}
        return Event(seq=seq, kind=kind, wall=0, mono=int(at * SECOND), pid=1, data=facts)

    outcome = None if end is None else event(events.OUTCOME, 100 + number, end)
    return TapedCall(
        number=number, event=event(events.CALL, number, start), key=number, outcome=outcome
    )


@pytest.fixture
def order(tmp_path: Path):
    def make(*calls: TapedCall, **options: int) -> AnswerOrder:
        run = TapedRun(
            tape=Tape(tmp_path), calls=list(calls), below={}, segments={}, ambient=[], outputs=[]
        )
        return AnswerOrder(run, **options)

    return make


def test_an_answer_waits_for_the_answers_that_came_before_it(order):
    quick, slow = call(1, 0, 1), call(2, 0.5, 3)
    made = order(quick, slow)
    made.begin(quick.ref)
    made.begin(slow.ref)
    assert made.is_due(quick.ref, SECOND)
    assert not made.is_due(slow.ref, SECOND)  # it came at 1.5, after the end of the quick one
    waiting = threading.Thread(target=made.wait, args=(slow.ref, SECOND))
    waiting.start()
    made.end(quick.ref)
    waiting.join(10)
    assert not waiting.is_alive()


def test_an_answer_waits_for_calls_that_were_made_before_it(order):
    slow, later = call(1, 0, 3), call(2, 2, 4)
    made = order(slow, later)
    made.begin(slow.ref)
    assert made.is_due(slow.ref, SECOND)
    assert not made.is_due(slow.ref, 3 * SECOND)
    made.begin(later.ref)
    assert made.is_due(slow.ref, 3 * SECOND)


def test_calls_one_after_another_never_wait(order):
    calls = [call(n, n, n + 0.5) for n in range(1, 4)]
    made = order(*calls)
    for one in calls:
        made.begin(one.ref)
        assert made.is_due(one.ref, SECOND // 2)
        made.end(one.ref)


def test_side_traffic_and_unknown_calls_are_not_waited_for(order):
    side, work = call(1, 0, 1, side="telemetry"), call(2, 2, 3)
    made = order(side, work)
    made.begin(work.ref)
    assert made.is_due(work.ref, SECOND)
    assert made.is_due("9:9", SECOND)


def test_a_conversation_by_websocket_has_no_order_of_answers(order):
    socket = call(1, 0, 1, request={"url": "ws://model"})
    work = call(2, 2, 3)
    assert order(socket, work).is_due(work.ref, SECOND)


@pytest.mark.parametrize("program", ["cat", "while :; do :; done"])
def test_a_call_that_an_agent_never_makes_is_not_waited_for(order, program):
    """An idle agent is given up on after the patience, a busy one when it has used as much CPU time."""
    slow, never = call(1, 0, 3), call(2, 2, 4)
    with subprocess.Popen(["sh", "-c", program], stdin=subprocess.PIPE) as agent:
        made = order(slow, never, command=agent.pid, patience_ns=SECOND // 5)
        made.begin(slow.ref)
        assert not made.is_due(slow.ref, 3 * SECOND)
        made.wait(slow.ref, 3 * SECOND)
        assert made.is_due(slow.ref, 3 * SECOND)
        agent.kill()


def test_the_end_of_a_call_counts_from_its_start_and_not_from_its_event(order):
    slow_to_write = call(1, 1, 2, took_ns=3 * SECOND // 2)  # it started at 0.5
    after = call(2, 2.2, 3)
    made = order(slow_to_write, after)
    made.begin(slow_to_write.ref)
    assert made.is_due(slow_to_write.ref, 3 * SECOND // 2)


def test_a_reader_does_not_wait_for_the_end_of_a_writer_that_its_own_end_caused(order):
    writer, reader = call(1, 0, 2), call(2, 1, 3)
    mark = {"call": 1, "stream": "closed", "text": "stdout"}
    writer.chunks.append(
        Event(seq=50, kind=events.CHUNK, wall=0, mono=2 * SECOND - 1, pid=1, data=mark)
    )
    made = order(writer, reader)
    made.begin(writer.ref)
    made.begin(reader.ref)
    assert made.is_due(reader.ref, 2 * SECOND - 1)
