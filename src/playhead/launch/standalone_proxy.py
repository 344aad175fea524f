"""The proxy without a command, for programs that the user starts. Knows runs and plans; does not know HTTP."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import socket
from collections.abc import Callable, Mapping

from playhead import config
from playhead.launch import record_run as recording
from playhead.launch.opening import Wish
from playhead.launch.proxy.authority import Authority
from playhead.launch.proxy.proxy_server import Proxy
from playhead.recording import deck
from playhead.recording.runs import Run
from playhead.replay.begin import mode_of
from playhead.replay.modes.replay_options import read_options
from playhead.replay.replay_plan import ReplayPlan, write_plan
from playhead.replay.report.verdict import Report, judge
from playhead.tape.manifest import write_manifest
from playhead.tape.reader import Tape


def record(
    listener: socket.socket,
    *,
    wish: Wish,
    settings: config.Settings,
    env: Mapping[str, str],
    ready: Callable[[Run], object],
    authority: Authority | None = None,
) -> Run:
    """Record all requests until interrupted."""
    run = recording.open_run(wish, settings, '"playhead proxy"')
    ready(run)
    asyncio.run(_serve(listener, env, authority, paced=False))
    recording.finish(run, None)
    return run


def replay(
    listener: socket.socket,
    tape: Tape,
    *,
    plan: ReplayPlan,
    wish: Wish,
    settings: config.Settings,
    env: Mapping[str, str],
    ready: Callable[[Run], object],
    authority: Authority | None = None,
) -> tuple[Run, Report]:
    """Answer all requests from the tape until interrupted; return the report."""
    run = recording.open_run(wish, settings, '"playhead proxy"')
    run.manifest = dataclasses.replace(run.manifest, replay_of=tape.manifest.run)
    write_manifest(run.path, run.manifest)
    write_plan(run.path, plan)
    mode, _ = mode_of(plan, run.recorder)
    if (usual := deck.of_process()) is not None:
        deck.deactivate(usual)
    made = deck.Deck(run.recorder, mode)
    deck.activate(made)
    taped = tape.start_facts().get("env") or {}
    # If something is live, the tape must not decide where requests, and the user's key, are sent.
    old = {} if plan.live or not isinstance(taped, dict) else taped
    where = {**env, **{name: str(value) for name, value in old.items() if name.endswith(_URLS)}}
    ready(run)
    asyncio.run(_serve(listener, where, authority, paced=plan.pace))
    deck.deactivate(made)
    recording.finish(run, None)
    report = judge(tape, Tape(run.path), wishes=read_options(plan.live, plan.options))
    return run, _of_what_was_asked(report)


# Variables with addresses. The tape has the addresses of the recorded run; the current values do not matter.
_URLS = ("_BASE_URL", "_API_BASE", "_ENDPOINT")


def _of_what_was_asked(report: Report) -> Report:
    """Return the report without exit code and output, which only a command has. Unused taped calls are not a failure
    here.
    """
    kept = [
        one for one in report.divergences if one.get("kind") not in ("exit", "output", "unused")
    ]
    verdict = "diverged" if kept else "identical"
    return dataclasses.replace(report, verdict=verdict, divergences=kept, output_same=None)


async def _serve(
    listener: socket.socket, env: Mapping[str, str], authority: Authority | None, *, paced: bool
) -> None:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    proxy = Proxy({None: listener}, env, paced=paced, authority=authority)
    await proxy.serve_until(over)
