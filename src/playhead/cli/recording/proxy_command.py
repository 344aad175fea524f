"""`playhead proxy`: record or replay programs that Playhead does not start. Knows no HTTP."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from playhead import config
from playhead.cli.common import home_of, store_option
from playhead.cli.recording.record_command import tag_of
from playhead.cli.replaying.replay_arguments import mixed_options
from playhead.errors import UsageError

if TYPE_CHECKING:
    import socket

    from playhead.launch.proxy.authority import Authority
    from playhead.recording.runs import Run

# The variables in which node, OpenSSL, requests and curl look for certificates.
_TRUSTING = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@click.command()
@click.option("--record", "records", is_flag=True, help="Record the requests to a new tape.")
@click.option("--replay", "run", metavar="RUN", help="Answer requests from the tape of RUN.")
@click.option("--port", default=0, help="Port to listen on. Default: a free one.")
@click.option(
    "--upstream",
    metavar="URL",
    help="Forward all requests here. Default: the provider of each API.",
)
@click.option(
    "--connect", is_flag=True, help="Also act as an HTTPS proxy, with a CA of this machine."
)
@click.option("--name", help="Name of the run. Default: proxy.")
@click.option("--tag", "tags", multiple=True, metavar="K=V", help="Add a tag. Repeatable.")
@click.option("--pace", is_flag=True, help="Keep the original timing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of exports and reports.")
@mixed_options
@store_option
def command(
    records: bool, run: str | None, port: int, upstream: str | None, name: str | None,
    connect: bool, tags: tuple[str, ...], pace: bool, as_json: bool, store: Path | None,
    **asked: Any,
) -> None:  # fmt: skip
    """Record or replay the requests of any program to its models, until Ctrl-C.

    \b
    playhead proxy --record --port 8300           for a daemon, a container, an editor
    playhead proxy --replay last --port 8300      the same answers again, offline
    playhead proxy --replay last --live llm       live answers for requests that are not on the tape

    Prints the environment variables that point agents at the proxy. `playhead record -- CMD` does not
    need this command: it starts its own proxy. Exit code 3: a request was not on the tape.

    --connect is for programs without a base URL setting. They must honour HTTPS_PROXY and trust the
    printed certificate. Its private key stays in the store, readable only by you.
    """
    if records == (run is not None):
        raise click.UsageError("Use either --record or --replay RUN.")
    env = {**os.environ, **dict.fromkeys(_variables(), upstream)} if upstream else dict(os.environ)
    listener = _listen(port)
    authority = _authority(store) if connect else None

    def ready(opened: Run) -> None:
        _announce(listener.getsockname()[1], opened, authority, as_json=as_json)

    common = {"env": env, "ready": ready, "authority": authority}
    if run is None:
        _record(listener, common, name=name, tags=tags, store=store, as_json=as_json)
    else:
        sys.exit(_replay(listener, common, run, store, asked, pace=pace, as_json=as_json))


def _record(
    listener: socket.socket, common: dict[str, Any], *, name: str | None,
    tags: tuple[str, ...], store: Path | None, as_json: bool,
) -> None:  # fmt: skip
    from playhead.launch import standalone_proxy as alone
    from playhead.launch.environment import kept
    from playhead.launch.opening import Wish

    wish = Wish(
        name=name or "proxy", tags=dict(tag_of(one) for one in tags), store=store, level="full",
        command=(), facts={"by": "proxy", "env": kept(common["env"])},
    )  # fmt: skip
    done = alone.record(listener, wish=wish, settings=config.load(), **common)
    line = (
        json.dumps({"run": done.id, "path": str(done.path)}) if as_json else f"● recorded {done.id}"
    )
    click.echo(line, err=True)


def _replay(
    listener: socket.socket, common: dict[str, Any], run: str, store: Path | None,
    asked: dict[str, Any], *, pace: bool, as_json: bool,
) -> int:  # fmt: skip
    from playhead.cli.replaying.replay_arguments import options_from, plain, plan_of
    from playhead.cli.run_names import find_tape
    from playhead.launch import standalone_proxy as alone
    from playhead.launch.opening import Wish
    from playhead.launch.replaying.replay_run import check_tape
    from playhead.views.text.report import print_report

    settings = config.load()
    tape = plain(check_tape(find_tape(store, run)))
    plan = plan_of(tape, settings, options_from(settings, asked), pace=pace)
    manifest = tape.manifest
    wish = Wish(
        name=manifest.name, level="full", store=store, redact=manifest.redacted, command=(),
        facts={"by": "proxy"},
    )  # fmt: skip
    _, report = alone.replay(listener, tape, plan=plan, wish=wish, settings=settings, **common)
    if as_json:
        click.echo(json.dumps(report.as_json(), ensure_ascii=False, default=str), err=True)
    else:
        print_report(report)
    return 0 if report.verdict == "identical" else 3


def _listen(port: int) -> socket.socket:
    from playhead.launch.proxy.ports import listen

    try:
        return listen(port)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"Cannot listen on port {port}: {getattr(error, 'strerror', None) or error}. "
            "Omit --port to use a free one."
        ) from error


def _variables() -> list[str]:
    from playhead.launch.proxy.routes import exports

    return list(exports(0))


def _authority(store: Path | None) -> Authority:
    from playhead.launch.proxy.authority import Authority

    return Authority(home_of(store) / "ca")


def _announce(port: int, run: Run, authority: Authority | None, *, as_json: bool) -> None:
    from playhead.launch.proxy.routes import exports

    variables = exports(port)
    if authority is not None:
        variables = {
            "HTTPS_PROXY": f"http://127.0.0.1:{port}",
            **dict.fromkeys(_TRUSTING, str(authority.certificate)),
        }
    if as_json:
        facts = {"run": run.id, "port": port, "pid": os.getpid(), "environ": variables}
        click.echo(json.dumps(facts))
    else:
        lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
        click.echo("\n".join([f"# run {run.id}; Ctrl-C ends it.", *lines]))
    sys.stdout.flush()
