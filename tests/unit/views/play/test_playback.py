import pytest

from playhead.story import NoteItem
from playhead.views.play.frames import PlayFrame
from playhead.views.play.playback import Playback

S = 1_000_000_000


def tape(*moments, failures=()):
    item = NoteItem(ref="1:1", kind="tick", lane="main", wall=0, mono=0)
    return [
        PlayFrame(at_ns=int(at * S), place=place, part="note", kind="tick", item=item,
              text=str(at), is_failure=at in failures)
        for place, at in enumerate(moments)
    ]  # fmt: skip


def texts(frames):
    return [frame.text for frame in frames]


@pytest.fixture
def player():
    player = Playback(tape(0, 1, 3, 10, failures={3}))
    player.advance(0)
    return player


def test_frames_are_due_at_their_own_pace(player):
    assert player.shown == 1
    assert texts(player.advance(S - 1)) == []
    assert texts(player.advance(S)) == ["1"]
    assert player.wait_ns() == 2 * S
    assert texts(player.advance(20 * S)) == ["3", "10"]
    assert player.is_over
    assert player.wait_ns() is None


@pytest.mark.parametrize("speed", [0.25, 1.0, 3.0, 4.0, 7.0, 1024.0])
def test_waiting_as_long_as_told_always_brings_the_next_frame(speed):
    player = Playback(tape(0, 0.1, 1 / 3, 0.7, 9.99), speed=speed)
    player.advance(0)
    now = 0
    for number in range(2, 6):
        now += player.wait_ns()
        player.advance(now)
        assert player.shown == number


def test_time_that_passes_in_a_pause_does_not_count(player):
    player.toggle()
    assert player.wait_ns() is None
    assert texts(player.advance(5 * S)) == []
    player.toggle()
    assert player.wait_ns() == S
    assert texts(player.advance(6 * S)) == ["1"]


def test_speed_doubles_and_halves(player):
    player.faster()
    assert player.wait_ns() == S // 2
    player.slower()
    player.slower()
    assert player.wait_ns() == 2 * S
    for _ in range(20):
        player.slower()
    assert player.speed == 0.125


def test_no_pause_is_longer_than_is_wished():
    player = Playback(tape(0, 1, 100), max_wait_ns=2 * S, speed=2.0)
    player.advance(0)
    assert player.wait_ns() == S // 2
    player.advance(S // 2)
    assert player.wait_ns() == 2 * S
    assert texts(player.advance(S // 2 + 2 * S)) == ["100"]


def test_a_step_shows_one_frame_and_waits(player):
    assert texts(player.step()) == ["1"]
    assert player.is_paused
    assert player.position_ns == S
    assert texts(player.step()) == ["3"]
    player.back()
    assert player.moved_back
    assert (player.shown, player.position_ns) == (2, S)


def test_steps_end_at_the_ends(player):
    for _ in range(9):
        player.step()
    assert player.step() == ()
    assert player.is_over
    for _ in range(9):
        player.back()
    assert (player.shown, player.position_ns) == (0, 0)


def test_a_jump_forwards_shows_what_lies_between(player):
    assert texts(player.seek(5 * S)) == ["1", "3"]
    assert not player.moved_back
    assert texts(player.seek(99 * S)) == ["10"]
    assert player.position_ns == 10 * S


def test_a_jump_backwards_takes_off_what_lies_between(player):
    player.seek(10 * S)
    assert player.seek(2 * S) == ()
    assert player.moved_back
    assert player.shown == 2
    player.seek(-5 * S)
    assert (player.shown, player.position_ns) == (1, 0)


def test_the_next_failure_is_shown_and_waited_at(player):
    assert texts(player.seek_failure()) == ["1", "3"]
    assert player.is_paused
    assert player.seek_failure() == ()
    assert player.shown == 3


def test_an_empty_tape_is_over_at_once():
    player = Playback([])
    assert player.is_over
    player.back()
    assert not [*player.advance(S), *player.step(), *player.seek(S), *player.seek_failure()]


def test_time_that_somebody_else_had_the_terminal_does_not_count(player):
    player.resume(100 * S)
    assert texts(player.advance(101 * S)) == ["1"]
