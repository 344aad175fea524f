"""Where the catalogue of a store is: in the store's own SQLite file, or on a PostgreSQL server. Knows settings only.

A catalogue has the text of all runs. A project's file may come with a cloned repository, so a server that it names gets
nothing before the user has agreed; a server that an environment variable names is the user's own choice.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from playhead import config
from playhead.errors import ConfigError, UsageError
from playhead.tape.origin import is_trusted, trust
from playhead.tape.store import open_store, private_key

VARIABLE = "PLAYHEAD_LIBRARY_URL"
_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
_ID = "store.id"


def catalogue_url(home: Path, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the address of the server, for SQLAlchemy. None: the catalogue is in the store's own file.

    Only the configured store has its catalogue on the server: an opened bundle or another folder has a file.
    UsageError: the user has not agreed yet.
    """
    settings = config.load(environ=environ)
    url = configured_url(settings, environ)
    if url is None or home.absolute() != settings.home.absolute():
        return None
    if not environ.get(VARIABLE) and not is_trusted(_digest(url), environ):
        raise UsageError(
            f"{settings.source} puts the catalogue, with the text of all your runs, on {masked(url)}. If that is "
            f"right, run `playhead reindex --trust` once, or set {VARIABLE}."
        )
    return url


def configured_url(
    settings: config.Settings, environ: Mapping[str, str] = os.environ
) -> str | None:
    """Return the address in the settings, whether the user has agreed to it or not."""
    section = settings.sections.get("library", {})
    url = environ.get(VARIABLE) or section.get("url")
    if not url:
        return None
    scheme, colon, rest = str(url).partition("://")
    if not isinstance(url, str) or scheme not in _SCHEMES or not colon:
        shown = masked(url) if isinstance(url, str) else repr(url)
        raise ConfigError(
            f"library.url is {shown}; expected postgresql://user@host/database. Put the password into PGPASSWORD "
            "or ~/.pgpass."
        )
    return f"postgresql+psycopg://{rest}"


def agree_to(url: str) -> None:
    """Remember that the user agrees to keep the catalogue there."""
    trust(_digest(url))


def _digest(url: str) -> str:
    return hashlib.sha256(f"catalogue {url}".encode()).hexdigest()


def masked(url: str) -> str:
    """Return the address without its password."""
    try:
        parts = urlsplit(url)
        if parts.password is None:
            return url
        place = parts.netloc.rpartition("@")[2]
        return urlunsplit(parts._replace(netloc=f"{parts.username}:***@{place}"))
    except ValueError:
        return "(not an address)"


def schema_of(home: Path) -> str:
    """Return the schema of this store on the server: stores of several machines share a database without mixing.

    It is derived from an id in the store's folder, so a store on a network disk is one store for every machine.
    """
    key = private_key(open_store(home), _ID)
    return f"playhead_{hashlib.sha256(key).hexdigest()[:16]}"
