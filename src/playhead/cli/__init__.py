"""The command line. One file a verb; this one knows their names, and what leaves with which exit
code.

Verbs are imported when they are called: `playhead --version` must not wait for all of them.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from playhead._version import __version__
from playhead.errors import PlayheadError
from playhead.views.text import safe

# verb → (module below playhead.cli, one line for the overview), in the order that people meet them.
VERBS: dict[str, tuple[str, str]] = {
    "record": ("recording.record_verb", "Run a command and put everything it does on a tape."),
    "loop": (
        "recording.loop_verb",
        "Run an agent again and again, in stages; record each iteration.",
    ),
    "session": ("recording.session_verb", "The loop's recording for shell scripts, step by step."),
    "import": (
        "recording.import_sessions",
        "Sessions that Claude Code or Codex have kept, as runs.",
    ),
    "list": ("watching.list_runs", "The runs that were recorded here."),
    "search": ("watching.search_verb", "Runs in which something was said or done."),
    "stats": ("watching.stats_verb", "What runs come to: how they ended, tokens, cost, times."),
    "show": ("watching.show", "A run at a glance; or everything about one call."),
    "play": ("watching.play_verb", "Watch a run as it happened."),
    "open": ("watching.open_run", "A run as a page in your browser."),
    "ui": ("watching.ui", "Runs on this terminal: find, read, play, compare."),
    "serve": ("watching.serve", "The library as a page, and as an API."),
    "export": ("watching.export", "A run as files to send: a page, its story, fixtures, the tape."),
    "files": ("files.files_verb", "Which files a run changed, step by step."),
    "checkout": ("files.checkout", "Restore the files of a run as they were after a step."),
    "blame": ("files.blame_verb", "Which step and which prompt wrote each line of a file."),
    "replay": ("replaying.replay_verb", "Run the agent again against its tape, offline."),
    "proxy": ("recording.proxy_verb", "Record or replay what any program asks of its models."),
    "fork": ("replaying.fork_verb", "Go on from a step of a run, another way."),
    "chaos": ("replaying.chaos_verb", "Which single failures break the agent?"),
    "diff": ("watching.diff", "Two runs side by side."),
    "batch": ("replaying.batch", "Replay many tapes, and say of each whether it still holds."),
    "accept": ("replaying.accept", "Make a run the golden one that others are measured by."),
    "promote": ("replaying.promote", "Make a test out of a run."),
    "events": ("watching.events_verb", "The events of a run as JSON lines."),
    "verify": ("keeping.verify_verb", "Check a tape for damage and edits."),
    "repair": ("keeping.repair_verb", "Save what can be read of a damaged tape."),
    "seal": ("keeping.seal_verb", "Compress a finished run."),
    "unseal": ("keeping.unseal", "Undo seal: plain lines again."),
    "tag": ("keeping.tag", "Tag a run."),
    "note": ("keeping.note", "Write a note on a run."),
    "rename": ("keeping.rename", "Call a run something else."),
    "keep": ("keeping.keep", "Never prune this run (or again: --undo)."),
    "prune": ("keeping.prune", "Delete old runs."),
    "clean": ("keeping.clean_replays", "Delete replays."),
    "reindex": ("keeping.reindex", "Make the catalogue anew from the tapes."),
    "demo": ("demo", "Record, watch and verify a small agent, offline."),
    "scripted-llm": ("replaying.scripted_llm_verb", "A scripted LLM server for tests."),
    "completion": ("completion", "Tab completion for your shell."),
}


class Verbs(click.Group):
    """Finds a verb's module only when the verb is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command: click.Command = import_module(f"playhead.cli.{VERBS[name][0]}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """A reader that has left (`| head`) is no error of ours; click would leave with 1."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # What is still buffered goes nowhere, so that the flush at exit does not complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(0) from None
        return result

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview without importing every verb for its help text."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], list(VERBS), n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from None


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="playhead")
def cli() -> None:
    """Playhead: a flight recorder and VCR for AI agent runs.

    \b
    playhead record -- python my_agent.py   record a run
    playhead show last                      what happened, as a conversation
    playhead play last --speed 4            watch it as it happened
    playhead list --status failed           the runs that went wrong

    A RUN is a full id, the beginning of one, `last`, `last~2`, or a folder.
    Exit codes: 0 fine, 1 failed, 2 usage, 3 diverged, 4 this tape cannot be used,
    5 an invariant broke.
    """


def main() -> None:
    """The console script. A user's mistake gets one clear line; never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that has no ✓ gets a question mark: better than none of the line.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        code = cli(standalone_mode=False)
    except click.Abort:
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except PlayheadError as error:
        code = _complain(str(error), error.exit_code)
    except KeyboardInterrupt:
        code = 130
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        code = _complain(f"{error.strerror or error}{where}", 1)
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str, code: int) -> int:
    """Messages quote names and texts from tapes: what could drive the terminal is shown instead."""
    click.echo(f"playhead: {safe.clean(message)}", err=True)
    return code
