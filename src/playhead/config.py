"""The user's settings. Arguments override variables, which override `playhead.toml` / `[tool.playhead]`, which override
defaults. Knows names and types of settings; does not know their effects.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError
from playhead.events import LEVELS, Level
from playhead.host.later import Later
from playhead.host.project import is_there
from playhead.tape.store import default_home

if TYPE_CHECKING:
    import difflib
else:
    difflib = Later("difflib")  # for one message only

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a recording, with their defaults."""

    record: bool | None = None
    level: Level = "full"
    home: Path = field(default_factory=default_home)
    name: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    redact: bool = True
    redact_patterns: tuple[str, ...] = ()
    redact_names: tuple[str, ...] = ()
    # Names and kinds of values that are not redacted.
    redact_keep: tuple[str, ...] = ()
    # Whether recordings keep redacted secrets in a vault.
    vault: bool = False
    # Where the key of vaults is: in a file of the user's store, or in the user's keyring.
    vault_key: str = "file"
    # Programs that get a shim; None: the usual ones, for commands that are not Python.
    shims: tuple[str, ...] | None = None
    # Whether those shims also replace the real paths.
    shim_mounts: bool = False
    # Whether the files of the project are recorded, and which folders beside it.
    workspace: bool = True
    workspaces: tuple[str, ...] = ()
    # The shared store: s3://bucket/prefix, gs://, az:// or file:///.
    remote: str | None = None
    # Sections of other modules (`replay`, `prices`, `effects`, `retention`…), unchanged.
    sections: Mapping[str, Any] = field(default_factory=dict)
    source: Path | None = None


