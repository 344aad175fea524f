"""Data with holes in it: spelled as JSON once, the long way, and filled many times.

What a client says with each request, or what is said of each call of a tool, is the same but for one
value or two. Knows where the holes come to lie; not what goes into them.
"""

from __future__ import annotations

from typing import Any

from playhead import events
from playhead.recording.recorder import Recorder

# Stands for the value that is not known yet. No host writes this, and nobody takes it for a secret.
HOLE = "\x00hole\x00"
_SPELLED = b'"\\u0000hole\\u0000"'
# A longer one is better made anew than kept.
_LONGEST = 8 * 1024


def around(recorder: Recorder, call: dict[str, Any], holes: int) -> list[bytes] | None:
    """What the event of a call says around so many holes; None: not all of them can be found in it."""
    encoded = recorder.spell(events.CALL, call)
    pieces = encoded.split(_SPELLED)
    return pieces if len(pieces) == holes + 1 and len(encoded) <= _LONGEST else None
