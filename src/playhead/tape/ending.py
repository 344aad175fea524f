"""How a run ended, in one word, for every list and view. Pure.

For a replay this is its verdict: its program may exit with 0 although its behaviour differs from the tape.
"""

from __future__ import annotations

from dataclasses import dataclass

from playhead.events import Status
from playhead.tape.manifest import Manifest, verdict_of

NOT_JUDGED = "not judged"
_TONES: dict[str, Status] = {
    "identical": "ok",
    "recovered": "ok",
    "changed": "running",
    "diverged": "failed",
    "refused": "failed",
    "broken": "failed",
}
GLYPHS = {"ok": "✓", "failed": "✗", "interrupted": "◐", "running": "●"}
_VERDICT_GLYPHS = {"changed": "≠", "unproven": "?", NOT_JUDGED: "?"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of a run. `word`: a status or a verdict. `tone`: the status whose colour fits."""

    word: str
    tone: Status
    glyph: str

    def as_json(self) -> dict[str, str]:
        return {"word": self.word, "tone": self.tone}


def ending_of(status: Status, manifest: Manifest) -> Ending:
    """Return the verdict of a replay that was judged, else the status of the run.

    A replay that ended without a verdict was not judged, which says nothing good about it either.
    """
    if status not in GLYPHS:  # a tape may contain any word
        return Ending(word="unknown", tone="interrupted", glyph="?")
    if status == "running":
        return Ending(word=status, tone=status, glyph=GLYPHS[status])
    word: str = status
    verdict = verdict_of(manifest)
    if verdict is not None:
        word = verdict
    elif manifest.replay_of is not None and status == "ok":
        word = NOT_JUDGED
    if word == status:
        return Ending(word=status, tone=status, glyph=GLYPHS[status])
    tone = _TONES.get(word, "interrupted")
    return Ending(word=word, tone=tone, glyph=_VERDICT_GLYPHS.get(word, GLYPHS[tone]))
