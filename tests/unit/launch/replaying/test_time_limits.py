"""The limit of `timeout` is off in a replay."""

import pytest

from playhead.launch.replaying.time_limits import without_limit


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("timeout 60 python a.py", "timeout 0 python a.py"),
        ("/usr/bin/timeout 1.5m python a.py 7", "/usr/bin/timeout 0 python a.py 7"),
        ("timeout -k 5 --signal INT -v 60 agent", "timeout -k 5 --signal INT -v 0 agent"),
        ("timeout --signal=INT -- 60 agent", "timeout --signal=INT -- 0 agent"),
        ("timeout --help", "timeout --help"),
        ("python timeout 60 x", "python timeout 60 x"),
    ],
)
def test_only_the_limit_of_a_command_changes(command, expected):
    assert without_limit(command.split()) == expected.split()
