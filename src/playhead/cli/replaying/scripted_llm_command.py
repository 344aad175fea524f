"""`playhead scripted-llm`: serve a script until Ctrl-C. Knows the options; not the server."""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING

import click

from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.testing import ScriptedLLM


@click.command("scripted-llm")
@click.argument("script", type=click.Path(dir_okay=False))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=0, help="Port to listen on. Default: a free one.")
@click.option(
    "--seed", type=int, metavar="N", help="Random seed that makes ids and times reproducible."
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of exports.")
def scripted_llm(script: str, host: str, port: int, seed: int | None, as_json: bool) -> None:
    """Serve a model that answers from SCRIPT, a JSON or TOML file, until Ctrl-C.

    Speaks Anthropic Messages, OpenAI Chat Completions, OpenAI Responses (HTTP and WebSocket) and
    Gemini. Prints the environment variables that point SDKs and agents at it. Needs neither a key nor
    a network.

    \b
    Examples:
      playhead scripted-llm replies.json
      playhead scripted-llm replies.toml --port 8123 --seed 1
      playhead scripted-llm replies.json --json | head -1 | jq .url

    \b
    A script, in TOML:
      [[replies]]
      text = "Let me look."
      tool_calls = [{ name = "ls", arguments = { path = "." } }]
      [[replies]]
      error = { status = 529, retry_after = 1 }
      [[replies]]
      text = "Two files."
      chunk_delay = 0.05
    """
    from playhead.testing import serve

    def ready(llm: ScriptedLLM) -> None:
        click.echo(_as_json(llm) if as_json else _as_exports(llm, script))

    try:
        serve(script, host, port, seed=seed, ready=ready)
    except OSError as error:
        raise UsageError(
            f"Cannot listen on {host} port {port}: {error.strerror or error}. "
            "Omit --port to use a free one."
        ) from error
    except KeyboardInterrupt:
        return


command = scripted_llm


def _as_json(llm: ScriptedLLM) -> str:
    members = {"url": llm.url, "port": llm.port, "pid": os.getpid(), "environ": llm.environ()}
    return json.dumps(members)


def _as_exports(llm: ScriptedLLM, script: str) -> str:
    exports = [f"export {name}={shlex.quote(value)}" for name, value in llm.environ().items()]
    return "\n".join([f"# {script} is served at {llm.url}; Ctrl-C stops it.", *exports])
