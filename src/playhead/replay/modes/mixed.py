"""Mixed mode: some boundaries are live, the others are answered from the tape (a new prompt or model against the
recorded tools).

Safe by default: a call that the tape cannot answer is performed only if the user allowed it by name.

Fuzzy matching ranks taped calls by similarity. It uses the standard library alone, because it runs inside the
agent. `difflib` over characters is slow and, by default, wrong on long texts; it is applied to words, without its
heuristic, and only to the twenty candidates that share most word triples.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from playhead.recording import deck
from playhead.recording.calls import Call, Taped
from playhead.recording.recorder import Recorder
from playhead.replay.matching.fingerprint import canonical_form
from playhead.replay.matching.matcher import Match, answer_side_call
from playhead.replay.matching.taped import TapedRun, answer_of
from playhead.replay.modes.replay_options import TOOLS, Policy
from playhead.replay.modes.taped_mode import ReplayMode

# Names that occur in every request of their kind.
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
        """Return the body to send to a live LLM."""
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
        """Take the most similar unserved call of the same name, if its score reaches the threshold."""
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
    """Return the words of a request: names and values. Braces and quotes are left out, because they are the same in all
    requests: with them, the weather of Lyon would look nearly like that of Paris.
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
    """Return whether this call is made by a live tool, and is therefore live, too.

    Tools that this tool calls are not live, because the user did not name them. State is never real.
    """
    if call.boundary in (*TOOLS, "state"):
        return False
    return any(one.boundary in (*TOOLS, "process") for one in deck.inside())


def blocked(call: Call, effect: str) -> Taped:
    """Return an answer that tells the model that the tool was not run, and why."""
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


_WORD = re.compile(r"\w+|[^\w\s]")
_CANDIDATES = 20
# A triple that occurs in every text does not distinguish texts.
_TOO_COMMON = 2000
# In a long text every eighth triple is enough to find it, and makes an index eight times as fast.
_LONG = 128
_SAMPLE = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """The similarity of one text. `key` is the key that `add` got with the text."""

    key: int
    score: float


class FuzzyIndex:
    """An index of texts by the word triples in them."""

    def __init__(self, texts: Iterable[tuple[int, str]] = ()) -> None:
        self._texts: dict[int, str] = {}
        self._by_triple: dict[int, list[int]] = {}
        for key, text in texts:
            self.add(key, text)

    def add(self, key: int, text: str) -> None:
        self._texts[key] = text
        for triple in _triples(text):
            self._by_triple.setdefault(triple, []).append(key)

    def like(
        self, text: str, threshold: float, *, among: Iterable[int] | None = None
    ) -> list[Likeness]:
        """Return the texts at or over the threshold, best first; equal scores in order of their keys."""
        allowed = None if among is None else set(among)
        shared: Counter[int] = Counter()
        for triple in _triples(text):
            keys = self._by_triple.get(triple, ())
            if len(keys) <= _TOO_COMMON:
                shared.update(keys if allowed is None else (key for key in keys if key in allowed))
        chosen = [key for key, _ in shared.most_common(_CANDIDATES)]
        if not chosen:
            # Short texts (one word changed in three) may share no triple at all.
            chosen = sorted(self._texts if allowed is None else allowed)[:_CANDIDATES]
        words = _WORD.findall(text)
        found = [
            Likeness(key=key, score=similarity(words, _WORD.findall(self._texts[key])))
            for key in chosen
        ]
        return sorted(
            (one for one in found if one.score >= threshold), key=lambda one: (-one.score, one.key)
        )


def _triples(text: str) -> set[int]:
    """Return hashes of all triples of consecutive words, split at blanks: to find candidates, not to compare them."""
    words = text.split()
    if len(words) < 3:
        return {hash(tuple(words))}
    found = set(map(hash, zip(words, words[1:], words[2:], strict=False)))
    if len(words) < _LONG:
        return found
    return {one for one in found if not one & _SAMPLE}


def similarity(left: list[str], right: list[str]) -> float:
    """Return the similarity from 0 to 1: twice the words in common, in order, over all words."""
    if left == right:
        return 1.0
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    return matcher.ratio()


def likeness(left: str, right: str) -> float:
    """Return the similarity of two texts, from 0 to 1."""
    return similarity(_WORD.findall(left), _WORD.findall(right))
