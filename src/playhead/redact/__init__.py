"""Secrets are taken out before anything is written. `redactor` says how, `spans` where they are,
`shapes` and `names` what they look like.
"""

from playhead.redact.redactor import Redactor, SafeKeys
from playhead.redact.streams import StreamCleaner

__all__ = ["Redactor", "SafeKeys", "StreamCleaner"]
