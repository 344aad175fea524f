"""The command line: the table of verbs, and how errors become messages and exit codes.

A verb's module is imported when the verb is called, so that `playhead --version` does not load all
of them.
"""

from __future__ import annotations

import fcntl
import os
import sys
from importlib import import_module
from typing import Any

import click

from playhead._version import __version__
from playhead.errors import PlayheadError
from playhead.views.text import safe

# Descriptors from here on are not the ones of a command.
_HIGH = 100

# verb → (module and function below playhead.cli, one line for the overview), in the order of use.
VERBS: dict[str, tuple[str, str]] = {
    "record": ("recording.record_command:command", "Run a command and record it."),
    "loop": (
        "recording.loop_commands:loop_command",
        "Run an agent repeatedly, in stages, and record each iteration.",
    ),
    "session": ("recording.loop_commands:session_command", "Record a loop from a shell script."),
    "import": (
        "recording.import_command:command",
        "Import sessions of Claude Code or Codex as runs.",
    ),
    "list": ("watching.list_command:command", "List the runs of this project."),
    "search": ("watching.search_commands:search_command", "Search the text of all runs."),
    "stats": (
        "watching.search_commands:stats_command",
        "Summarise outcomes, tokens, cost and latency.",
    ),
    "sql": ("watching.sql_command:command", "Query all runs with SQL."),
    "show": ("watching.show_command:command", "Show a run as a conversation, or one call in full."),
    "play": ("watching.play_command:command", "Play a run at its original speed."),
    "open": ("watching.serve_commands:open_command", "Open a run in the browser."),
    "ui": (
        "watching.serve_commands:ui_command",
        "Browse, read, play and compare runs in the terminal.",
    ),
    "serve": ("watching.serve_commands:serve_command", "Serve the viewer and the HTTP API."),
    "token": ("sharing.token_commands:token_command", "Give other people access to the server."),
    "share": ("sharing.token_commands:share_command", "Make a link to one run. The link expires."),
    "export": (
        "watching.export_command:command",
        "Export a run as a web page, a story, fixtures or one file.",
    ),
    "files": (
        "files.files_commands:files_command",
        "Show which files a run changed, step by step.",
    ),
    "checkout": (
        "files.checkout_command:command",
        "Restore the files of a run as they were after a step.",
    ),
    "blame": ("files.files_commands:blame_command", "Show which step wrote each line of a file."),
    "replay": ("replaying.replay_command:command", "Re-run the agent offline against its tape."),
    "proxy": (
        "recording.proxy_command:command",
        "Record or replay the model calls of any program.",
    ),
    "fork": ("replaying.fork_command:command", "Replay up to a step, then continue live."),
    "chaos": ("replaying.chaos_command:command", "Find the single failures that break the agent."),
    "diff": ("watching.diff_command:command", "Compare two runs side by side."),
    "batch": ("batch.batch_command:command", "Replay many tapes and judge each of them."),
    "batch merge": (
        "batch.merge_command:command",
        "Merge the reports of the shards of a batch.",
    ),
    "accept": ("replaying.golden_commands:accept_command", "Make a run the golden run."),
    "promote": ("replaying.golden_commands:promote_command", "Write a pytest test from a run."),
    "events": ("watching.events_command:command", "Print the events of a run as JSON lines."),
    "verify": ("managing.care_commands:verify_command", "Check tapes for damage and edits."),
    "repair": (
        "managing.care_commands:repair_command",
        "Rescue the readable part of a damaged tape.",
    ),
    "seal": ("managing.care_commands:seal_command", "Compress finished runs."),
    "unseal": ("managing.care_commands:unseal_command", "Decompress a sealed run."),
    "scrub": ("managing.scrub_command:command", "Remove secrets from a recorded run."),
    "tag": ("managing.annotate_commands:tag_command", "Add or remove tags of a run."),
    "note": ("managing.annotate_commands:note_command", "Attach a note to a run."),
    "comment": ("managing.annotate_commands:comment_command", "Comment on a run, with your name."),
    "rename": ("managing.annotate_commands:rename_command", "Rename a run."),
    "keep": ("managing.annotate_commands:keep_command", "Protect a run from pruning."),
    "push": ("sharing.push_command:command", "Push runs into the shared store of the team."),
    "pull": ("sharing.pull_command:command", "Pull runs from the shared store."),
    "rm": ("managing.rm_command:command", "Delete the runs that you name."),
    "prune": ("managing.prune_commands:prune_command", "Delete old runs."),
    "clean": ("managing.prune_commands:clean_command", "Delete replays."),
    "reindex": ("managing.care_commands:reindex_command", "Rebuild the catalogue from the tapes."),
    "demo": ("demo.demo_command:command", "Record, watch and verify a small agent, offline."),
    "scripted-llm": (
        "replaying.scripted_llm_command:command",
        "Serve a scripted LLM for tests.",
    ),
    "config": (
        "managing.config_command:command",
        "Print the settings, and where each comes from.",
    ),
    "doctor": (
        "managing.care_commands:doctor_command",
        "Check which fences, shims and extras work on this machine.",
    ),
    "completion": (
        "managing.care_commands:completion_command",
        "Print the tab completion script of your shell.",
    ),
}


