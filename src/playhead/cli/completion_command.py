"""`playhead completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from playhead.errors import UsageError


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that enables tab completion.

    \b
    eval "$(playhead completion bash)"        in ~/.bashrc
    playhead completion fish > ~/.config/fish/completions/playhead.fish
    """
    found = get_completion_class(shell)
    root = click.get_current_context().find_root()
    if found is None:
        raise UsageError(f"There is no completion for {shell}.")
    click.echo(found(root.command, {}, "playhead", "_PLAYHEAD_COMPLETE").source())
