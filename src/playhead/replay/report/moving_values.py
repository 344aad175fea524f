"""Values that no program chooses and that differ from run to run: addresses in memory, ids of processes and threads,
durations that a shell measures.

Pure; knows how Python and shells print them. They are compared by their part in the text: where the recorded run
printed its first address, the replay prints its first address.
"""

from __future__ import annotations

import re
from collections.abc import Collection

# As in `<Future at 0x7f90605a3c50 state=finished>` and `<_MainThread(MainThread, started 140470434888576)>`; and
# without such words, `hex(id(x))`, `id(x)` and `threading.get_ident()`: what Linux maps for a process lies between
# 0x7e0000000000 and 0x7fffffffffff, which is fifteen digits.
_ADDRESS = re.compile(
    r"(?<= at )0x[0-9a-f]{6,16}\b|(?<=, started )\d{12,}|(?<= daemon )\d{12,}(?=\)>)"
    r"|\b0x7[ef][0-9a-f]{10}\b|(?<![\w.])(?:13[89]|140)\d{12}(?![\w.])"
)
# As bash reports a job that a signal ended: `run.sh: line 4: 31690 Killed    sleep 30`. Such a process may have been
# killed before anything else was known of it.
_JOB = re.compile(
    r"(?m)(: line \d+:) +\d+(?= (?:Killed|Terminated|Aborted|Hangup|Quit|Interrupt|Segmentation fault"
    r"|Alarm clock|Broken pipe|User defined signal|Floating point exception|Illegal instruction|Bus error)\b)"
)
# As the keyword `time` of shells reports it.
_TIMED = re.compile(r"(?m)^(real|user|sys)([\t ]+)(?:\d+m)?\d+[.,]\d+s?$")
_NUMBER = re.compile(r"(?<![\w.])\d{2,10}(?![\w.])")


def settled(text: str, pids: Collection[int]) -> tuple[str, int]:
    """Return the text with a name in place of each such value, and their number."""
    names: dict[str, str] = {}
    count = 0

    def address(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return names.setdefault(found[0], f"[address {len(names) + 1}]")

    def number(found: re.Match[str]) -> str:
        nonlocal count
        if int(found[0]) not in pids:
            return found[0]
        count += 1
        return "[process id]"

    text = _ADDRESS.sub(address, text)
    text, jobs = _JOB.subn(r"\1 [process id]", text)
    text, times = _TIMED.subn(r"\1\2[duration]", text)
    count += jobs + times
    if any(str(pid) in text for pid in pids):
        text = _NUMBER.sub(number, text)
    return text, count