# Names of click's types that a user need not know.
_CLICK_WORDS = {
    "is not a valid float range": "is not a number",
    "is not a valid integer range": "is not a whole number",
    "is not a valid integer": "is not a whole number",
}


class Verbs(click.Group):
    """A group that imports a verb's module only when that verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        module, _, function = VERBS[name][0].partition(":")
        command: click.Command = getattr(import_module(f"playhead.cli.{module}"), function)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Exit with 0 when the reader of our output has gone (`| head`); click would exit with 1."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Discard the rest of the buffer, so that the flush at exit does not raise again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(0) from None
        return result

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the overview from VERBS; click would import every verb for its help text."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if (two_words := " ".join(args[:2])) in VERBS:
            args = [two_words, *args[2:]]
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
    playhead show last                      read it as a conversation
    playhead play last --speed 4            play it at four times its speed
    playhead list --status failed           list the runs that failed

    RUN is a run id, a prefix of one, `last` (the default), `last~2`, a run's name, or a folder.
    Exit codes: 0 success, 1 failure, 2 usage error, 3 diverged, 4 unusable tape,
    5 invariant violated, 6 unproven.
    """


def main() -> None:
    """The console script. Report a user's mistake in one line, without a traceback."""
    _replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot encode ✓ prints a question mark instead of failing.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        code = cli(standalone_mode=False)
    except click.Abort:
        code = 130
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # click 8.1 does not have this class
            click.echo(error.format_message(), err=True)
            sys.exit(error.exit_code)
        code = _complain(_in_words(error), error.exit_code)
    except PlayheadError as error:
        code = _complain(str(error), error.exit_code)
    except KeyboardInterrupt:
        code = 130
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        code = _complain(f"{error.strerror or error}{where}", 1)
    sys.exit(code if isinstance(code, int) else 0)


def _replace_closed_streams() -> None:
    """Drop the output to a stream that the caller has closed (`>&-`). Its descriptor stays closed, because the command
    of `playhead record` inherits it.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            low = os.open(os.devnull, os.O_WRONLY)
            high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _HIGH)
            os.close(low)
            setattr(sys, name, os.fdopen(high, "w", encoding="utf-8"))


def _in_words(error: click.ClickException) -> str:
    """Return a mistake on the command line in the words of our own errors, with the usage of the command."""
    message = error.format_message()
    for click_says, we_say in _CLICK_WORDS.items():
        message = message.replace(click_says, we_say)
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    return f"{message}\n{context.get_usage()}\n`{context.command_path} --help` explains it."


def _complain(message: str, code: int) -> int:
    """Print a message with its control characters escaped: it may quote text from a tape."""
    click.echo(f"playhead: {safe.clean(message)}", err=True)
    return code
