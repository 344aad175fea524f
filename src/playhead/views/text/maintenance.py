"""The results of verify, repair, prune and clean as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from playhead.errors import TapeError
from playhead.events import Damage
from playhead.library.retention import Doomed, Sized
from playhead.tape.care.repair import Repair
from playhead.tape.care.signature import Signature
from playhead.tape.care.verify import Verification
from playhead.views.text import words
from playhead.views.text.safe import one_line

_FEW = 20


_NO_CHECKSUM = "This file has no checksum, so Playhead cannot tell whether it was changed."


def verification_lines(
    run: Path, found: Verification | TapeError, *, only_damaged: bool = False
) -> Iterator[Text]:
    """Yield the verdict, each damage with its segment and line, then what to do."""
    name = one_line(run.name, 60)
    if isinstance(found, TapeError):
        yield Text(f"✗ {name}  {one_line(str(found), 400)}", style="failed")
        return
    losses = [
        f"1 {noun} was lost" if number == 1 else f"{words.count(number)} {noun}s were lost"
        for number, noun in ((found.lost, "event"), (found.lost_file_changes, "file change"))
        if number
    ]
    if found.ok and losses:
        what = f"incomplete: {' and '.join(losses)}"
        yield Text.assemble(
            ("! ", "interrupted"), f"{name}  {what}, the rest is intact: {_contents(found)}"
        )
        return
    if found.ok:
        if not only_damaged:
            yield Text.assemble(("✓ ", "ok"), f"{name}  intact: {_contents(found)}")
            if found.file_checksum == "none":
                yield Text(f"  {_NO_CHECKSUM}", style="quiet")
        return
    number = len(found.damages) + found.more
    noun = "damaged place" if number == 1 else "damaged places"
    yield Text(f"✗ {name}  {words.count(number)} {noun} in {_contents(found)}", style="failed")
    for damage in found.damages[:_FEW]:
        yield Text(f"  {place(damage)}")
    if number > _FEW:
        yield Text(f"  … and {words.count(number - _FEW)} more; --json lists them", style="quiet")
    if found.file_checksum is None:
        yield Text(f"  `playhead repair {name}` rescues the readable part.", style="quiet")


def signature_line(signature: Signature) -> Text:
    """Return who signed the tape, or why the signature is invalid."""
    if not signature.good:
        return Text(f"  ✗ the signature is WRONG: {one_line(signature.why, 200)}", style="failed")
    key = one_line(signature.key, 80)
    if signature.signer is None:
        unknown = f"  signed by an unknown key, {key}: name it in ~/.ssh/allowed_signers"
        return Text(unknown, style="interrupted")
    return Text(f"  signed by {one_line(signature.signer, 80)} ({key})", style="ok")


def repair_lines(run: Path, done: Repair) -> Iterator[Text]:
    name = one_line(run.name, 60)
    kept = f"{words.count(done.kept)} events"
    if not done.changed:
        if done.blobs_lost:
            yield Text(f"✗ {name}  {len(done.blobs_lost)} payloads cannot be restored", "failed")
        else:
            yield Text.assemble(("✓ ", "ok"), f"{name}  nothing to repair: {kept}")
        return
    lost = f", {words.count(done.lost)} lost" if done.lost else ", none lost"
    yield Text.assemble(("✓ ", "ok"), f"{name}  repaired: {kept} kept{lost}")
    for damage in done.damages[:_FEW]:
        yield Text(f"  was: {place(damage)}", style="quiet")
    for path in done.moved:
        yield Text(f"  moved aside: {one_line(path.name, 200)}", style="quiet")
    if done.blobs_lost:
        yield Text(f"  {len(done.blobs_lost)} payloads cannot be restored", style="interrupted")


def place(damage: Damage) -> str:
    """Return `segment 4711, line 12 (byte 3001): why`; for a whole file, its name and the reason."""
    if not damage.line:
        return one_line(f"{damage.segment}: {damage.why}", 400)
    where = f"segment {damage.segment}, line {damage.line} (byte {damage.offset})"
    return one_line(f"{where}: {damage.why}", 400)


def _contents(found: Verification) -> str:
    segments = f"{len(found.segments)} segment{'' if len(found.segments) == 1 else 's'}"
    blobs = f", {words.count(found.blobs)} blobs" if found.blobs else ""
    return f"{words.count(found.events)} events, {segments}{blobs}"


def plan_lines(going: Sequence[Doomed], runs: Sequence[Sized], now_ns: int) -> Iterator[Text]:
    """Yield the runs to be deleted, oldest first, then their number and size."""
    for one in going[:_FEW]:
        age = words.age(one.entry.manifest.started_ns, now_ns)
        size, name = words.size(one.bytes), one_line(one.entry.manifest.name, 24)
        yield Text.assemble(
            f"  {one_line(one.entry.id, 40):<22} {name:<24} {age:>6} {size:>8}  ",
            (one.why, "quiet"),
        )
    if len(going) > _FEW:
        yield Text(f"  … and {words.count(len(going) - _FEW)} more", style="quiet")
    yield Text(f"Would delete {weight(going)} of {weight(runs)}.")


def weight(runs: Sequence[Sized] | Sequence[Doomed]) -> str:
    """Return number and size: `3 runs (1.2 GB)`."""
    total = words.size(sum(one.bytes for one in runs))
    noun = "run" if len(runs) == 1 else "runs"
    return f"{words.count(len(runs))} {noun} ({total})"
