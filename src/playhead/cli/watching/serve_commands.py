"""`playhead serve`, `open` and `ui`: the viewer in the browser, run until Ctrl-C, and the one in the terminal."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial, wraps
from ipaddress import ip_address, ip_network
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import click

from playhead.cli.common import home_of, json_option, overrides, print_json, store_option
from playhead.cli.run_names import find_run_anywhere, run_argument
from playhead.errors import UsageError
from playhead.host.project import project_of
from playhead.tape.manifest import read_manifest
from playhead.tape.reading.partial_run import FOLDER as PARTIAL
from playhead.tape.reading.partial_run import connect_with, is_partial
from playhead.views.web.access_tokens import new_token

if TYPE_CHECKING:
    from playhead.views.web.api.shared_runs import SharedRuns
    from playhead.views.web.api.start import Address, Wire


_ROOT = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_TOKEN = re.compile(r"[A-Za-z0-9._~-]{8,}")

_OPTIONS = (
    click.option(
        "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS",
        help="Listen on this address.",
    ),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        metavar="N",
        help="Port. Default: 7411, or another one if it is in use.",
    ),
    click.option(
        "--token", metavar="TOKEN", default="auto",
        help="Require this token. Default: a new one, which is part of the printed address.",
    ),
    click.option("--no-token", is_flag=True, help="Serve every user of this machine. Only on loopback."),
    click.option(
        "--allow-host", "hosts", multiple=True, metavar="NAME",
        help="Accept this host name in requests.",
    ),
    click.option(
        "--tls-cert", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
        help="Serve HTTPS with this certificate (PEM); needs --tls-key.",
    ),
    click.option(
        "--tls-key", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
        help="Private key of the certificate (PEM).",
    ),
    click.option(
        "--trust-proxy", "proxies", multiple=True, metavar="ADDRESS",
        help="Trust the X-Forwarded headers of a reverse proxy at this address or network.",
    ),
    click.option(
        "--root-path", default="", metavar="PATH",
        help="Path below which a reverse proxy shows this server, such as /playhead.",
    ),
    click.option("--allow-replay", is_flag=True, help="Allow clients to start replays of recorded commands."),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The options that `serve` and `open` share, by the names of their parameters."""

    host: str
    port: int | None
    token: str
    no_token: bool
    hosts: tuple[str, ...]
    allow_replay: bool
    tls_cert: str | None
    tls_key: str | None
    proxies: tuple[str, ...]
    root_path: str


