"""Access tokens of a shared server: a role for each person, links to one run that expire, and the audit log.

    STORE/access.json     tokens, as SHA-256: the token itself is shown once, when it is made
    STORE/audit.jsonl     one line per change, refusal and sign-in; only ever appended to

Knows these two files; not HTTP. A token has 192 random bits, so a plain hash of it cannot be reversed by guessing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from playhead import clock
from playhead.errors import StoreError, UsageError
from playhead.host.later import pattern
from playhead.host.private_files import file_of, read_regular, replace_file
from playhead.tape.store import open_store

Role = Literal["read", "annotate", "admin"]
# In order: each role may do everything that the roles before it may.
ROLES: tuple[Role, ...] = get_args(Role)
FILE = "access.json"
AUDIT = "audit.jsonl"
_VERSION = 1
_LARGEST = 4 * 1024 * 1024
_MOST_TOKENS = 10_000
_NAME = pattern(r"[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]{0,79}")
_LONGEST_LINE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The rights of a token. A share link has a `run`, and gives rights to that run alone."""

    name: str
    role: Role
    run: str | None = None

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A token without its text. `expires_ns`: None for a token that does not expire."""

    id: str
    name: str
    role: Role
    sha256: str
    made_ns: int
    expires_ns: int | None = None
    run: str | None = None

    @property
    def access(self) -> Access:
        return Access(name=self.name, role=self.role, run=self.run)

    def is_valid(self, now_ns: int) -> bool:
        return self.expires_ns is None or now_ns < self.expires_ns


class AccessTokens:
    """The tokens of one store. A server sees changes at the next request."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self._home = home
        self._read: tuple[object, dict[str, AccessToken]] = (None, {})

    def access_of(self, text: str) -> Access | None:
        """Return the access that this token gives. None: it is unknown, revoked or expired."""
        found = self._tokens().get(_sha256(text))
        return found.access if found is not None and found.is_valid(clock.wall_ns()) else None

    def all(self) -> list[AccessToken]:
        """All tokens that have not expired, oldest first."""
        now = clock.wall_ns()
        return [one for one in self._tokens().values() if one.is_valid(now)]

    def make(
        self, name: str, role: Role, *, expires_s: float | None = None, run: str | None = None
    ) -> tuple[str, AccessToken]:
        """Make a token. Return its text, which is stored nowhere, and its record. UsageError: the name cannot be
        used.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"A token cannot be named {name[:80]!r}; expected 1 to 80 printable characters."
            )
        now = clock.wall_ns()
        text = new_token()
        made = AccessToken(
            id=clock.urandom(4).hex(),
            name=name,
            role=role,
            sha256=_sha256(text),
            made_ns=now,
            expires_ns=None if expires_s is None else now + int(expires_s * 1e9),
            run=run,
        )

        def add(tokens: list[AccessToken]) -> list[AccessToken]:
            if len(tokens) >= _MOST_TOKENS:
                raise UsageError(f"{self._path} has {len(tokens):,} tokens. Revoke some of them.")
            return [*tokens, made]

        self._change(add)
        return text, made

    def revoke(self, asked: str) -> list[AccessToken]:
        """Revoke the token with this id, or all tokens of this name. Return the revoked tokens."""
        gone: list[AccessToken] = []

        def remove(tokens: list[AccessToken]) -> list[AccessToken]:
            gone.extend(one for one in tokens if asked in (one.id, one.name))
            return [one for one in tokens if one not in gone]

        self._change(remove)
        return gone

    def _tokens(self) -> dict[str, AccessToken]:
        """Read the tokens, by hash. StoreError: the file cannot be read, so no token gives access."""
        try:
            state = self._path.lstat()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StoreError(f"{self._path} cannot be read ({error.strerror}).") from None
        key = (state.st_ino, state.st_size, state.st_mtime_ns)
        if self._read[0] != key:
            self._read = (key, {one.sha256: one for one in _decoded(self._path)})
        return self._read[1]

    def _change(self, change: Callable[[list[AccessToken]], list[AccessToken]]) -> None:
        open_store(self._home)
        with _locked(self._home / f"{FILE}.lock"):
            now = clock.wall_ns()
            before = [one for one in self._tokens().values() if one.is_valid(now)]
            members = {"version": _VERSION, "tokens": [asdict(one) for one in change(before)]}
            replace_file(self._path, json.dumps(members, ensure_ascii=False, indent=1).encode())


def _decoded(path: Path) -> list[AccessToken]:
    try:
        members = json.loads(read_regular(path, _LARGEST))
        if members["version"] > _VERSION:
            raise StoreError(f"{path} was written by a newer Playhead. Update this one.")
        tokens = [AccessToken(**one) for one in members["tokens"]]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise StoreError(f"{path} is not a file of access tokens ({error}).") from None
    return [one if one.role in ROLES else replace(one, role="read") for one in tokens]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def new_token() -> str:
    return clock.urandom(24).hex()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class AuditLog:
    """Who did what on the server, and when."""

    def __init__(self, home: Path) -> None:
        self._path = home / AUDIT

    def note(self, who: Access, what: str, **more: Any) -> None:
        """Append a line. OSError: the log cannot be written."""
        members = {
            "at": clock.iso(clock.wall_ns()),
            "who": who.name,
            "role": who.role,
            "what": what,
            **more,
        }
        line = json.dumps(members, ensure_ascii=False).encode("utf-8", "backslashreplace")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(self._path, flags, 0o600)
        try:
            os.write(fd, line + b"\n")  # in one write: lines of several processes do not mix
        finally:
            os.close(fd)

    def last(self, number: int) -> list[Mapping[str, Any]]:
        """The newest lines, oldest first."""
        try:
            with file_of(self._path) as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - number * _LONGEST_LINE))
                lines = file.read().splitlines()[-number:]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self._path} cannot be read ({error.strerror}).") from None
        found: list[Mapping[str, Any]] = []
        for line in lines:
            try:
                members = json.loads(line)
            except ValueError:
                continue  # cut off by a full disk
            if isinstance(members, dict):
                found.append(members)
        return found
