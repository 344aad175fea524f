"""`playhead serve`."""

from __future__ import annotations

from pathlib import Path

import click

from playhead.cli.common import home_of, json_option, store_option
from playhead.cli.watching.serving import serve_until_stopped, server_options


@click.command("serve")
@server_options
@click.option("--open", "browser", is_flag=True, help="Open the page in a browser.")
@json_option
@store_option
def command(
    *,
    host: str,
    port: int | None,
    token: str | None,
    hosts: tuple[str, ...],
    allow_replay: bool,
    browser: bool,
    as_json: bool,
    store: Path | None,
) -> None:
    """The library as a page, and as an API for programs.

    Listens to this machine alone, unless told otherwise. /api/openapi.json describes the API.

    \b
    playhead serve --open
    playhead serve --port 8000 --store ./tapes
    playhead serve --host 0.0.0.0 --token auto
    curl -s localhost:7411/api/recordings?status=failed | jq '.runs[].id'
    """
    serve_until_stopped(
        home_of(store),
        path="/",
        browser=browser,
        as_json=as_json,
        host=host,
        port=port,
        token=token,
        hosts=hosts,
        allow_replay=allow_replay,
    )
