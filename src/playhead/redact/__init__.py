"""Redact secrets before anything is written. `redactor` replaces them, `spans` finds them, `shapes` and `names`
describe them.
"""

from playhead.redact.redactor import Redactor
from playhead.redact.safe_keys import SafeKeys
from playhead.redact.streams import StreamCleaner

__all__ = ["Redactor", "SafeKeys", "StreamCleaner"]
