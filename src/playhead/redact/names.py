"""Names of fields, headers and variables that hold secrets. Knows words; not values."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"(?:authorization|proxy[_-]authorization|(?:set[_-])?cookie2?"
    r"|.*(?:api|access|private|signing|encryption|account|secret)[_-]?key|ocp-apim-subscription-key"
    r"|.*(?:access|refresh|auth|session|csrf|xsrf|id|security|bearer)[_-]?token|token|.*[_-]token"
    r"|.*secret|.*password|.*passwd|pwd|.*passphrase|.*credentials?|.*[_-]pat)$",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"(?:.*[_-])?(?:page|continuation|next|prev|cursor|sync|resume|pad|eos|bos|sep|unk|cls|mask|stop"
    r"|start|end|max|min|num|per|first|last|image|special|speech|text|input|output|cached)[_-]token$",
    re.IGNORECASE,
)
_VARIABLE = re.compile(
    r"(?:(?:.*_)?(?:KEY|TOKEN|PASSPHRASE|PASS|PWD|CREDENTIALS?|PAT|DSN)"
    r"|.*(?:PASSWORD|PASSWD|SECRET|APIKEY|TOKEN))$",
    re.IGNORECASE,
)
_HARMLESS_VARIABLE = re.compile(r"(?:OLD)?PWD|(?:.*_)?PUBLIC_KEY", re.IGNORECASE)
_NUMERIC = re.compile(r".*(?:password|passwd|pwd|passphrase|secret|pin)$", re.IGNORECASE)
_TOKEN = re.compile(r"(?:.*[_-])?token$", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Whether a field, header or parameter of that name holds a secret.

    Names in capitals follow the convention of variables.
    """
    if name.isupper() and is_secret_variable(name):
        return True
    return bool(_SECRET.match(name)) and not _HARMLESS.match(name)


def is_secret_variable(name: str) -> bool:
    """Whether an environment variable of that name holds a secret: wider than for fields, because
    names there are written by people who follow the convention.
    """
    return bool(_VARIABLE.match(name)) and not _HARMLESS_VARIABLE.fullmatch(name)


def may_hold(name: str, item: object) -> bool:
    """Whether `item`, in a field of a secret's name, can be one. Tokens are counted (a number) and
    listed (a word: `{"token": "Hel", "logprob": …}`) far more often than they are kept.
    """
    if isinstance(item, str):
        return not (_TOKEN.match(name) and (len(item) < 8 or item.count(" ") > 1))
    if isinstance(item, (int, float)):
        return not isinstance(item, bool) and bool(_NUMERIC.match(name))
    return item is not None
