"""What a replay takes from the environment on its tape, and what it leaves out."""

import pytest

from playhead.launch.replaying.replay_environment import restored

# fmt: off
HOSTILE = (
    *("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT"),
    *("BASH_ENV", "ENV", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF", "HTTPS_PROXY", "http_proxy"),
    *("ALL_PROXY", "NODE_OPTIONS", "NODE_PATH", "PERL5OPT", "PERL5LIB", "RUBYOPT", "JAVA_TOOL_OPTIONS"),
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "EDITOR", "IFS", "CDPATH", "PROMPT_COMMAND", "PATH", "HOME"),
    *("SHELL", "PLAYHEAD_HOME", "ANYTHING_ELSE"),
)
# fmt: on


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("name", [*HOSTILE, "", "A=B", "A\0B"])
def test_a_foreign_variable_that_may_load_code_is_not_applied(name, live):
    made = restored({}, {name: "/evil"}, foreign=True, live=live)
    assert made.variables == {}
    assert made.withheld == [name]
    assert "not applied from the tape" in made.notes[0]


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "PYTHONPATH", "PATH", "HOME", "PLAYHEAD_HOME", "A=B"]
)
def test_variables_of_the_machine_are_never_taken_from_a_tape(name):
    assert restored({}, {name: "/taped"}).variables == {}
    assert restored({name: "/mine"}, {name: "/taped"}).variables == {name: "/mine"}


@pytest.mark.parametrize("name", ["TZ", "LANG", "LC_ALL", "OPENAI_MODEL", "ANTHROPIC_MODEL"])
@pytest.mark.parametrize("live", [True, False])
def test_a_foreign_variable_that_only_describes_the_request_is_applied(name, live):
    made = restored({name: "mine"}, {name: "taped"}, foreign=True, live=live)
    assert made.variables == {name: "taped"}
    assert made.overridden == [name]


@pytest.mark.parametrize(
    "name", ["OPENAI_BASE_URL", "SHOP_API_BASE", "ANTHROPIC_API_KEY", "GROQ_X"]
)
def test_with_something_live_no_address_and_no_key_come_from_a_foreign_tape(name):
    assert restored({}, {name: "x"}, foreign=True).variables == {name: "x"}
    made = restored({}, {name: "x"}, foreign=True, live=True)
    assert (made.variables, made.withheld) == ({}, [name])


def test_a_value_that_no_recorder_writes_is_not_applied():
    long = {"OPENAI_MODEL": "x" * 5000, "TZ": "a\0b", "LANG": 3}
    assert restored({}, long, foreign=True).variables == {}


def test_todays_variables_that_the_replay_does_not_see_are_named():
    today = {"MODE": "b", "EXTRA": "1", "PATH": "/bin", "SAME": "s"}
    made = restored(today, {"MODE": "a", "SAME": "s"})
    assert made.variables == {"MODE": "a", "PATH": "/bin", "SAME": "s"}
    assert made.overridden == ["MODE", "EXTRA"]
    assert "MODE, EXTRA: as on the tape, not as set now" in made.notes[0]


def test_a_variable_that_the_user_chose_has_the_last_word():
    chosen = {"MODE": "c", "LD_PRELOAD": "/mine.so"}
    made = restored({"MODE": "b"}, {"MODE": "a"}, foreign=True, chosen=chosen)
    assert made.variables == chosen
    assert made.notes == ()


def test_from_here_leaves_the_tape_aside():
    made = restored({"MODE": "b"}, {"MODE": "a", "X": "1"}, from_here=True, chosen={"Y": "2"})
    assert made.variables == {"MODE": "b", "Y": "2"}
    assert made.notes == ()