def server_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a server to a command, which gets them as its parameter `server`."""
    names = [one.name for one in fields(ServerOptions)]

    @wraps(function)
    def command(**given: Any) -> None:
        server = ServerOptions(**{name: given.pop(name) for name in names})
        function(server=server, **given)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command


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
    server: ServerOptions,
    remote: str | None = None,
) -> None:
    """Print the address, open a browser if wanted, and serve until Ctrl-C."""
    try:
        from playhead.views.web.api import start
        from playhead.views.web.api.api_app import app
    except ImportError as error:
        raise needs_extra("serve") from error
    shared = None if remote is None else _shared(remote, home)
    if shared is not None or (home / PARTIAL).is_dir():  # a cache of a shared store
        from playhead.remote.partial_runs import Connections

        connect_with(Connections().connect)
    known, wire, root = _checked(server), _wire(server), _checked_root(server.root_path)
    listener = start.listen(server.host, server.port)
    address = start.Address(
        host=server.host,
        port=listener.getsockname()[1],
        token=known,
        scheme=wire.scheme,
        root_path=root,
    )
    local = start.is_loopback(server.host)
    application = app(
        home,
        token=known,
        allow_replay=server.allow_replay,
        hosts=(*server.hosts, *(() if local else (server.host,))),
        any_address=not local,
        prices=overrides(),
        root_path=root,
        shared=shared,
    )
    running = start.server_for(application, wire)
    # Stories are large, long-lived and free of cycles: with the default thresholds, the garbage collector takes a
    # quarter of the time of building one.
    gc.set_threshold(100_000, 50, 1000)
    # Clean up on SIGTERM, too: the file that announces this server must not outlive it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with start.announced(home, address):
        _say(address, path, home, as_json=as_json)
        run = home / "runs" / path.rpartition("/")[2]
        if path != "/" and not is_partial(run):
            # A long run takes seconds to load: start while the browser does.
            _beside(partial(_prefetch, address, path))
        if browser:
            _beside(partial(webbrowser.open, address.at(path)))
        ended = start.run_until_interrupted(running, listener)
    if not ended:
        # Python sometimes crashes when it shuts down while an event loop is running.
        sys.stdout.flush()
        os._exit(0)


def _shared(remote: str, home: Path) -> SharedRuns:
    from playhead.cli.shared_store import cache_limit, shared_store
    from playhead.views.web.api.shared_runs import SharedRuns

    there = shared_store(remote or None)
    next(
        iter(there.list("runs")), None
    )  # wrong credentials are an error now, not in a browser later
    return SharedRuns(there.url, home, lambda: shared_store(there.url), cache_limit())


def _wire(server: ServerOptions) -> Wire:
    from playhead.views.web.api.start import Wire

    if (server.tls_cert is None) != (server.tls_key is None):
        raise UsageError("HTTPS needs both --tls-cert and --tls-key.")
    proxies = tuple(_checked_proxy(one) for one in server.proxies)
    return Wire(certificate=server.tls_cert, key=server.tls_key, proxies=proxies)


def _checked(server: ServerOptions) -> str | None:
    """Return the token that clients must send. None: --no-token, which is for loopback alone."""
    from playhead.views.web.api.start import is_loopback

    if server.no_token:
        if is_loopback(server.host):
            return None
        raise UsageError(
            f"Everyone who can reach {server.host} could read every run. Leave --no-token out."
        )
    token = server.token
    if token == "auto":  # noqa: S105  a word
        return new_token()
    if not _TOKEN.fullmatch(token):
        raise UsageError(
            "A token has at least 8 letters, digits, '.', '_', '~' or '-'. `--token auto` generates one."
        )
    return token


def _checked_root(path: str) -> str:
    """Return the path without a slash at its end. It becomes a part of pages, redirects and cookies."""
    root = path.rstrip("/")
    if root and not _ROOT.fullmatch(root):
        raise UsageError(
            f"{path!r} is not a path for --root-path. Expected letters, digits, '.', '_', '~' and '-' after "
            "slashes, such as /playhead."
        )
    return root


def _checked_proxy(address: str) -> str:
    try:
        return str(ip_network(address)) if "/" in address else str(ip_address(address))
    except ValueError:
        raise UsageError(
            f"{address!r} is not an address for --trust-proxy. Expected an IP address or a network, such as "
            "10.0.0.7 or 10.0.0.0/24."
        ) from None


def _beside(work: Callable[[], object]) -> None:
    """Run `work` in a daemon thread."""
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


@click.command("serve")
@server_options
@click.option("--open", "browser", is_flag=True, help="Open the viewer in a browser.")
@click.option(
    "--remote",
    is_flag=False,
    flag_value="",
    metavar="[URL]",
    help="Show the runs of the shared store, too. Without a URL: PLAYHEAD_REMOTE, or the config.",
)
@json_option
@store_option
def serve_command(
    *,
    server: ServerOptions,
    browser: bool,
    remote: str | None,
    as_json: bool,
    store: Path | None,
) -> None:
    """Serve the viewer and the HTTP API until Ctrl-C.

    Listens on loopback by default. The printed address contains a token; the browser keeps it in a cookie
    after the first visit. Other clients send it as `Authorization: Bearer TOKEN`. /api/openapi.json describes
    the API. The printed token is the owner's: `playhead token` and `playhead share` give access to others.

    \b
    playhead serve --open
    playhead serve --port 8000 --store ./tapes
    playhead serve --host 0.0.0.0
    playhead serve --remote s3://tapes/shop
    playhead serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    playhead serve --root-path /playhead --trust-proxy 10.0.0.7 --allow-host tapes.example
    playhead serve --no-token           no token: every user of this machine can read every run
    curl -s localhost:7411/api/recordings?status=failed | jq '.runs[].id'
    """
    serve_until_stopped(
        home_of(store),
        path="/",
        browser=browser,
        as_json=as_json,
        server=server,
        remote=remote,
    )


@click.command("open")
@run_argument
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@server_options
@json_option
@store_option
def open_command(
    *,
    run: str,
    no_browser: bool,
    server: ServerOptions,
    as_json: bool,
    store: Path | None,
) -> None:
    """Open a run in the browser.

    Uses the running server of this store, or starts one that runs until Ctrl-C.

    \b
    playhead open last
    playhead open last --no-browser     over ssh: forward the port, and open the address there
    """
    try:
        from playhead.views.web.api.start import running
    except ImportError as error:
        raise needs_extra("serve") from error
    found, home = find_run_anywhere(store, run, whole=False).resolve(), home_of(store)
    if "pulled_from" in read_manifest(found).extra:
        home = found.parent.parent  # the cache of the shared store is a store of its own
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
            server=server,
        )
        return
    if as_json:
        print_json({"url": there.at(path), "store": str(home)})
    else:
        click.echo(there.at(path))
    if not no_browser:
        webbrowser.open(there.at(path))


@click.command("ui")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--all", "everything", is_flag=True, help="Include the runs of all projects.")
@store_option
def ui_command(*, run: str | None, everything: bool, store: Path | None) -> None:
    """Browse, read, play and compare runs in the terminal.

    Works over ssh. The bottom line lists the most important keys; ? lists all.

    \b
    playhead ui
    playhead ui last           with this run open
    playhead ui --all          runs of all projects
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "`playhead ui` needs a terminal. `playhead list` and `playhead show` also write to a pipe."
        )
    try:
        from playhead.views.tui.run_source import RunSource
        from playhead.views.tui.tui_app import PlayheadApp
    except ImportError as error:
        raise needs_extra("tui") from error
    project = None if everything or store is not None else str(project_of(Path.cwd()))
    source = RunSource(home_of(store), project=project, prices=overrides())
    PlayheadApp(source, None if run is None else find_run_anywhere(store, run)).run()
