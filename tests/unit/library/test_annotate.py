import pytest

from playhead import clock
from playhead.errors import RunNotFound, UsageError
from playhead.library.annotate import remove, rename, set_keep, set_note, set_tags
from playhead.tape.manifest import read_manifest


def test_tags_that_are_set_are_all_the_tags(forge, store):
    path = forge("run", tags={"env": "ci", "old": "1"}).end()
    assert set_tags(store, "run", {"env": "prod", "new": "2"}) == {"env": "prod", "new": "2"}
    assert read_manifest(path).tags == {"env": "prod", "new": "2"}
    assert set_tags(store, "run", {}) == {}


@pytest.mark.parametrize("run", ["nobody", "../run", "", "last", "a/b", "..", "run\0"])
def test_a_run_that_is_none_is_refused_and_nothing_is_touched(forge, store, run):
    forge("run").end()
    before = sorted(store.rglob("*"))
    for change in (
        lambda: set_keep(store, run, True),
        lambda: set_note(store, run, "x"),
        lambda: rename(store, run, "x"),
        lambda: set_tags(store, run, {"a": "b"}),
        lambda: remove(store, run),
    ):
        with pytest.raises(UsageError):
            change()
    assert sorted(store.rglob("*")) == before


@pytest.mark.parametrize("tags", [{"": "x"}, {"a=b": "x"}, {"a": "x" * 5000}])
def test_a_tag_that_cannot_be_is_refused(forge, store, tags):
    forge("run").end()
    with pytest.raises(UsageError, match="cannot be a tag"):
        set_tags(store, "run", tags)


def test_a_name_of_nothing_and_a_note_without_end_are_refused(forge, store):
    forge("run").end()
    with pytest.raises(UsageError):
        rename(store, "run", "  ")
    with pytest.raises(UsageError):
        set_note(store, "run", "x" * 200_000)


def test_a_run_that_goes_on_is_not_removed_and_a_kept_one_is(forge, store):
    forge("alive", pid=clock.pid())
    forge("kept", keep=True).end()
    with pytest.raises(UsageError, match="still running"):
        remove(store, "alive")
    assert remove(store, "kept") > 0
    with pytest.raises(RunNotFound):
        remove(store, "kept")
    assert [path.name for path in (store / "runs").iterdir()] == ["alive"]
    assert list(store.glob(".trash*")) == []
