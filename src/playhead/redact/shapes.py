"""What secrets look like: known shapes of keys and tokens, and names of fields that hold them.

Patterns only; what is done with a hit is `redactor`'s business.
"""

from __future__ import annotations

import re
from functools import cache

# (kind, pattern). The group `s` is the secret itself where the pattern needs context around it.
# Order matters: the first alternative that fits names the kind.
SHAPES: tuple[tuple[str, str], ...] = (
    ("private-key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
    ("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{16,}"),
    ("openai-key", r"\bsk-[A-Za-z0-9_-]{20,}"),
    ("github-token", r"\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{22,}"),
    ("gitlab-token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("aws-key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    ("google-key", r"\bAIza[A-Za-z0-9_-]{35}|\bya29\.[A-Za-z0-9_-]{20,}"),
    ("slack-token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/services/[A-Za-z0-9/]{20,}"),
    ("stripe-key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9]{16,}"),
    ("huggingface-token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("groq-key", r"\bgsk_[A-Za-z0-9]{40,}"),
    ("xai-key", r"\bxai-[A-Za-z0-9]{40,}"),
    ("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi-token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("sendgrid-key", r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    ("azure-key", r"AccountKey=(?P<azure>[A-Za-z0-9+/=]{40,})"),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ("bearer", r"[Bb]earer (?P<bearer>[A-Za-z0-9._~+/=-]{12,})"),
    ("basic", r"[Bb]asic (?P<basic>[A-Za-z0-9+/=]{12,})"),
    ("url-password", r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@\"'\\]*:(?P<url>[^\s/@\"'\\]+)@"),
    (
        "assigned",
        # password=…, "api_key": "…" inside a text: a request body, a shell line, an env dump. The
        # quotes may be escaped: JSON inside JSON is everywhere in tool arguments.
        r"(?i:pass(?:word|wd)|secret(?:_?key)?|api[_-]?key|access_?key|private_?key"
        r"|(?:access|auth|refresh|id|client|session)[_-]?(?:token|secret))"
        r"(?:\\*[\"'])?\s{0,3}[:=]\s{0,3}(?:\\*[\"'])?(?P<assigned>[^\s\"'\\,;&<>{}()\[\]]{6,})",
    ),
)


@cache
def combined() -> re.Pattern[str]:
    """All shapes in one. Compiled when a text looks suspicious for the first time: that takes 3 ms."""
    return re.compile("|".join(f"(?P<k{i}>{shape})" for i, (_, shape) in enumerate(SHAPES)))


INNER = {"azure-key": "azure", "bearer": "bearer", "basic": "basic", "url-password": "url", "assigned": "assigned"}
KINDS = tuple(kind for kind, _ in SHAPES)

# What is left of a text when lowercase letters and blanks are deleted is, for prose, a few per cent
# of it, and every random token leaves a run there: so this pattern runs over almost nothing.
# Deleting joins runs and never splits one. A known shape is missed only if it has fewer than five
# capitals, digits and dashes among its twenty or more characters, prefix included.
DELETED = b"abcdefghijklmnopqrstuvwxyz "
RESIDUE = re.compile(rb"[A-Z0-9_-]{5}")
# Numbers of JSON itself, and lists of them, are no secrets, and every outcome has one (took_ns). What
# follows an unescaped quote and a colon is a member's value, never the inside of a text.
NUMBER = re.compile(rb'(?<=[^\\]":)(?:-?[0-9]+|\[[0-9,]*\])(?=[,}])')

_NAMES = (
    r"authorization|proxy[_-]authorization|cookie|set[_-]cookie|.*api[_-]?key|.*access[_-]?token"
    r"|.*refresh[_-]?token|.*id[_-]token|.*auth[_-]?token|.*session[_-]?token|.*csrf[_-]?token|token"
    r"|.*secret|.*secret[_-]?key|.*secret[_-]?access[_-]?key|.*password|.*passwd|pwd|passphrase"
    r"|.*private[_-]?key|.*credential|credentials|x-amz-security-token|.*_token|.*-token|.*_pat"
)
_SECRET_NAME = re.compile(f"(?:{_NAMES})$", re.IGNORECASE)
_HARMLESS_NAME = re.compile(r"(?:.*_)?(?:page|continuation|next|cursor|pad|eos|bos|sep|unk|stop)_token$", re.IGNORECASE)
_SECRET_VARIABLE = re.compile(r"(?:.*_)?(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|PAT|DSN)$", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Whether a field, header or parameter of that name holds a secret."""
    return bool(_SECRET_NAME.match(name)) and not _HARMLESS_NAME.match(name)


def is_secret_variable(name: str) -> bool:
    """Whether an environment variable of that name holds a secret: wider than for fields, because
    names there are written by people who follow the convention."""
    return bool(_SECRET_VARIABLE.match(name))
