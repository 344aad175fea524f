"""Recognise names of fields, headers and variables that hold secrets. Knows words; does not know values.

Does not use regular expressions: every process of a run checks its variables when it starts, and compiling even these
few patterns would take longer than the rest of the check.
"""

from __future__ import annotations

_JOINTS = ("", "_", "-")
_KEYS = (
    "api",
    "access",
    "private",
    "signing",
    "encryption",
    "account",
    "secret",
    "auth",
    "functions",
)
_TOKENS = (
    *("access", "refresh", "auth", "session", "csrf", "xsrf", "id", "security", "bearer"),
    *("_", "-"),
)
_SECRETS = frozenset(
    {
        *("authorization", "proxy_authorization", "proxy-authorization"),
        *(f"{sent}cookie{two}" for sent in ("", "set_", "set-") for two in ("", "2")),
        *(
            "ocp-apim-subscription-key",
            "token",
            "pwd",
            "x-session",
            "x-session-id",
            "x-goog-iap-jwt-assertion",
        ),
    }
)
_ENDS = (
    # Parameters of presigned requests. `signature` alone is also a field of LLM responses, which must be sent back
    # unchanged.
    *("amz-signature", "amz_signature", "goog-signature", "goog_signature"),
    *(f"{word}{joint}key" for word in _KEYS for joint in _JOINTS),
    *(f"{word}{joint}token" for word in _TOKENS for joint in _JOINTS),
    *("secret", "password", "passwd", "passphrase", "credential", "credentials", "_pat", "-pat"),
)
# Before `_token`: words for counts and lists, which are not secrets.
_COUNTED = frozenset(
    {
        *("page", "continuation", "next", "prev", "cursor", "sync", "resume", "pad", "eos", "bos"),
        *("sep", "unk", "cls", "mask", "stop", "start", "end", "max", "min", "num", "per", "first"),
        *("last", "image", "special", "speech", "text", "input", "output", "cached"),
    }
)
_VARIABLES = frozenset(
    {"key", "token", "passphrase", "pass", "pwd", "credential", "credentials", "pat", "dsn"}
)
_ENDS_OF_VARIABLES = (
    *("password", "passwd", "secret", "apikey", "token"),
    *(f"_{word}" for word in sorted(_VARIABLES)),
)
_NUMERIC = ("password", "passwd", "pwd", "passphrase", "secret", "pin")


def is_secret_name(name: str) -> bool:
    """Return whether a field, header or parameter of that name holds a secret.

    Names in capitals follow the convention of variables.
    """
    if name.isupper() and is_secret_variable(name):
        return True
    low = name.casefold()
    return (low in _SECRETS or low.endswith(_ENDS)) and not _is_counted(low)


def is_secret_variable(name: str) -> bool:
    """Return whether an environment variable of that name holds a secret. The rule is wider than for fields, because
    people follow naming conventions for variables.
    """
    low = name.casefold()
    if low in {"pwd", "oldpwd", "public_key"} or low.endswith("_public_key"):
        return False
    return low in _VARIABLES or low.endswith(_ENDS_OF_VARIABLES)


def may_hold(name: str, item: object) -> bool:
    """Return whether `item`, in a field with the name of a secret, can be a secret. A field named `token` more often
    holds a count (a number) or a word (`{"token": "Hel", "logprob": …}`).
    """
    low = name.casefold()
    if isinstance(item, str):
        is_token = low == "token" or low.endswith(("_token", "-token"))
        return not (is_token and (len(item) < 8 or item.count(" ") > 1))
    if isinstance(item, (int, float)):
        return not isinstance(item, bool) and low.endswith(_NUMERIC)
    return item is not None


def _is_counted(low: str) -> bool:
    """Return whether the name is a harmless one such as `next_page_token` or `eos-token`."""
    if not low.endswith(("_token", "-token")):
        return False
    return low[:-6].replace("-", "_").rpartition("_")[2] in _COUNTED
