"""Arguments over variables over files over defaults; and what is wrong is said with its place."""

import re
from pathlib import Path

import pytest

import playhead
from playhead import config
from playhead.errors import ConfigError


def load(folder, **environ):
    return config.load(folder, environ)


def test_without_any_setting_there_are_defaults(tmp_path):
    (tmp_path / ".git").mkdir()
    settings = load(tmp_path, HOME="/home/x")
    assert (settings.record, settings.level, settings.redact) == (None, "full", True)
    assert settings.source is None


def test_the_nearest_file_up_to_the_projects_root_counts(tmp_path):
    (tmp_path / "playhead.toml").write_text('level = "minimal"')
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    assert load(project / "src").level == "minimal"
    (project / "playhead.toml").write_text('level = "standard"')
    assert load(project / "src").level == "standard"
    (project / "playhead.toml").unlink()
    (project / ".git").mkdir()
    assert load(project / "src").level == "full"


def test_a_section_of_pyproject_counts_and_an_own_file_wins(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.playhead]\nname = "shared"\n')
    assert load(tmp_path).name == "shared"
    (tmp_path / "playhead.toml").write_text('name = "own"')
    assert load(tmp_path).name == "own"


@pytest.mark.parametrize(
    "text", ["[tool]\n", "tool = 5", "tool = [1]", "[tool]\nplayhead = 3", "not toml ["]
)
def test_somebody_elses_pyproject_is_no_concern_of_ours(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / ".git").mkdir()
    assert load(tmp_path).level == "full"


def test_variables_win_over_files(tmp_path):
    (tmp_path / "playhead.toml").write_text('level = "minimal"\nrecord = true\nstore = "a"\n')
    settings = load(tmp_path, PLAYHEAD_LEVEL="standard", PLAYHEAD_RECORD="off", PLAYHEAD_HOME="/b")
    assert (settings.level, settings.record, settings.home) == ("standard", False, Path("/b"))


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("1", True),
        ("true", True),
        ("YES", True),
        ("on", True),
        ("0", False),
        ("no", False),
        ("", False),
    ],
)
def test_flags_are_understood_as_people_write_them(tmp_path, word, meant):
    assert load(tmp_path, PLAYHEAD_RECORD=word).record is meant


def test_everything_about_redaction_can_be_set(tmp_path):
    (tmp_path / "playhead.toml").write_text(
        '[redact]\nenabled = false\npatterns = ["A+"]\nnames = ["tenant"]\n[prices]\nx = 1\n'
    )
    settings = load(tmp_path)
    assert settings.redact is False
    assert settings.redact_patterns == ("A+",)
    assert settings.redact_names == ("tenant",)
    assert settings.sections["prices"] == {"x": 1}
    (tmp_path / "playhead.toml").write_text("redact = false")
    assert load(tmp_path).redact is False


def test_a_store_is_found_from_where_the_file_is(tmp_path):
    (tmp_path / "playhead.toml").write_text('store = "tapes"')
    (tmp_path / "sub").mkdir()
    assert load(tmp_path / "sub").home == tmp_path / "tapes"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('level = "loud"', "level is 'loud'; expected one of minimal, standard, full"),
        ('record = "perhaps"', "record is 'perhaps'; expected true or false"),
        ("name = 3", "name is 3; expected a text"),
        ("tags = 3", "tags is 3; expected a table"),
        ("store = 3", "store is 3; expected a text"),
        ('[redact]\npatterns = "x"', "redact.patterns is 'x'; expected a list of texts"),
        ("level =", "cannot be read"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(tmp_path, text, said):
    (tmp_path / "playhead.toml").write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(tmp_path)
    assert said in str(raised.value)
    assert str(tmp_path / "playhead.toml") in str(raised.value)
    assert raised.value.path == str(tmp_path / "playhead.toml")


@pytest.mark.parametrize("name", ["PLAYHEAD_LEVEL", "PLAYHEAD_RECORD"])
def test_a_wrong_variable_is_said_by_its_name(tmp_path, name):
    with pytest.raises(ConfigError, match=name):
        load(tmp_path, **{name: "nonsense"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('levle = "full"', "'levle' is not a setting. Did you mean 'level'?"),
        ('Level = "full"', "Did you mean 'level'?"),
        ("[redcat]\nenabled = true", "Did you mean 'redact'?"),
        ('[redact]\nname = ["x"]', "Did you mean 'redact.names'?"),
        ("[replay]\nignroe = {}", "Did you mean 'replay.ignore'?"),
        ("[retention]\nolder = 3", "Did you mean 'retention.older_than'?"),
        ("zzzz = 1", "Expected one of "),
        ("prices = 3", "expected a table"),
        ('replay = "fast"', "expected a table"),
        ("tags = []", "expected a table"),
    ],
)
@pytest.mark.parametrize("file", ["playhead.toml", "pyproject.toml"])
def test_a_setting_that_does_not_exist_is_refused_with_the_nearest_name(tmp_path, text, said, file):
    if file == "pyproject.toml":
        text = (
            "[tool.playhead]\n" + text.replace("[", "[tool.playhead.", 1)
            if text[0] == "["
            else "[tool.playhead]\n" + text
        )
    (tmp_path / file).write_text(text)
    with pytest.raises(ConfigError, match=re.escape(said)) as refused:
        load(tmp_path)
    assert str(tmp_path / file) in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("redact = false", "redaction is OFF: "),
        ("[redact]\nenabled = false", "redaction is OFF: "),
        ('[redact]\nkeep = ["jwt"]', "keeps these values unredacted: jwt."),
        ('[redact]\nnames = ["tenant"]', ""),
    ],
)
def test_a_project_that_keeps_secrets_on_the_tape_is_named(
    tmp_path, monkeypatch, capsys, text, said
):
    (tmp_path / "playhead.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    with playhead.record(store=tmp_path / "store"):
        pass
    err = capsys.readouterr().err
    assert (said in err) if said else not err
    assert not said or str(tmp_path / "playhead.toml") in err
