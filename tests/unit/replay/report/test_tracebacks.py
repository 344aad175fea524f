"""What a traceback in a program's output means."""

import pytest

from playhead.replay.report.printed_output import reduced

RECORDED = """\
before
Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/httpcore/_async/http11.py", line 213, in _receive_event
    with map_exceptions({h11.RemoteProtocolError: RemoteProtocolError}):
httpcore.RemoteProtocolError: peer closed connection

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/agent/agent.py", line 17, in ask
    return await client.get(url)
           ^^^^^^^^^^^^^^^^^^^^^
  File "/venv/lib/python3.11/site-packages/httpx/_client.py", line 1, in get
    return x
httpx.RemoteProtocolError: peer closed connection
after
"""

REPLAYED = """\
before
httpcore.RemoteProtocolError: peer closed connection

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/agent/agent.py", line 19, in ask
    return await client.get(url)
           ^^^^^^^^^^^^^^^^^^^^^
  File "/opt/playhead/src/playhead/hooks/http/served.py", line 91, in body_async
    raise ending(taped, exchange.name, broken)
httpx.RemoteProtocolError: peer closed connection
after
"""


def test_frames_of_libraries_and_line_numbers_do_not_count():
    then, now = reduced(RECORDED), reduced(REPLAYED)
    assert then[0] == now[0]
    assert (then[1], now[1]) == (2, 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("httpx.RemoteProtocolError: peer", "httpx.ReadTimeout: peer"),
        ("httpx.RemoteProtocolError: peer closed", "httpx.RemoteProtocolError: peer opened"),
        ("in ask", "in answer"),
        ("/srv/agent/agent.py", "/srv/agent/tools.py"),
        ("    return await client.get(url)\n", "    return await client.post(url)\n"),
        ("The above exception was the direct cause", "During handling of the above exception"),
        ("before\n", "before all\n"),
    ],
)
def test_what_the_program_does_counts(old, new):
    assert reduced(REPLAYED.replace(old, new))[0] != reduced(RECORDED)[0]


def test_exception_groups_are_reduced_within_their_margin():
    text = (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "/srv/agent/agent.py", line 3, in main\n'
        "  |     async with TaskGroup() as group:\n"
        '  |   File "/usr/lib/python3.11/asyncio/taskgroups.py", line 133, in __aexit__\n'
        "  |     raise me from None\n"
        "  | ExceptionGroup: unhandled errors (1 sub-exception)\n"
    )
    kept, ignored = reduced(text)
    assert ignored == 1
    assert "taskgroups" not in kept
    assert "async with TaskGroup() as group" in kept


def test_text_without_tracebacks_stays_as_it_is():
    assert reduced("one\r\n  two\n") == ("one\r\n  two\n", 0)


def test_an_empty_underline_of_a_library_frame_is_not_compared():
    frame = '  File "/opt/playhead/replay/playhead.py", line 70, in open\n    with suppress(E):\n\n'
    head = 'Traceback (most recent call last):\n  File "/srv/agent.py", line 3, in <module>\n    go()\n'
    text = f"{head}{frame}KeyboardInterrupt\n\nafter\n"
    without, _ = reduced(text.replace(frame, ""))
    assert reduced(text) == (without, 1)
