"""`playhead demo`: the steps of the demo, and the environment of its agent.

The environment is a folder of files, a scripted model, and a payment gateway that fails once.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click

from playhead.cli.common import store_option
from playhead.errors import PlayheadError
from playhead.library.catalogue import Filter, Library
from playhead.testing import Exchange, Reply, ScriptedLLM, ToolCall, Usage

_AGENTS = Path(__file__).parent / "agents"
_ORDER = {"id": "A-1009", "item": "teapot", "total": 49.9, "status": "delivered"}
_POLICY = """\
Broken on arrival: full refund within 30 days, no return needed.
Changed your mind: return it within 14 days, postage is yours.
Lost in the post: we send it again.
"""
_MAIL = """\
Dear customer,

we have refunded 49.90 for order A-1009 (a teapot that arrived broken).
The reference is R-77; it takes up to three working days.

Your shop"""

REPLIES = (
    Reply(
        text="I am sorry to hear that. Let me look at the order and at our policy.",
        tool_calls=[
            ToolCall(name="lookup_order", arguments={"order": "A-1009"}),
            ToolCall(name="search_policy", arguments={"word": "broken"}),
        ],
        usage=Usage(input=612, output=94, cache_write=1840),
    ),
    Reply(
        text="A teapot that arrived broken is refunded in full: 49.90. Shall I do that?",
        usage=Usage(input=208, output=31, cache_read=1840),
    ),
    Reply(
        text="Refunding 49.90 now.",
        tool_calls=[ToolCall(name="issue_refund", arguments={"order": "A-1009", "amount": 49.9})],
        usage=Usage(input=255, output=58, cache_read=1840),
    ),
    Reply(
        text="The payment gateway was busy. I will try once more.",
        tool_calls=[ToolCall(name="issue_refund", arguments={"order": "A-1009", "amount": 49.9})],
        usage=Usage(input=341, output=63, cache_read=1840),
    ),
    Reply(text="Done: refund R-77 is booked.", usage=Usage(input=420, output=14, cache_read=1840)),
    Reply(text=_MAIL, usage=Usage(input=447, output=88, cache_read=1840)),
)


def copy_files(folder: Path) -> None:
    """Copy the agents and their data to `folder`, where users can read and change them."""
    (folder / "shop").mkdir(parents=True, exist_ok=True)
    (folder / "shop" / "orders.json").write_text(json.dumps({"A-1009": _ORDER}))
    (folder / "shop" / "policy.txt").write_text(_POLICY)
    for agent in _AGENTS.glob("[a-z]*.py"):
        text = agent.read_text(encoding="utf-8")
        if find_spec("anthropic") is None:
            text = text.replace("import anthropic\n", "import messages_client as anthropic\n")
        (folder / agent.name).write_text(text, encoding="utf-8")


def model() -> ScriptedLLM:
    """The scripted model; it streams word by word."""
    replies = [
        Reply(
            text=one.text,
            tool_calls=one.tool_calls,
            usage=one.usage,
            delay=0.15,
            chunk_delay=0.015,
        )
        for one in REPLIES
    ]
    return ScriptedLLM(replies, routes={"/payments": _Gateway().pay})


class _Gateway:
    """Answers 503 to the first request."""

    def __init__(self) -> None:
        self._asked = 0

    async def pay(self, exchange: Exchange) -> None:
        self._asked += 1
        if self._asked == 1:
            await exchange.answer_json(503, {"error": "busy, try again"})
        else:
            await exchange.answer_json(200, {"refund": "R-77", "state": "booked"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoStep:
    """A command, its title and its expected exit code.

    `online`: the model and the gateway run during this step.
    """

    title: str
    words: tuple[str, ...]
    exit_code: int = 0
    online: bool = False


STEPS = (
    DemoStep(
        title="Record a real agent: every LLM call, tool, subprocess and HTTP exchange.",
        words=("playhead", "record", "--name", "refund-agent", "--", "python", "refund_agent.py"),
        online=True,
    ),
    DemoStep(title="Show the run.", words=("playhead", "show", "last")),
    DemoStep(
        title="Play the run at eight times its speed.",
        words=("playhead", "play", "last", "--speed", "8", "--max-wait", "500ms", "--no-output"),
    ),
    DemoStep(title="Verify that the tape is intact.", words=("playhead", "verify", "last")),
    DemoStep(
        title="Replay the agent without the model: the tape answers.",
        words=("playhead", "replay", "last"),
    ),
    DemoStep(
        title="Record an orchestrator's event bus with one line: playhead.tap(bus).",
        words=("python", "orchestrator.py"),
    ),
    DemoStep(
        title="Print the events that it emitted.",
        words=("playhead", "events", "last", "--pretty", "--kind", "*:*"),
    ),
    DemoStep(
        title="Record a job that fails…",
        words=("python", "digest.py"),
        exit_code=1,
    ),
    DemoStep(title="…and show how far it got.", words=("playhead", "show", "last")),
    DemoStep(
        title="Record a server that survives failed turns…",
        words=("python", "support_desk.py"),
    ),
    DemoStep(title="…and find them.", words=("playhead", "list", "--failed-turns")),
    DemoStep(
        title="Record three workers that share a store…",
        words=("python", "worker_pool.py"),
    ),
    DemoStep(
        title="…and replay each of them in a test: calls, mutations and final state are compared.",
        words=("python", "worker_pool.py", "check"),
    ),
    DemoStep(title="List all runs.", words=("playhead", "list")),
)


@click.command("demo")
@store_option
def command(*, store: Path | None) -> None:
    """Record, watch, verify and replay a small agent, without an API key or a network.

    A refund agent with three tools talks to a scripted model. Then an orchestrator is tapped, a job and
    two turns of a server fail, and three workers are replayed in a test. The programs and their tapes
    are kept, so that you can explore them.

    \b
    playhead demo
    playhead demo --store ./demo-tapes
    """
    folder = Path(tempfile.mkdtemp(prefix="playhead-demo-"))
    home = (store or folder / "tapes").expanduser().absolute()
    copy_files(folder)
    click.echo(f"The programs are in {folder}, their tapes in {home}.")
    for number, step in enumerate(STEPS, 1):
        click.secho(f"\n[{number}/{len(STEPS)}] {step.title}", bold=_is_coloured())
        click.secho(f"$ {shlex.join(step.words)}", dim=_is_coloured())
        code = _perform(step, folder, home)
        if code != step.exit_code:
            raise PlayheadError(
                f"{shlex.join(step.words)} exited with {code}; expected {step.exit_code}. "
                f"All files are in {folder}."
            )
    click.echo(_next(home, _newest(home, "refund-agent")))


def _perform(step: DemoStep, folder: Path, home: Path) -> int:
    environ = _environ(home)
    if not step.online:
        return _run(step, folder, environ)
    with model() as llm:
        _remembered.update(llm.environ(), PAYMENTS_URL=f"{llm.url}/payments")
        return _run(step, folder, _environ(home))


# The addresses of the model: a replay gets the same ones, although the server is gone by then.
_remembered: dict[str, str] = {}


def _environ(home: Path) -> dict[str, str]:
    """The environment without the user's Playhead settings."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PLAYHEAD_")}
    # The SDK would warn that the demo's model is deprecated.
    quiet = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}
    return {**plain, **quiet, **_remembered, "PLAYHEAD_HOME": str(home)}


def _run(step: DemoStep, folder: Path, environ: Mapping[str, str]) -> int:
    verb, *rest = (sys.executable if word == "python" else word for word in step.words)
    argv = [sys.executable, "-m", "playhead", *rest] if verb == "playhead" else [verb, *rest]
    sys.stdout.flush()
    return subprocess.run(argv, cwd=folder, env=dict(environ), check=False).returncode


def _is_coloured() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _newest(home: Path, name: str) -> str:
    """Return the id of the recording, not of its replay."""
    found = Library(home).entries(Filter(name=name, replays=False))
    return next((entry.id for entry in found), "last")


def _next(home: Path, agent: str) -> str:
    return f"""
What next:
  export PLAYHEAD_HOME={shlex.quote(str(home))}
  playhead list --all                            list these runs
  playhead play {agent}             space pauses, . steps, f finds the failure
  playhead show {agent} --call 8    show one call in full
  unset PLAYHEAD_HOME
  playhead record -- python my_agent.py          record your own agent"""
