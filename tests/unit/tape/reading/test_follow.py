"""A tape is followed while it is written: nothing twice, nothing missed, and an end."""

import pytest

from playhead.errors import TapeDamaged
from playhead.tape.reader import Tape
from playhead.tape.reading.follow import follow
from playhead.tape.sealed.seal import seal


class World:
    """What happens while a follower waits: one step each time."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.waits = []

    def wait(self, seconds):
        self.waits.append(seconds)
        if not self.steps:
            raise AssertionError("waits although nothing more will come")
        self.steps.pop(0)()


@pytest.fixture
def live(run, running):
    """A run whose process (this one) is alive."""
    run.root = run.segment(str(running["pid"]), **running)
    run.manifest(status="running", **running)
    return run


def refs(events):
    return [f"{event.segment}:{event.kind}" for event in events]


def nothing():
    return None


def test_a_finished_run_is_told_without_waiting(small):
    world = World()
    told = list(follow(Tape(small.path), wait=world.wait))
    assert told == list(Tape(small.path).events())
    assert world.waits == []


def test_events_come_as_they_are_appended_until_run_end(live):
    world = World(
        lambda: live.root.add("one"),
        nothing,
        lambda: live.root.add("two"),
        lambda: [live.root.add("run.end", {"status": "ok"}), live.root.end()],
    )
    told = [event.kind for event in follow(Tape(live.path), wait=world.wait)]
    assert told == ["segment.start", "one", "two", "run.end", "segment.end"]
    assert world.steps == []


def test_waiting_grows_from_10_to_100_ms_and_starts_again_with_news(live):
    finish = lambda: live.root.add("run.end", {"status": "ok"})  # noqa: E731
    world = World(*[nothing] * 5, lambda: live.root.add("x"), nothing, finish)
    list(follow(Tape(live.path), wait=world.wait))
    assert world.waits == [0.01, 0.02, 0.04, 0.08, 0.1, 0.1, 0.01, 0.02]


def test_a_line_is_told_when_it_is_whole(live):
    line = live.root.add("slow")
    content = live.root.path.read_bytes()
    half = len(content) - len(line) // 2
    live.root.path.write_bytes(content[:half])
    seen = []
    counts = []

    def write(rest):
        counts.append(len(seen))
        with live.root.path.open("ab") as file:
            file.write(rest)

    world = World(
        lambda: write(content[half:-1]),
        lambda: write(b"\n"),
        lambda: live.root.add("run.end", {"status": "ok"}),
    )
    tape = Tape(live.path)
    for event in follow(tape, wait=world.wait):
        seen += [event.kind]
    assert counts == [1, 1]
    assert seen == ["segment.start", "slow", "run.end"]
    assert tape.damage == []


def test_processes_that_start_later_are_followed_too(live):
    def start():
        child = live.segment("99999999")
        child.add("from the child")

    world = World(start, lambda: live.root.add("run.end", {"status": "ok"}))
    told = list(follow(Tape(live.path), wait=world.wait))
    assert [event.kind for event in told if event.pid == 99999999] == [
        "segment.start",
        "from the child",
    ]


def test_what_is_there_at_once_comes_in_order(live):
    def both():
        child = live.segment("99999999")
        live.root.add("second", mono=5_000_000)
        child.add("first", mono=4_000_000)

    world = World(both, lambda: live.root.add("run.end", {"status": "ok"}))
    told = [event.kind for event in follow(Tape(live.path), wait=world.wait)]
    assert told == ["segment.start", "segment.start", "first", "second", "run.end"]


def test_a_killed_process_ends_it_and_its_torn_line_is_said(live):
    def die():
        live.manifest(status="running", host=live_host, pid=0, birth="none")
        with live.root.path.open("ab") as file:
            file.write(b'{"seq":2,"kin')

    live_host = Tape(live.path).manifest.host
    tape = Tape(live.path)
    world = World(lambda: live.root.add("last words"), die)
    assert [event.kind for event in follow(tape, wait=world.wait)] == [
        "segment.start",
        "last words",
    ]
    assert "torn" in tape.damage[0].why


def test_a_run_that_is_sealed_under_the_follower_is_told_to_its_end(live):
    def finish():
        live.root.add("unseen")
        child = live.segment("99999999")
        child.end()
        live.root.add("run.end", {"status": "ok"})
        live.root.end()
        live.manifest(status="ok")
        seal(live.path)

    world = World(finish)
    told = [event.kind for event in follow(Tape(live.path), wait=world.wait)]
    assert told == [
        *("segment.start", "unseen", "segment.start", "segment.end", "run.end", "segment.end"),
    ]


def test_a_sealed_run_is_told_whole(small):
    seal(small.path)
    world = World()
    assert len(list(follow(Tape(small.path), wait=world.wait))) == 9


def test_a_segment_that_is_written_anew_is_not_told_twice(live):
    for number in range(20):
        live.root.add("x", number)

    def rewrite():
        live.root.path.write_bytes(b"".join(live.root.lines[:3]))

    def more():
        live.root.rewrite(live.root.lines)
        live.root.add("run.end", {"status": "ok"})

    world = World(rewrite, more)
    told = [event.seq for event in follow(Tape(live.path), wait=world.wait)]
    assert told == list(range(22))


def test_a_resumed_run_is_followed_over_its_first_end(live, running):
    live.root.add("run.end", {"status": "interrupted"})
    again = live.segment("99999999", generation=1)
    again.add("run.start", {"resumed": True})
    world = World(lambda: again.add("x"), lambda: again.add("run.end", {"status": "ok"}))
    told = [event.kind for event in follow(Tape(live.path), wait=world.wait)]
    assert told[-3:] == ["run.start", "x", "run.end"]


def test_without_a_manifest_the_first_lines_say_whether_the_process_lives(live):
    (live.path / "manifest.json").unlink()
    world = World(lambda: live.root.add("x"), lambda: live.root.add("run.end", {"status": "ok"}))
    assert len(list(follow(Tape(live.path), wait=world.wait))) == 3


def test_a_folder_without_a_tape_is_said(tmp_path):
    with pytest.raises(TapeDamaged):
        list(follow(Tape(tmp_path), wait=World().wait))
