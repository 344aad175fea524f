"""Where runs live, and how a person names one."""

import pytest

from playhead.errors import RunNotFound, StoreError, UsageError
from playhead.tape import store
from playhead.tape.manifest import Manifest, write_manifest

NOW = 1_794_741_627_000_000_000


@pytest.fixture
def home(tmp_path):
    return store.open_store(tmp_path / "store")


@pytest.fixture
def three(home):
    """Three runs, the last one newest."""
    ids = ["20261115-071105-aaaa", "20261115-081105-bbbb", "20261116-071105-cccc"]
    for run_id in ids:
        store.new_run(home, run_id, NOW)
        write_manifest(store.run_path(home, run_id), Manifest(run=run_id))
    return ids


@pytest.mark.parametrize(
    ("environ", "end"),
    [
        ({"PLAYHEAD_HOME": "/a/b", "XDG_DATA_HOME": "/c"}, "/a/b"),
        ({"XDG_DATA_HOME": "/c"}, "/c/playhead"),
    ],
)
def test_the_store_is_where_the_environment_says(environ, end):
    assert str(store.default_home(environ)) == end


def test_without_a_word_it_is_in_the_users_data_folder():
    assert store.default_home({}).name == "playhead"


def test_a_store_is_for_its_owner_alone(home):
    assert home.stat().st_mode & 0o777 == 0o700
    _, run = store.new_run(home, None, NOW)
    assert run.stat().st_mode & 0o777 == 0o700


def test_a_store_in_a_work_tree_hides_itself_from_git(tmp_path):
    (tmp_path / ".git").mkdir()
    inside = store.open_store(tmp_path / "deep" / "store")
    assert (inside / ".gitignore").read_text() == "*\n"


def test_a_store_elsewhere_leaves_no_gitignore(home):
    assert not (home / ".gitignore").exists()


def test_a_store_that_cannot_be_made_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="--store DIR or PLAYHEAD_HOME"):
        store.open_store(tmp_path / "file" / "store")


def test_a_run_id_sorts_by_time_and_is_never_given_twice(home):
    made = [store.new_run(home, None, NOW)[0] for _ in range(20)]
    assert len(set(made)) == 20
    assert all(run_id.startswith("20261115-112027-") for run_id in made)
    with pytest.raises(FileExistsError):
        store.new_run(home, made[0], NOW)


@pytest.mark.parametrize(
    "run_id", ["", "../x", "a/b", ".hidden", "x" * 129, "a b", "x.old.20261115T071105"]
)
def test_a_run_id_is_no_path(home, run_id):
    with pytest.raises(UsageError, match="cannot be a run id"):
        store.run_path(home, run_id)


def test_runs_are_listed_newest_first(home, three):
    assert store.run_ids(home) == three[::-1]
    assert [path.name for path in store.runs(home)] == three[::-1]


def test_a_store_that_was_never_made_has_no_runs(tmp_path):
    assert store.run_ids(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("asked", "found"),
    [("last", 2), ("last~0", 2), ("last~2", 0), ("20261115-07", 0), ("20261116", 2),
     ("20261115-081105-bbbb", 1)],
)  # fmt: skip
def test_a_run_is_found_by_what_people_type(home, three, asked, found):
    assert store.find_run(home, asked).name == three[found]


def test_a_path_is_a_run_as_well(home, three, monkeypatch):
    path = store.run_path(home, three[1])
    assert store.find_run(home, str(path)) == path
    monkeypatch.chdir(path.parent)
    assert store.find_run(home, f"./{three[1]}").resolve() == path.resolve()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("2026", "beginning of 3 runs"),
        ("last~7", "no run 'last~7': 3 runs are recorded"),
        ("zz", "No run is called"),
        ("./nowhere", "There is no file or folder ./nowhere."),
    ],
)
def test_a_run_that_cannot_be_meant_is_said_with_the_next_step(home, three, asked, said):
    with pytest.raises(RunNotFound, match=said) as missed:
        store.find_run(home, asked)
    assert missed.value.asked == asked


def test_last_is_the_newest_of_those_to_choose_from(home, three):
    assert store.find_run(home, "last", among=three[:2][::-1]).name == three[1]


def test_a_run_moved_aside_is_kept_and_no_longer_meant(home, three):
    path = store.run_path(home, three[2])
    aside = store.move_aside(path, NOW)
    assert aside.name == f"{three[2]}.old.20261115T112027"
    assert store.run_ids(home) == three[1::-1]
    path.mkdir()
    assert store.move_aside(path, NOW).name.endswith(".2")


def test_the_stores_key_is_made_once(home):
    key = store.redaction_key(home)
    assert (len(key), store.redaction_key(home)) == (32, key)
    assert (home / "redact.key").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in home.iterdir()) == ["redact.key", "runs"]
