"""Some boundaries live, the rest from the tape: a new prompt or model against yesterday's tools.

Safe by default: what the tape cannot answer is not performed unless the person allowed it by name.
Knows the ladder's fuzzy rung and the policy for misses; no boundary's own ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from playhead.recording import deck
from playhead.recording.calls import Call, Taped
from playhead.recording.recorder import Recorder
from playhead.replay.matching.fingerprint import canonical_form
from playhead.replay.matching.fuzzy import FuzzyIndex
from playhead.replay.matching.matcher import Match
from playhead.replay.matching.side_calls import answer_side_call
from playhead.replay.matching.taped import TapedRun, answer_of
from playhead.replay.modes.replay_options import TOOLS, Policy
from playhead.replay.modes.taped_mode import ReplayMode

# Stand around every request of their kind.
_WRAPPERS = ("arguments", "$json", "text")


class MixedMode(ReplayMode):
    """The deck's mode for `playhead replay --live …`."""

    def __init__(
        self,
        recording: TapedRun,
        recorder: Recorder,
        policy: Policy,
        *,
        trim: Callable[[str, Any], Any] | None = None,
    ) -> None:
        super().__init__(recording, recorder, trim=trim)
        self.policy = policy
        self._indices: dict[tuple[str, str], FuzzyIndex] = {}

    def answer(self, call: Call, lane: str) -> Taped | None:
        if self.policy.is_live(call) or _is_part_of_a_live_tool(call):
            return None
        step = self._step()
        request = self._recorder.frozen(call.request)
        name = self.name_on_tape(call.name)
        match = self.matcher.take(call.boundary, name, request, lane) or self._alike(
            call, name, request
        )
        if match is not None:
            return self._served(match)
        if (aside := answer_side_call(self.recording, call, name)) is not None:
            return aside
        if self.policy.lets_through(call):
            return None
        if call.boundary in TOOLS and not self.policy.strict:
            return blocked(call, self.policy.effect_of(call))
        raise self.part(self._missed(call, name, request, lane, step))

    @property
    def rewrites(self) -> bool:
        return not self.policy.rewrite.empty

    def rewrite(self, call: Call, body: bytes) -> bytes:
        """What a live LLM is asked instead."""
        if not self.rewrites or call.boundary != "llm":
            return body
        return self.policy.rewrite.apply(str(call.facts.get("api", "")), body)

    def _served(self, match: Match) -> Taped:
        found: dict[str, Any] = {
            "rung": match.rung,
            "of": match.call.ref,
            "number": match.call.number,
        }
        if match.rung == "fuzzy":
            found["score"] = round(match.score, 4)
        return self.with_output(answer_of(self.recording.tape, match.call, match=found, dies=None))

    def _alike(self, call: Call, name: str, request: Any) -> Match | None:
        """The nearest unserved call of the same name, at or over the threshold."""
        index = self._index(call.boundary, name)
        open_calls = {
            one.number: one
            for one in self.matcher.calls
            if one.boundary == call.boundary and one.name == name and not one.served
        }
        found = index.like(spoken(request), self.policy.threshold, among=open_calls)
        if not found:
            return None
        chosen = open_calls[found[0].key]
        self.matcher.mark(chosen)
        return Match(call=chosen, rung="fuzzy", lane_kept=False, score=found[0].score)

    def _index(self, boundary: str, name: str) -> FuzzyIndex:
        index = self._indices.get((boundary, name))
        if index is None:
            calls = [
                one for one in self.matcher.calls if one.boundary == boundary and one.name == name
            ]
            index = FuzzyIndex((one.number, spoken(one.request)) for one in calls)
            self._indices[boundary, name] = index
        return index


def spoken(request: Any) -> str:
    """The words of a request: names and values. Not the braces and quotes around them, which are the
    same in all: with those, the weather of Lyon would be nearly that of Paris.
    """
    return " ".join(_words(canonical_form(request)))


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name in sorted(value):
            if name not in _WRAPPERS:
                yield name
            yield from _words(value[name])
    elif isinstance(value, list):
        for item in value:
            yield from _words(item)
    elif value is not None:
        yield str(value)


def _is_part_of_a_live_tool(call: Call) -> bool:
    """What a tool does that was let through is done as well. But for the tools that it calls in its
    turn, which nobody has named, and for state, which is never the real one.
    """
    if call.boundary in (*TOOLS, "state"):
        return False
    return any(one.boundary in (*TOOLS, "process") for one in deck.inside())


def blocked(call: Call, effect: str) -> Taped:
    """An honest answer for the model: the tool was not run, and why."""
    text = (
        f"[playhead] {call.name} was not run: this is a replay, the tape has no answer for these arguments, "
        f"and the tool's effect is {effect}. No result is available."
    )
    frozen: Any = text
    if call.boundary == "mcp":
        frozen = {"content": [{"type": "text", "text": text}], "isError": True}
    return Taped(
        how="returned", value=frozen, frozen=frozen, match={"rung": "blocked", "effect": effect}
    )
