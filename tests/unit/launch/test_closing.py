"""How the end of a command is judged, and what is missing from its tape."""

import pytest

from playhead.launch.closing import Survey, holes, status_of
from playhead.launch.spawn_command import Ended


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (0, "ok"),
        (1, "failed"),
        (-2, "interrupted"),
        (-9, "interrupted"),
        (-15, "interrupted"),
        (-11, "failed"),
        (130, "interrupted"),
        (137, "interrupted"),
        (139, "failed"),
        (127, "failed"),
        (255, "failed"),
    ],
)
def test_who_ended_it_decides_what_it_was(code, status):
    assert status_of(Ended(code=code)) == status


@pytest.mark.parametrize(("code", "exit_code"), [(0, 0), (3, 3), (-9, 137), (-15, 143)])
def test_a_death_by_signal_leaves_with_what_a_shell_would_say(code, exit_code):
    assert Ended(code=code).exit_code == exit_code


def survey(**members):
    return Survey(started_by={"1": "1:0", **members.pop("started_by", {})}, **members)


def found(seen, command=("sh",)):
    return list(holes(seen, list(command), root="1:0", own=frozenset({"1", "2"})))


def test_a_python_that_reported_is_no_hole():
    seen = survey(started_by={"3": "1:0", "4": "3:7"}, pythons={"3:7": ["python", "x.py"]})
    assert found(seen, ["python", "agent.py"]) == []


def test_a_python_that_never_reported_is_one():
    seen = survey(started_by={"3": "1:0"}, pythons={"3:7": ["python", "-S", "x.py"]})
    (hole,) = found(seen)
    assert hole["call"] == "3:7"
    assert hole["what"] == "python -S x.py"
    assert "-S" in hole["why"]


def test_the_launchers_own_processes_do_not_count_as_the_commands():
    (hole,) = found(survey(started_by={"2": "1:0"}), ["python", "agent.py"])
    assert hole["what"] == "python agent.py"


def test_a_python_that_could_not_be_started_is_none():
    assert found(survey(pythons={"3:7": ["python"]}, failed={"3:7"})) == []


def test_a_command_that_is_no_python_is_none():
    assert found(survey(), ["make", "-p", "hi"]) == []


def test_an_agent_that_seems_to_have_asked_no_model_is_a_hole():
    (hole,) = found(survey(), ["claude", "-p", "Hello"])
    assert hole["boundary"] == "llm"
    assert found(survey(asked=True), ["claude", "-p", "Hello"]) == []
