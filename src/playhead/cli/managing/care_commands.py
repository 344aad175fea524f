"""`playhead verify`, `repair`, `seal`, `unseal`, `reindex`, `doctor` and `completion`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class
from rich.text import Text

from playhead import clock, config
from playhead.cli.common import home_to_read, json_option, overrides, print_json, store_option
from playhead.cli.progress_line import bar, counted
from playhead.cli.run_names import find_run, find_tape, run_argument, runs_argument
from playhead.errors import TapeError, UsageError
from playhead.launch.examination import examine
from playhead.tape import store as stores
from playhead.tape.care.repair import repair
from playhead.tape.care.signature import Signature, sign, signature_of
from playhead.tape.care.verify import Verification, verify
from playhead.tape.sealed.seal import seal, unseal
from playhead.tape.store import announce
from playhead.views.text import words
from playhead.views.text.console import console
from playhead.views.text.maintenance import repair_lines, signature_line, verification_lines
from playhead.views.text.safe import one_line

_DAMAGED = TapeError.exit_code


@click.command("verify")
@runs_argument
@click.option("--all", "everything", is_flag=True, help="Verify every run of the store.")
@json_option
@store_option
@click.pass_context
def verify_command(
    ctx: click.Context,
    *,
    runs: tuple[str, ...],
    everything: bool,
    as_json: bool,
    store: Path | None,
) -> None:
    """Check tapes for damage and edits: every line, checksum, blob and count.

    Exit code 4: a tape is damaged; each problem is reported with its segment and line. A tape that is sound
    but not complete is reported with the number of lost events.

    \b
    playhead verify last
    playhead verify --all --json | jq '.[] | select(.ok | not)'
    """
    checked = [
        (path, _verified(path))
        for path in counted(_runs_to_verify(runs, store, everything=everything), "Verifying")
    ]
    signed = {path: signature_of(path) for path, _ in checked}
    if as_json:
        print_json([_verification_json(path, found, signed[path]) for path, found in checked])
    else:
        out = console()
        for path, found in checked:
            for line in verification_lines(path, found, only_damaged=everything):
                out.print(line, soft_wrap=True)
            if (signature := signed[path]) is not None:
                out.print(signature_line(signature), soft_wrap=True)
        if everything:
            intact = sum(_is_intact(found, signed[path]) for path, found in checked)
            out.print(f"{intact:,} of {len(checked):,} runs are intact.")
    if not all(_is_intact(found, signed[path]) for path, found in checked):
        ctx.exit(_DAMAGED)


def _runs_to_verify(
    runs: tuple[str, ...], store: Path | None, *, everything: bool
) -> Sequence[Path]:
    if everything and runs:
        raise UsageError("Name the runs to check, or use --all for every run; not both.")
    if everything:
        return list(stores.runs(home_to_read(store)))
    return [find_tape(store, run) for run in runs or ("last",)]


def _verified(path: Path) -> Verification | TapeError:
    """The result, or the reason why the tape cannot be read; the remaining runs are still checked."""
    try:
        return verify(path)
    except TapeError as error:
        return error


def _is_intact(found: Verification | TapeError, signature: Signature | None) -> bool:
    is_signed_well = signature is None or signature.good
    return isinstance(found, Verification) and found.ok and is_signed_well


def _verification_json(
    path: Path, found: Verification | TapeError, signature: Signature | None
) -> dict[str, Any]:
    if isinstance(found, TapeError):
        return {"id": path.name, "path": str(path), "ok": False, "error": str(found)}
    members = {**dataclasses.asdict(found), "events": found.events, "cut": found.cut}
    signed = None if signature is None else asdict(signature)
    return {"id": path.name, "path": str(path), **members, "signature": signed}


@click.command("repair")
@run_argument
@click.option(
    "--force",
    "-f",
    is_flag=True,
    help="Repair a run of another machine that is still marked as running.",
)
@json_option
@store_option
def repair_command(*, run: str, force: bool, as_json: bool, store: Path | None) -> None:
    """Rescue the readable part of a damaged tape. Damaged files are moved aside, never deleted.

    \b
    playhead verify last || playhead repair last
    """
    path = find_run(store, run)
    done = repair(path, force=force)
    announce(path)
    if not as_json:
        out = console()
        for line in repair_lines(path, done):
            out.print(line, soft_wrap=True)
        return
    print_json(
        {
            "id": path.name,
            "path": str(path),
            "changed": done.changed,
            "kept": done.kept,
            "lost": done.lost,
            "moved": [str(one) for one in done.moved],
            "damages": [str(one) for one in done.damages],
            "blobs_lost": done.blobs_lost,
        }
    )


@click.command("seal")
@runs_argument
@click.option(
    "--sign",
    "key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="KEY",
    help="Sign the tape with this SSH key; `verify` names the signer.",
)
@json_option
@store_option
def seal_command(
    *, runs: tuple[str, ...], key: Path | None, as_json: bool, store: Path | None
) -> None:
    """Compress finished runs: all segments in one file, verified before the plain files are deleted.

    Every command reads a sealed run like a plain one.

    \b
    playhead seal last
    playhead seal last --sign ~/.ssh/id_ed25519
    """
    found = [find_run(store, run) for run in runs or ("last",)]
    done = [seal(path) for path in counted(found, "Sealing")]
    if key is not None:
        for one in done:
            sign(one.path.parent, key)
    if as_json:
        print_json([{**dataclasses.asdict(one), "path": str(one.path)} for one in done])
        return
    for one in done:
        before, after = words.size(one.bytes), words.size(one.compressed)
        name = one.path.parent.name
        click.echo(
            f"{name} is sealed: {words.count(one.events)} events, {before} compressed to {after}."
        )


@click.command("unseal")
@run_argument
@json_option
@store_option
def unseal_command(*, run: str, as_json: bool, store: Path | None) -> None:
    """Decompress a sealed run into plain JSON lines, byte for byte as they were recorded.

    \b
    playhead unseal last --json | jq -r ".segments[]" | xargs grep -c turn.end
    """
    path = find_run(store, run)
    made = unseal(path)
    if as_json:
        print_json({"id": path.name, "segments": [str(one) for one in made]})
    elif made:
        click.echo(f"{path.name} is unsealed: {', '.join(one.name for one in made)}")
    else:
        click.echo(f"{path.name} is not sealed.")


@click.command("reindex")
@click.option(
    "--trust",
    "trusted",
    is_flag=True,
    help="Agree to keep the catalogue on the server that the config file names.",
)
@json_option
@store_option
def reindex_command(*, trusted: bool, as_json: bool, store: Path | None) -> None:
    """Rebuild the library's catalogue from the tapes.

    Rarely needed: the catalogue is updated automatically, and rebuilt when it is missing. Costs are
    computed again, with the prices of the current config.

    \b
    playhead reindex
    playhead reindex --store /mnt/team/tapes
    playhead reindex --trust            after [library] url was set in playhead.toml
    """
    from playhead.library.catalogue_url import agree_to, configured_url
    from playhead.library.indexing import reindex

    if trusted and (url := configured_url(config.load())) is not None:
        agree_to(url)
    began = clock.mono_ns()
    with bar("Reading runs") as progress:
        count = reindex(home_to_read(store), prices=overrides(), progress=progress)
    took_s = (clock.mono_ns() - began) / 1e9
    if as_json:
        print_json({"runs": count, "took_s": round(took_s, 3)})
        return
    noun = "run" if count == 1 else "runs"
    click.echo(f"Read {words.count(count)} {noun} in {words.duration(took_s)}.")


@click.command("doctor")
@json_option
def doctor_command(*, as_json: bool) -> None:
    """Check what works on this machine: fences, watching, shims, interpreters and extras.

    \b
    playhead doctor
    playhead doctor --json | jq '.[] | select(.ok | not)'

    Tries each feature, changes nothing, and reports what does not work, with the reason. The exit code
    is 0 in either case.
    """
    found = examine(os.environ)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    out = console()
    for one in found:
        mark = ("✓", "ok") if one.ok else ("✗", "failed")
        out.print(Text.assemble(mark, f" {one.area:<7} {one.name:<12} ", one_line(one.detail, 200)))


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
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
