"""`playhead config`: the settings that apply in this folder, and where each of them comes from."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from playhead import config
from playhead.cli.common import json_option, print_json
from playhead.views.text.safe import one_line


@click.command("config")
@json_option
def command(*, as_json: bool) -> None:
    """Print the settings that apply in this folder, and where each comes from.

    \b
    playhead config
    playhead config --json | jq -r .settings.store.value

    A setting comes from an environment variable, from playhead.toml or [tool.playhead] in pyproject.toml,
    or is the default.
    """
    settings = config.load()
    origins = config.origins()
    rows = {
        name: (_plain(value), origins.get(name, "default")) for name, value in _values(settings)
    }
    if as_json:
        members = {name: {"value": value, "from": origin} for name, (value, origin) in rows.items()}
        print_json({"file": str(settings.source) if settings.source else None, "settings": members})
        return
    source = settings.source or "none (no playhead.toml, no [tool.playhead] in pyproject.toml)"
    click.echo(f"config file: {source}")
    width = max(len(name) for name in rows)
    values = {name: one_line(_shown(value), 60) for name, (value, _) in rows.items()}
    room = max(len(value) for value in values.values())
    for name, (_, origin) in rows.items():
        click.echo(f"{name:<{width}}  {values[name]:<{room}}  {one_line(origin, 200)}")


def _values(settings: config.Settings) -> list[tuple[str, Any]]:
    """Each setting by the name that the config file gives it."""
    found: list[tuple[str, Any]] = []
    for one in dataclasses.fields(settings):
        value = getattr(settings, one.name)
        if one.name == "sections":
            found += [(f"[{name}]", item) for name, item in value.items() if name not in _OWN]
            found.append(("library.url", _catalogue(settings)))
        elif one.name != "source":
            found.append((_NAMES.get(one.name, one.name), value))
    return found


def _catalogue(settings: config.Settings) -> str | None:
    """The address of the catalogue, without its password."""
    from playhead.library.catalogue_url import configured_url, masked

    url = configured_url(settings)
    return None if url is None else masked(url)


# Members of Settings with another name in the file, and sections that are members of their own.
_NAMES = {
    "home": "store",
    "remote": "store.remote",
    "redact": "redact.enabled",
    "redact_patterns": "redact.patterns",
    "redact_names": "redact.names",
    "redact_keep": "redact.keep",
    "vault": "redact.vault",
    "vault_key": "redact.vault_key",
    "workspaces": "workspace (more folders)",
}
_OWN = ("tags", "redact", "store", "library")


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if hasattr(value, "keys") else value


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(str(one) for one in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} = {item}" for key, item in value.items()) or "none"
    return str(value)
