import pytest

from playhead.errors import UsageError
from playhead.views.play.frames import frames_of
from playhead.views.play.playback import PlayPlace, between, parse_place

S = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("7", PlayPlace(call=7)),
        ("#12", PlayPlace(call=12)),
        ("12s", PlayPlace(at_ns=12 * S)),
        ("250ms", PlayPlace(at_ns=S // 4)),
        ("1.5m", PlayPlace(at_ns=90 * S)),
        ("01:30", PlayPlace(at_ns=90 * S)),
        ("1:00:00.5", PlayPlace(at_ns=3600 * S + S // 2)),
    ],
)
def test_a_place_is_a_call_or_a_time(text, place):
    assert parse_place(text) == place


@pytest.mark.parametrize("text", ["", "soon", "-3s", "7x", "#"])
def test_anything_else_is_not_a_position(text):
    with pytest.raises(UsageError, match="not a position on a tape"):
        parse_place(text)


@pytest.fixture
def frames(forge, told):
    tape = forge()
    for name in ("one", "two", "three"):
        tape.tool(name, {}, took=1.0)
    return frames_of(told(tape))


@pytest.mark.parametrize(
    ("first", "last", "names"),
    [
        (None, None, ["one", "one", "two", "two", "three", "three"]),
        ("2", "2", ["two", "two"]),
        ("3", None, ["three", "three"]),
        ("1.5s", None, ["two", "three", "three"]),
        (None, "500ms", ["one"]),
    ],
)
def test_frames_between_two_places(frames, first, last, names):
    start, stop = first and parse_place(first), last and parse_place(last)
    assert [frame.item.name for frame in between(frames, start, stop)] == names


def test_a_call_that_is_not_played_cannot_be_a_place(frames):
    with pytest.raises(UsageError, match="There is no call 9 to play"):
        between(frames, PlayPlace(call=9), None)
