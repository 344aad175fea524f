"""What `serve` and `open` share: options, and a server until somebody stops it. Knows the terminal."""

from __future__ import annotations

import gc
import re
import signal
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.request import Request, urlopen

import click

from playhead.cli.common import overrides, print_json
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.views.web.api.start import Address

_TOKEN = re.compile(r"[A-Za-z0-9._~-]{8,}")
F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS",
        help="Listen there. Any other than this machine needs --token.",
    ),
    click.option(
        "--port", type=click.IntRange(0, 65535), help="Default: 7411, or another if that is taken."
    ),
    click.option(
        "--token", metavar="TOKEN", help="Only for those who know it; `auto` makes one."
    ),
    click.option(
        "--allow-host", "hosts", multiple=True, metavar="NAME",
        help="A name by which the server is reached.",
    ),
    click.option("--allow-replay", is_flag=True, help="Let pages run recorded commands again."),
)  # fmt: skip


def server_options(function: F) -> F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def needs_extra(name: str) -> UsageError:
    return UsageError(
        f"This needs the extra {name!r}: `pip install 'playhead[{name}]'`, "
        f"or `uv tool install 'playhead[{name}]'`."
    )


def serve_until_stopped(
    home: Path,
    *,
    path: str,
    browser: bool,
    as_json: bool = False,
    host: str,
    port: int | None,
    token: str | None,
    hosts: tuple[str, ...],
    allow_replay: bool,
) -> None:
    """Says where, opens a browser if wanted, and serves until Ctrl-C."""
    try:
        from playhead.views.web.api import start
        from playhead.views.web.api.app import app
    except ImportError as error:
        raise needs_extra("serve") from error
    local = start.is_loopback(host)
    known = start.new_token() if token == "auto" else _checked(token, host, local=local)  # noqa: S105  a word
    listener = start.listen(host, port)
    address = start.Address(host=host, port=listener.getsockname()[1], token=known)
    application = app(
        home,
        token=known,
        allow_replay=allow_replay,
        hosts=(*hosts, *(() if local else (host,))),
        any_address=not local,
        prices=overrides(),
    )
    server = start.server_for(application)
    # Stories are large, live long and have no circles: looking through them for some again and again
    # takes a quarter of the time that telling one takes.
    gc.set_threshold(100_000, 50, 1000)
    # To die of it would leave word of a server that is gone.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with start.announced(home, address):
        _say(address, path, home, as_json=as_json)
        if path != "/":
            # While the browser starts: a long run takes some seconds to be told.
            _beside(partial(_prefetch, address, path))
        if browser:
            _beside(partial(webbrowser.open, address.at(path)))
        start.run_until_interrupted(server, listener)


def _checked(token: str | None, host: str, *, local: bool) -> str | None:
    if token is None and not local:
        raise UsageError(
            f"Everybody who reaches {host} could read every run. Say --token auto, or --token TOKEN."
        )
    if token is not None and not _TOKEN.fullmatch(token):
        raise UsageError(
            "A token has at least 8 letters, digits, '.', '_', '~' or '-'. `--token auto` makes one."
        )
    return token


def _beside(work: Callable[[], object]) -> None:
    """In a thread that nobody waits for."""
    Thread(target=work, daemon=True).start()


def _prefetch(address: Address, path: str) -> None:
    run = path.rpartition("/")[2]
    asked = Request(f"{address.url}/api/recordings/{run}")  # noqa: S310  our own address
    if address.token is not None:
        asked.add_header("Authorization", f"Bearer {address.token}")
    with suppress(OSError), urlopen(asked) as answer:  # noqa: S310  as above
        answer.read()


def _say(address: Address, path: str, home: Path, *, as_json: bool) -> None:
    if as_json:
        print_json({"url": address.at(path), "store": str(home)})
        return
    click.echo(f"Playhead serves {home}")
    click.echo(f"  {address.at(path)}")
    click.echo("  Ctrl-C stops it.")
