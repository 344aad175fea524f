"""`playhead token` and `playhead share`: access to a server for other people."""

from __future__ import annotations

from pathlib import Path

import click

from playhead import clock
from playhead.cli.common import (
    Duration,
    home_of,
    home_to_read,
    json_option,
    print_json,
    store_option,
)
from playhead.cli.run_names import find_run, run_argument
from playhead.errors import UsageError
from playhead.views.text.safe import one_line
from playhead.views.web.access_tokens import (
    ROLES,
    Access,
    AccessToken,
    AccessTokens,
    AuditLog,
    Role,
)

# The person at this machine, in the audit log.
_HERE = Access(name="owner", role="admin")
_WEEK_S = 7 * 86_400.0


@click.group("token")
def token_command() -> None:
    """Give other people access to `playhead serve`, each with a token and a role.

    \b
    playhead token create Ada --role annotate --expires 90d
    playhead token list
    playhead token revoke Ada
    playhead token log                      changes, refusals and sign-ins

    read: see all runs. annotate: also change names, tags and notes, and share runs. admin: also delete and replay runs.
    """


@token_command.command("create")
@click.argument("name", metavar="NAME")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="read",
    show_default=True,
    help="What the token permits.",
)
@click.option(
    "--expires", type=Duration(), help="Time until the token expires: 90d. Default: never."
)
@json_option
@store_option
def create(
    *, name: str, role: Role, expires: float | None, as_json: bool, store: Path | None
) -> None:
    """Make a token for NAME and print it. The store keeps only its hash, so it cannot be printed again.

    \b
    playhead token create Ada --role annotate --expires 90d
    """
    home = home_of(store)
    text, made = AccessTokens(home).make(name, role, expires_s=expires)
    AuditLog(home).note(_HERE, f"create token {made.id} for {name}", given=role)
    if as_json:
        print_json({**_json(made), "token": text})
        return
    click.echo(text)
    click.echo(f"Token {made.id} of {one_line(name, 60)}: {role}, {_until(made)}.", err=True)


@token_command.command("list")
@json_option
@store_option
def list_tokens(*, as_json: bool, store: Path | None) -> None:
    """List the tokens and share links that are valid now.

    \b
    playhead token list --json | jq -r '.[].name'
    """
    tokens = AccessTokens(home_to_read(store)).all()
    if as_json:
        print_json([_json(one) for one in tokens])
        return
    if not tokens:
        click.echo("No tokens. `playhead token create NAME` makes one.")
    for one in tokens:
        what = one.role if one.run is None else f"link to {one.run}"
        click.echo(f"{one.id}  {one_line(one.name, 30):30}  {what:10}  {_until(one)}")


@token_command.command("revoke")
@click.argument("token", metavar="NAME|ID")
@json_option
@store_option
def revoke(*, token: str, as_json: bool, store: Path | None) -> None:
    """Revoke the token with this id, or all tokens of this name. A running server refuses them at once.

    \b
    playhead token revoke Ada
    """
    home = home_to_read(store)
    gone = AccessTokens(home).revoke(token)
    if not gone:
        raise UsageError(f"There is no token {token!r}. `playhead token list` shows them.")
    for one in gone:
        AuditLog(home).note(_HERE, f"revoke token {one.id} of {one.name}")
        if not as_json:
            click.echo(f"Revoked {one.id} of {one_line(one.name, 60)}.")
    if as_json:
        print_json([_json(one) for one in gone])


@token_command.command("log", short_help="Print the audit log of the server.")
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(min=1, max=10_000),
    metavar="N",
    default=50,
    show_default=True,
    help="Maximum number of lines.",
)
@json_option
@store_option
def audit_log(*, limit: int, as_json: bool, store: Path | None) -> None:
    """Print the audit log of the server: changes, refusals and sign-ins, newest last.

    \b
    playhead token log --limit 200
    """
    for one in AuditLog(home_to_read(store)).last(limit):
        if as_json:
            print_json(one)
            continue
        status = one.get("status", "")
        line = f"{one.get('at')}  {one.get('who')} ({one.get('role')})  {one.get('what')}  {status}"
        click.echo(one_line(line, 400))


@click.command("share")
@run_argument
@click.option(
    "--expires", type=Duration(), default=_WEEK_S, help="Time until the link expires. Default: 7d."
)
@click.option(
    "--url",
    metavar="URL",
    help="Address of the server, if it is not the running one of this store.",
)
@json_option
@store_option
def share_command(
    *, run: str, expires: float, url: str | None, as_json: bool, store: Path | None
) -> None:
    """Print a link to one run on the server of this store. It shows nothing else, and expires.

    \b
    playhead share last
    playhead share last --expires 1d --url https://playhead.example.com

    `playhead token revoke` ends a link before its time.
    """
    home = home_of(store)
    found = find_run(store, run)
    if found.resolve().parent != (home / "runs").resolve():
        raise UsageError(f"{found} is not in the store {home}: name its store with --store DIR.")
    server = url or _running(home)
    text, made = AccessTokens(home).make("share link", "read", expires_s=expires, run=found.name)
    AuditLog(home).note(_HERE, f"share {found.name} by link {made.id}")
    link = f"{server.rstrip('/')}/run/{found.name}?token={text}"
    if as_json:
        print_json({**_json(made), "url": link})
        return
    click.echo(link)
    click.echo(f"Link {made.id} shows this run only, {_until(made)}.", err=True)


def _running(home: Path) -> str:
    try:
        from playhead.views.web.api.start import running
    except ImportError:
        there = None
    else:
        there = running(home)
    if there is None:
        raise UsageError(
            "No server of this store is running. Start `playhead serve`, or add --url URL."
        )
    return there.url


def _until(token: AccessToken) -> str:
    if token.expires_ns is None:
        return "does not expire"
    return f"expires {clock.iso(token.expires_ns)[:16].replace('T', ' ')} UTC"


def _json(token: AccessToken) -> dict[str, str | None]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role,
        "run": token.run,
        "made_at": clock.iso(token.made_ns),
        "expires_at": None if token.expires_ns is None else clock.iso(token.expires_ns),
    }