def load(cwd: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings for this folder. ConfigError names the setting and the place."""
    members, source = _file(cwd or _here())
    _refuse_unknown(members, source)
    known: dict[str, Any] = {}
    for name, convert in _SETTINGS.items():
        if name in members:
            known[name] = convert(name, members[name], source)
    redact = members.get("redact")
    if isinstance(redact, dict):
        known["redact"] = _flag("redact.enabled", redact.get("enabled", True), source)
        known["redact_patterns"] = _strings("redact.patterns", redact.get("patterns", []), source)
        known["redact_names"] = _strings("redact.names", redact.get("names", []), source)
        known["redact_keep"] = _strings("redact.keep", redact.get("keep", []), source)
        known["vault"] = _flag("redact.vault", redact.get("vault", False), source)
        known["vault_key"] = _vault_key(redact.get("vault_key", "file"), source)
    elif redact is not None:
        known["redact"] = _flag("redact", redact, source)
    folders = members.get("workspace")
    if isinstance(folders, list):
        known["workspaces"] = _strings("workspace", folders, source)
    elif folders is not None:
        known["workspace"] = _flag("workspace", folders, source)
    store = members.get("store")
    if isinstance(store, dict):
        if "path" in store:
            known["home"] = _store(store["path"], source)
        if "remote" in store:
            known["remote"] = _text("store.remote", store["remote"], source)
    elif store is not None:
        known["home"] = _store(store, source)
    if environ.get("PLAYHEAD_REMOTE"):
        known["remote"] = environ["PLAYHEAD_REMOTE"]
    if environ.get("PLAYHEAD_HOME"):
        known["home"] = default_home(environ)
    if "PLAYHEAD_RECORD" in environ:
        known["record"] = _flag("PLAYHEAD_RECORD", environ["PLAYHEAD_RECORD"], None)
    if environ.get("PLAYHEAD_LEVEL"):
        known["level"] = _level("PLAYHEAD_LEVEL", environ["PLAYHEAD_LEVEL"], None)
    sections = {name: item for name, item in members.items() if isinstance(item, dict)}
    return Settings(**known, sections=sections, source=source)


def origins(cwd: Path | None = None, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the origin of each setting that does not have its default: the variable, or the file."""
    members, source = _file(cwd or _here())
    found: dict[str, str] = {}
    for name, value in members.items():
        inner = value if isinstance(value, dict) else {}
        for one in (name, f"[{name}]", *(f"{name}.{member}" for member in inner)):
            found[one] = str(source)
    if isinstance(members.get("workspace"), list):
        found["workspace (more folders)"] = found.pop("workspace")
    if isinstance(members.get("redact"), bool):
        found["redact.enabled"] = str(source)
    if isinstance(store := members.get("store"), dict) and "path" not in store:
        del found["store"]
    return found | {name: one for one, name in _VARIABLES.items() if environ.get(one)}


_VARIABLES = {
    "PLAYHEAD_HOME": "store",
    "PLAYHEAD_RECORD": "record",
    "PLAYHEAD_LEVEL": "level",
    "PLAYHEAD_REMOTE": "store.remote",
    "PLAYHEAD_LIBRARY_URL": "library.url",
}

# Members of each table; None: any name.
_TABLES: dict[str, tuple[str, ...] | None] = {
    "tags": None,
    "redact": ("enabled", "patterns", "names", "keep", "vault", "vault_key"),
    "store": ("path", "remote", "cache"),
    "prices": None,
    "effects": None,
    "replay": ("ignore",),
    "batch": ("invariants",),
    "library": ("url",),
    "retention": ("older_than", "keep", "max_size", "auto"),
}


def _refuse_unknown(members: Mapping[str, Any], source: Path | None) -> None:
    """Raise ConfigError for a name that no setting has: a typing error would otherwise change nothing, silently."""
    for name, value in members.items():
        if name not in _TABLES:
            if name not in _SETTINGS and name != "workspace":
                raise _unknown(name, (*_SETTINGS, "workspace", *_TABLES), source)
            continue
        inner = _TABLES[name]
        if not isinstance(value, dict):
            if name not in ("redact", "store"):
                raise _wrong(name, value, "a table of names and values", source)
        elif inner is not None:
            for one in value:
                if one not in inner:
                    known = [f"{name}.{other}" for other in inner]
                    raise _unknown(f"{name}.{one}", known, source)


def _unknown(name: str, known: Sequence[str], source: Path | None) -> ConfigError:
    near = difflib.get_close_matches(name, known, 1, cutoff=0.5)
    meant = (
        f" Did you mean {near[0]!r}?" if near else f" Expected one of {', '.join(sorted(known))}."
    )
    place = f"{source}: " if source else ""
    return ConfigError(f"{place}{name!r} is not a setting.{meant}", path=str(source or "") or None)


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError:  # deleted under the program
        return Path("/")


def _file(cwd: Path) -> tuple[dict[str, Any], Path | None]:
    """Return the nearest `playhead.toml`, or `[tool.playhead]`, from here up to the project's root."""
    for folder in (cwd, *cwd.parents):
        own, shared = folder / "playhead.toml", folder / "pyproject.toml"
        if is_there(own):
            return _toml(own), own
        if is_there(shared):
            tools = _toml(shared).get("tool")
            section = tools.get("playhead") if isinstance(tools, dict) else None
            if isinstance(section, dict):
                return section, shared
        if is_there(folder / ".git"):
            break
    return {}, None


def _toml(path: Path) -> dict[str, Any]:
    try:
        tomllib: Any = import_module("tomllib")  # 3 ms, and many projects have no such file
    except ImportError:
        return {}  # CPython 3.10: Playhead is a guest there, and the launcher has read the file already
    try:
        members: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if path.name == "pyproject.toml":
            return {}  # another tool's file, which that tool checks
        raise ConfigError(f"{path} cannot be read: {error}", path=str(path)) from None
    return members


def _wrong(name: str, value: Any, expected: str, source: Path | None) -> ConfigError:
    place = f"{source}: " if source else ""
    return ConfigError(
        f"{place}{name} is {value!r}; expected {expected}.", path=str(source or "") or None
    )


def _flag(name: str, value: Any, source: Path | None) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise _wrong(name, value, "true or false", source)


def _vault_key(value: Any, source: Path | None) -> str:
    if value in ("file", "keyring"):
        return str(value)
    raise _wrong("redact.vault_key", value, '"file" or "keyring"', source)


def _level(name: str, value: Any, source: Path | None) -> Level:
    for level in LEVELS:
        if value == level:
            return level
    raise _wrong(name, value, f"one of {', '.join(LEVELS)}", source)


def _text(name: str, value: Any, source: Path | None) -> str:
    if isinstance(value, str):
        return value
    raise _wrong(name, value, "a text", source)


def _strings(name: str, value: Any, source: Path | None) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise _wrong(name, value, "a list of texts", source)


def _tags(name: str, value: Any, source: Path | None) -> dict[str, str]:
    if isinstance(value, dict):
        return {str(key): str(item) for key, item in value.items()}
    raise _wrong(name, value, "a table of names and values", source)


def _store(value: Any, source: Path | None) -> Path:
    path = Path(_text("store", value, source)).expanduser()
    return path if path.is_absolute() or source is None else source.parent / path


def _shims(name: str, value: Any, source: Path | None) -> tuple[str, ...] | None:
    """Return a list of names; false means none, true means the usual ones."""
    if isinstance(value, bool):
        return None if value else ()
    return _strings(name, value, source)


_SETTINGS = {
    "record": _flag,
    "level": _level,
    "name": _text,
    "tags": _tags,
    "shims": _shims,
    "shim_mounts": _flag,
}
