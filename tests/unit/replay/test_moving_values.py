"""Addresses and process ids are compared by their part in the text."""

import pytest

from playhead.replay.report.moving_values import settled


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("<Future at 0x7f90605a3c50 state=done>", "<Future at 0x7f985d5cee90 state=done>"),
        ("<A object at 0x7fc1d1b24b50>, <B object at 0x7fc1d1b24b90>",) * 2,
        ("worker 1655 is ready", "worker 1684 is ready"),
        (
            "<_MainThread(MainThread, started 140470434888576)>",
            "<_MainThread(MainThread, started 140535817665408)>",
        ),
        ("id 139641251186992, 0x7f90605a3c50", "id 140699829045904, 0x7f985d5cee90"),
        ("INFO [139641261394816] ready", "INFO [140699829898112] ready"),
        ("run.sh: line 4: 31690 Killed   sleep 3", "run.sh: line 4:   704 Killed   sleep 3"),
        ("real\t0m0.020s\nuser\t0m0.001s", "real\t0m0.003s\nuser\t0m0.000s"),
    ],
)
def test_values_that_move_are_equal(then, now):
    assert settled(then, {1655})[0] == settled(now, {1684})[0]
    assert settled(then, {1655})[1] > 0


@pytest.mark.parametrize(
    ("then", "now"),
    [
        # one object, and two
        (
            "<A at 0x7fc1d1b24b50> <A at 0x7fc1d1b24b50>",
            "<A at 0x7fc1d1b24b50> <A at 0x7fc1d1b24b90>",
        ),
        ("<A at 0x7fc1d1b24b50>", "<B at 0x7fc1d1b24b50>"),
        ("16551 rows", "16841 rows"),
        ("x1655", "x1684"),
        ("took 1655 ms", "took 1700 ms"),
        ("colour 0xdeadbeef", "colour 0xdeadbeee"),
        ("3.1655", "3.1684"),
        ("run.sh: line 4: 316 Files", "run.sh: line 4: 704 Files"),
        ("real\t3.2 percent", "real\t3.3 percent"),
        # fifteen digits that are no address, and the parts of a longer number
        ("order 137641251186992", "order 136699829045904"),
        ("0.139641251186992", "0.140699829045904"),
        ("1396412511869921", "1406998290459041"),
        ("id 139641251186992 and 139641251186992", "id 140699829045904 and 140699829045905"),
    ],
)
def test_other_values_are_not(then, now):
    assert settled(then, {1655})[0] != settled(now, {1684})[0]
