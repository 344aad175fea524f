"""Points on their way to the tape and back."""

import pytest

from playhead import events
from playhead.recording import lanes, points
from playhead.recording.points import PointLog, pack, unpack
from playhead.recording.recorder import Recorder
from playhead.tape.reader import Tape


@pytest.fixture
def log(tmp_path):
    recorder = Recorder(run=tmp_path, run_id="20261115-071105-k3f9", who="agent")
    made = PointLog(recorder, lambda log: None)
    points.begin(made)
    yield made
    points.end()
    recorder.close()


def taped(log):
    log.flush()
    found = [one for one in Tape(log._recorder.run).events() if one.kind == events.ORDER]
    return [row for event in found for row in unpack(event.data)]


def test_points_come_back_in_the_order_in_which_they_were_noted(log):
    lane = lanes.Lane("worker")
    points.note(lane, points.GET)
    points.note_call(7, 250, 1_000)
    points.note(lane, points.GET, "in vain")
    first, call, second = taped(log)
    assert first[3:] == ["worker", "get", 1, None]
    assert call == [1_000, 0, 0, 7, 250]
    assert second[3:] == ["worker", "get", 2, "in vain"]


def test_packed_points_keep_their_absolute_times():
    entries = [(100, (1, 4), 7, 20), (90, (0, 0), "main", "put", 1, None)]
    assert unpack(pack(entries)) == [[100, 1, 4, 7, 20], [90, 0, 0, "main", "put", 1, None]]


@pytest.mark.parametrize(
    "data",
    [None, {}, {"from": "1", "points": []}, {"from": 1, "points": [7, [1, 2], ["a", 0, 0, 1, 2]]}],
)
def test_rows_that_are_not_points_are_dropped(data):
    assert unpack(data) == []


def test_without_a_log_nothing_is_noted():
    points.note(lanes.Lane("worker"), points.GET)
    points.note_call(7, 250, 1_000)
    assert points.active() is None


def test_what_carries_a_request_does_not_shift_the_numbers_of_other_lanes():
    class Request:
        boundary = "http"

    lane = lanes.Lane("main")
    token = lanes.inside.set((Request(),))
    carrier = lane.child()
    lanes.inside.reset(token)
    assert (carrier.name, lane.process(), lane.child().name) == ("main/~1", "main/p1", "main/1")
