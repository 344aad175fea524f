"""`playhead open`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from urllib.parse import quote

import click

from playhead.cli.common import (
    find_run,
    home_of,
    json_option,
    print_json,
    run_argument,
    store_option,
)
from playhead.cli.watching.serving import needs_extra, serve_until_stopped, server_options
from playhead.errors import UsageError


@click.command("open")
@run_argument
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@server_options
@json_option
@store_option
def command(
    *,
    run: str,
    no_browser: bool,
    host: str,
    port: int | None,
    token: str | None,
    hosts: tuple[str, ...],
    allow_replay: bool,
    as_json: bool,
    store: Path | None,
) -> None:
    """A run as a page in your browser.

    Uses the server of this store if one is running; else starts one, which runs until Ctrl-C.

    \b
    playhead open last
    playhead open last --no-browser     over ssh: forward the port, and open the address there
    """
    try:
        from playhead.views.web.api.start import running
    except ImportError as error:
        raise needs_extra("serve") from error
    found, home = find_run(store, run).resolve(), home_of(store)
    if found.parent != (home / "runs").resolve():
        raise UsageError(f"{found} is not in the store {home}: name its store with --store DIR.")
    path = f"/run/{quote(found.name)}"
    there = running(home)
    if there is None:
        serve_until_stopped(
            home,
            path=path,
            browser=not no_browser,
            as_json=as_json,
            host=host,
            port=port,
            token=token,
            hosts=hosts,
            allow_replay=allow_replay,
        )
        return
    if as_json:
        print_json({"url": there.at(path), "store": str(home)})
    else:
        click.echo(there.at(path))
    if not no_browser:
        webbrowser.open(there.at(path))
