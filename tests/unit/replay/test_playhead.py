"""The playhead releases points in the order of the tape."""

import asyncio
import threading

import pytest

from playhead.events import Event
from playhead.recording import order_slot, points
from playhead.replay.playhead import Playhead
from playhead.replay.points_table import PointsTable
from playhead.replay.time import virtual_time
from playhead.replay.time.virtual_time import VirtualTime


def table_of(*rows, segment=1):
    event = Event(
        seq=0, kind="order", wall=0, mono=0, pid=segment, data={"from": 0, "points": [*rows]}
    )
    return PointsTable([event])


def lane_row(step, lane, number=1, *, loop=0, turn=0):
    return [step, loop, turn, lane, "get", number, None]


@pytest.fixture
def head_of():
    heads = []

    def make(*rows):
        time = VirtualTime(began_ns=0)
        head = time.order = Playhead(table_of(*rows), time)
        virtual_time.begin(time)
        heads.append(head)
        return head

    yield make
    for head in heads:
        virtual_time.end(head.time)


def test_threads_pass_their_points_in_the_order_of_the_tape(head_of):
    lanes = ["c", "a", "d", "b"]
    head = head_of(*(lane_row(1_000, lane) for lane in lanes))
    passed = []

    def arrive(lane):
        head.arrive(head.table.lane(lane, "get", 1), acts=True)
        passed.append(lane)
        head.acted()

    threads = [threading.Thread(target=arrive, args=(lane,)) for lane in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed == lanes


def test_no_thread_passes_a_point_while_another_one_acts(head_of):
    head = head_of(lane_row(1_000, "a"), lane_row(1_000, "b"))
    done, came = [], threading.Event()

    def follow():
        came.set()
        head.arrive(head.table.lane("b", "get", 1), acts=True)
        done.append("b")
        head.acted()

    head.arrive(head.table.lane("a", "get", 1), acts=True)
    thread = threading.Thread(target=follow)
    thread.start()
    came.wait()
    sum(range(10**6))  # computes, so that the other thread could pass its point
    done.append("a")
    head.acted()
    thread.join()
    assert done == ["a", "b"]


def test_a_point_that_blocks_a_loop_skips_no_point_of_another_thread(head_of):
    head = head_of(lane_row(1, "thread"), lane_row(1, "task", loop=1, turn=1))
    state = head.make_state(lambda: None, lambda: None)
    head.arrive(head.table.lane("task", "get", 1), state)
    assert not head.table.lane("thread", "get", 1).passed


def test_a_point_to_which_no_lane_comes_is_skipped(head_of):
    head = head_of(lane_row(1, "gone"), lane_row(1, "here"))
    head.arrive(head.table.lane("here", "get", 1))
    assert head.table.lane("gone", "get", 1).passed


def test_the_first_point_that_was_skipped_is_reported_once(head_of):
    head = head_of(
        lane_row(1, "gone"), lane_row(1, "here"), lane_row(1, "too"), lane_row(1, "here", 2)
    )
    reported = []
    head.on_skip = reported.append
    head.arrive(head.table.lane("here", "get", 1))
    head.arrive(head.table.lane("here", "get", 2))
    assert [place.what[0] for place in reported] == ["gone"]


def test_a_replay_that_keeps_the_order_reports_no_skipped_point(head_of):
    head = head_of(lane_row(1, "one"), lane_row(1, "two"))
    reported = []
    head.on_skip = reported.append
    head.arrive(head.table.lane("one", "get", 1))
    head.arrive(head.table.lane("two", "get", 1))
    assert reported == []


def test_the_time_of_the_replay_follows_the_points(head_of):
    head = head_of(lane_row(5_000, "a"), lane_row(2_000, "a", 2))
    head.arrive(head.table.lane("a", "get", 1))
    assert head.time.now_ns() == 5_000
    head.arrive(head.table.lane("a", "get", 2))
    assert head.time.now_ns() == 7_000


def test_further_points_of_an_answer_pass_with_the_first_if_nothing_lies_between(head_of):
    head = head_of([1, 0, 0, 7, 10], [1, 0, 0, 7, 20], lane_row(1, "a"), [1, 0, 0, 7, 30])
    head.arrive(head.table.call("1", 7, 10))
    assert head.table.call("1", 7, 20).passed
    assert not head.table.call("1", 7, 30).passed


def test_tasks_of_one_turn_are_released_in_one_turn(head_of):
    rows = [lane_row(1, "a", loop=1, turn=4), lane_row(1, "b", loop=1, turn=4)]
    head = head_of(*rows, lane_row(1, "c", loop=1, turn=5))
    ran, state = [], head.make_state(lambda: None, lambda: None)
    for lane in "cba":
        place = head.table.lane(lane, "get", 1)
        state.pend(place, lambda lane=lane: ran.append(lane), lambda: False)
    state.release(state.first())
    state.run_due()
    assert ran == ["a", "b"]


def test_a_busy_loop_releases_a_point_in_its_turn_and_not_before(head_of):
    rows = [lane_row(1, "a", loop=1, turn=4), lane_row(1, "b", loop=1, turn=6)]
    head = head_of(*rows)
    ran, state = [], head.make_state(lambda: None, lambda: None)
    for lane in "ab":
        place = head.table.lane(lane, "get", 1)
        state.pend(place, lambda lane=lane: ran.append(lane), lambda: False)
    state.enter_turn(threading.get_ident(), 1)
    state.release(state.first())
    state.run_due()
    seen = []
    for _ in range(2):
        state.enter_turn(threading.get_ident(), 1)
        state.look(is_busy=True)
        state.run_due()
        seen.append([*ran])
    assert seen == [["a"], ["a", "b"]]


def soon_row(step, lane, index=0, *, turn):
    return [step, 1, turn, lane, "soon", 1, index]


def test_a_busy_loop_waits_for_the_callback_that_a_thread_is_about_to_hand_over(head_of):
    rows = [lane_row(1, "a", loop=1, turn=1), soon_row(1, "thread", turn=2)]
    head = head_of(*rows, lane_row(1, "b", loop=1, turn=2))
    ran, state = [], head.make_state(lambda: None, lambda: None)

    def pend(place, name):
        state.pend(place, lambda: ran.append(name), lambda: False)

    for lane in "ab":
        pend(head.table.lane(lane, "get", 1), lane)
    state.enter_turn(threading.get_ident(), 1)
    state.look(is_busy=True)
    state.run_due()
    began, go = threading.Event(), threading.Event()

    def hand_over():
        began.set()
        go.wait()
        pend(head.table.lane("thread", "soon", 1), "callback")

    thread = threading.Thread(target=hand_over)
    thread.start()
    began.wait()
    state.enter_turn(threading.get_ident(), 1)
    go.set()
    state.look(is_busy=True)
    state.run_due()
    thread.join()
    assert ran == ["a", "callback", "b"]


def test_a_point_is_tried_behind_the_tasks_that_print_before_it_in_its_turn(head_of):
    rows = [lane_row(1, "a", loop=1, turn=1), lane_row(1, "prints", loop=1, turn=2)]
    head = head_of(*rows, [1, 1, 2, 7, 30, 1])
    ran, ready = [], []
    state = head.make_state(lambda: None, lambda: None, lambda at: ready.insert(at, ready.pop()))
    state.pend(head.table.lane("a", "get", 1), lambda: ran.append("a"), lambda: False)
    state.enter_turn(threading.get_ident(), 1)
    state.look(is_busy=True)
    state.run_due()
    answer = head.table.call("1", 7, 30)
    prints = head.table.lane("prints", "get", 1)

    def call_soon(take):
        ready.append(lambda: ran.append("answer") if take() else None)

    state.pend(answer, lambda: ran.append("too early"), lambda: False, call_soon)
    state.enter_turn(threading.get_ident(), 1)
    ready += [lambda: head.note(prints, state), lambda: ran.append("another task")]
    state.look(is_busy=True)
    state.run_due()
    for callback in ready:
        callback()
    # Its position in the turn was 1.
    assert ran == ["a", "answer", "another task"]


def test_answers_that_came_one_after_the_other_stay_together_without_their_transport(head_of):
    # On the tape two callbacks of the transport lie between the two answers.
    head = head_of([1, 1, 1, 7, 10, 0], [1, 1, 1, 8, 10, 3])
    ready = ["own 1", "own 2"]
    state = head.make_state(lambda: None, lambda: None, lambda at: ready.insert(at, ready.pop()))
    for call in (7, 8):
        state.pend(head.table.call("1", call, 10), lambda n=call: ready.append(n), lambda: False)
    state.enter_turn(threading.get_ident(), 1)
    state.look(is_busy=True)
    state.run_due()
    assert ready == [7, 8, "own 1", "own 2"]


def test_an_event_loop_has_the_number_that_its_lane_had_on_the_tape():
    table = table_of(
        [0, 1, 0, "main/2", points.LOOP, 1, None], [5, 2, 0, "main/1", points.LOOP, 1, None]
    )
    assert [table.loop("main/1", 1), table.loop("main/2", 1), table.loop("main/1", 2)] == [
        2,
        1,
        None,
    ]
    assert not any(table.segments.values())


def test_a_coroutine_that_is_closed_does_not_wait_for_its_place(head_of):
    head = head_of(lane_row(1_000, "other"), [1_000, 1, 3, 7, 250])
    order_slot.begin(head)
    moment = head.table.moment("1", 7, 250, left=250)

    async def main():
        waiting = head.arrive_async(moment)
        waiting.send(None)
        waiting.close()  # raises if the coroutine waits again

    with asyncio.Runner() as runner:
        state = order_slot.make_state(lambda: None, runner.get_loop().create_future)
        order_slot.watch_loop(lambda: state)
        try:
            runner.run(main())
        finally:
            order_slot.end()
    assert not head.table.call("1", 7, 250).passed
