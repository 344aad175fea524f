"""Connections past the recorder: which of them make a run partial."""

from playhead.launch.connections import RecordedPlaces, missing
from playhead.launch.sidecar.connection_watch import SeenConnection

TAPED = RecordedPlaces(root="1:0", segments=(), ports=(), within={})


def seen(role: str, pid: int, program: str = "/usr/bin/node", *, proxied: bool = False):
    to = "127.0.0.1:4000" if proxied else "10.0.0.1:443"
    return SeenConnection(
        program=program, pid=pid, to=to, port=1, how="inside" if proxied else "out",
        proxied=proxied, parent="1:0", role=role,
    )  # fmt: skip


GEMINI = seen("agent:gemini", 7, proxied=True)


def test_telemetry_of_an_agent_that_uses_the_proxy_leaves_the_run_whole():
    assert missing([GEMINI, seen("agent:gemini", 7), seen("agent:gemini", 8)], TAPED) == []


def test_updates_that_npm_looks_for_leave_the_run_whole():
    assert missing([seen("runner", 6)], TAPED) == []


def test_a_script_beside_an_agent_of_the_same_interpreter_makes_the_run_partial():
    script = seen("script", 9)
    assert missing([GEMINI, script], TAPED) == [script]


def test_an_agent_past_the_proxy_beside_one_that_uses_it_makes_the_run_partial():
    opencode = seen("agent:opencode", 9, "/x/opencode.exe")
    assert missing([GEMINI, opencode], TAPED) == [opencode]
