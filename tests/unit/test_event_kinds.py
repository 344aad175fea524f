"""A new kind of event needs one row in the table: levels, story and views work with it at once."""

import io

import pytest
from rich.console import Console

import playhead
from playhead import events
from playhead.encoding.levels import reduce
from playhead.event import Event
from playhead.events import EventKind
from playhead.recording.encoder import NewEvent
from playhead.story import NoteItem, tell
from playhead.tape.reader import Tape
from playhead.views.play.frames import frames_of
from playhead.views.text.event_line import event_line
from playhead.views.text.labels import label
from playhead.views.text.tree import tree_lines
from playhead.views.web.outline import outline

MOOD = EventKind(
    "mood",
    "How the agent felt",
    metadata=("level",),
    style="seam",
    mark="☼ ",
    title="mood {level:,}",
    summary="because {why}",
    line="{level} as {why}",
    is_warning=False,
    searchable=True,
)
DATA = {"level": 1234, "why": "it rained"}


@pytest.fixture
def mood(monkeypatch):
    monkeypatch.setitem(events.KINDS, "mood", MOOD)


@pytest.fixture
def tape(mood, tmp_path):
    with playhead.record(store=tmp_path) as run:
        run.recorder.append(NewEvent("mood", DATA))
    return Tape(run.path)


def test_levels_keep_its_metadata(mood):
    assert reduce("minimal", "mood", DATA, ours=True) == {"level": 1234}
    assert reduce("standard", "mood", DATA, ours=True)["level"] == 1234
    assert "rained" not in str(reduce("standard", "mood", DATA, ours=True))
    assert reduce("full", "mood", DATA, ours=True) == DATA


def test_the_text_views_show_it_as_its_row_says(tape):
    story = tell(tape)
    (note,) = [one for one in story.items.values() if isinstance(one, NoteItem)]
    assert label(note).plain == "☼ mood 1,234 because it rained"
    (event,) = [one for one in tape.events() if one.kind == "mood"]
    assert event.ours
    assert event_line(event, event.mono, 80).plain.endswith("mood          1234 as it rained")
    assert [one.item for one in tree_lines(story, width=80)] == [note]


def test_the_page_and_the_player_show_it(tape):
    story = tell(tape)
    page = outline(story)
    assert "mood 1,234" in page["strings"]
    assert "because it rained" in page["strings"]
    assert "mood" not in page["background"]
    assert [frame.kind for frame in frames_of(story)] == ["mood"]


def test_a_kind_in_the_background_is_in_the_story_and_not_in_the_tree(tape, monkeypatch):
    quiet = EventKind("mood", "How the agent felt", background=True)
    monkeypatch.setitem(events.KINDS, "mood", quiet)
    story = tell(tape)
    assert len(story.items) == 1
    assert list(tree_lines(story, width=80)) == []
    assert list(frames_of(story)) == []
    assert "mood" in outline(story)["background"]


def test_a_kind_outside_the_story_is_only_on_the_tape(tape, monkeypatch):
    monkeypatch.setitem(events.KINDS, "mood", EventKind("mood", "…", in_story=False))
    assert not tell(tape).items


def test_without_a_row_the_data_is_shown_as_it_is(tape, monkeypatch):
    monkeypatch.delitem(events.KINDS, "mood")
    (note,) = tell(tape).items.values()
    assert label(note).plain.startswith("mood {")


def test_every_row_has_a_meaning_and_shows_any_data():
    odd = [None, {}, {"name": None, "lost": "x", "text": 3, "count": {}, "{": 1}, ["a"], "text"]
    for name, kind in events.KINDS.items():
        assert kind.name == name
        assert kind.meaning
        for data in odd:
            kind.titled(data)
            kind.summarised(data)
            event = Event(seq=1, kind=name, wall=1, mono=1, pid=1, data=data)
            line = event_line(event, 0, 80)
            Console(file=io.StringIO()).print(line)
