"""Points on their way to the tape and back."""

import threading

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


def test_the_end_of_a_process_waits_for_points_that_another_thread_is_writing(log, monkeypatch):
    begun, written, append = threading.Event(), threading.Event(), log._recorder.append
    counts = []

    def slow(event):
        begun.set()
        written.wait(60)
        append(event)

    monkeypatch.setattr(log._recorder, "append", slow)
    points.note(lanes.Lane("worker"), points.GET)
    writer = threading.Thread(target=log.flush)
    writer.start()
    begun.wait(60)
    ending = threading.Thread(target=lambda: (log.flush_last(), counts.append(len(taped(log)))))
    ending.start()
    written.set()
    writer.join(60)
    ending.join(60)
    assert counts == [1]


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


def test_a_signal_is_noted_with_the_steps_before_it(log):
    points.count_step()
    printed, mark = [], []
    assert points.count_with(lambda: printed.append("text")) is None
    points.note_signal(14, mark, is_before=False)
    points.note_signal(14, mark, is_before=True)
    assert (printed, len(mark)) == (["text"], 2)
    assert [row[4:] for row in taped(log)] == [["signal:14", 1, [2]], ["signal:14", 2, [2, 1]]]


def test_numbered_lanes_are_not_searched_for_secrets_and_named_ones_are(log, monkeypatch):
    searched = []
    monkeypatch.setattr(log._recorder, "redactor", Searcher(searched))
    for name in ("main", "main/12/~3/p4", "worker-1", "main/sk-live"):
        points.note(lanes.Lane(name), points.GET)
    taped(log)
    assert [name for name in searched if name != points.GET] == ["worker-1", "main/sk-live"]


class Searcher:
    def __init__(self, searched):
        self.searched = searched

    def clean_text(self, text):
        self.searched.append(text)
        return text
