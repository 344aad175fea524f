"""What a snapshot leaves out, and why. Knows names and sizes; reads no files."""

from __future__ import annotations

import os
from dataclasses import dataclass

# Above, a file that the project's repository does not track is named, not stored.
LARGEST_FILE = 64 * 1024 * 1024
# Above, a file that git ignores is named, not stored.
LARGEST_IGNORED = 1024 * 1024
MOST_ENTRIES = 400_000
# How long a snapshot may keep a command from starting.
LONGEST_S = 20.0
# How many of the files that were left out are named; the rest is counted.
MOST_NAMED = 200

# Folders that programs rebuild from what is in the workspace.
_DERIVED = frozenset(
    {
        *(b"node_modules", b"__pycache__", b".venv", b".tox", b".nox", b".cache", b".gradle"),
        *(b".mypy_cache", b".pytest_cache", b".ruff_cache", b".hypothesis", b".ipynb_checkpoints"),
    }
)
# Folders that are never one project.
_SHARED = frozenset(
    os.fsencode(one)
    for one in (
        *("/", "/tmp", "/var/tmp", "/var", "/usr", "/etc", "/home", "/Users", "/root", "/opt"),  # noqa: S108
        *("/dev", "/proc", "/sys", "/run", "/mnt", "/media", "/bin", "/sbin", "/lib", "/boot"),
    )
)
_SECRET_NAMES = frozenset(
    {
        *(b".env", b".netrc", b".pgpass", b".npmrc", b".pypirc", b".htpasswd", b"credentials"),
        *(b"id_rsa", b"id_dsa", b"id_ecdsa", b"id_ed25519", b"secrets.toml", b"secrets.yaml"),
        *(b"secrets.yml", b"secrets.json", b"credentials.json", b".git-credentials"),
    }
)
_SECRET_ENDS = (b".pem", b".key", b".p12", b".pfx", b".jks", b".keystore", b".kdbx", b".ppk")
# Templates that are meant to be shared.
_SHARED_ENDS = (b".example", b".sample", b".template", b".dist")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or folder that is not in the snapshot."""

    path: bytes
    why: str


def is_derived(name: bytes) -> bool:
    return name in _DERIVED


def is_secret(path: bytes) -> bool:
    """Whether a file is named like one that holds secrets: its hash is recorded, not its content."""
    name = path.rpartition(b"/")[2].lower()
    if path.startswith(b".git/") or name.endswith(_SHARED_ENDS):
        return False
    return name in _SECRET_NAMES or name.startswith(b".env.") or name.endswith(_SECRET_ENDS)


def why_refused(folder: str) -> str | None:
    """Why a folder is not taken for a workspace; None: it is one."""
    real = os.fsencode(os.path.realpath(folder))
    home = os.fsencode(os.path.realpath(os.path.expanduser("~")))
    if real == home:
        return (
            "it is the home folder; run the agent in a project folder, or name one with --workspace"
        )
    if real in _SHARED or home.startswith(real.rstrip(b"/") + b"/"):
        return "it is shared by many programs; run the agent in a project folder, or name one with --workspace"
    if not os.path.isdir(folder):
        return "it is not a folder"
    return None
