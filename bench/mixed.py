"""What mixed replay adds to a run, and what a fuzzy match costs. `python -m bench.mixed`.

1. A run of 30 calls (15 LLM, 15 tools), replayed with the model live: everything but the model's own
   time. The model here answers at once, so what is left is Playhead.
2. A request of 2 KB against 10,000 taped ones of the same tool.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import playhead
from playhead import clock
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.deck import Call, Deck
from playhead.replay.matching.taped import load
from playhead.replay.modes.faults import drawn
from playhead.replay.modes.mixed import FuzzyIndex, MixedMode
from playhead.replay.modes.replay_options import Policy
from playhead.tape.reader import Tape

ROUNDS = 15
TAPED = 10_000
WORDS = [f"word{number}" for number in range(4000)]


def _now() -> float:
    return clock.mono_ns() / 1e9


def _llm(number: int) -> Call:
    messages = [{"role": "user", "content": f"question {one} " * 20} for one in range(number + 1)]
    return Call(
        boundary="llm", name="anthropic.messages m", request={"body": {"messages": messages}}
    )


def _tool(number: int, word: str = "today") -> Call:
    text = f"status of order {number} in the warehouse {word} for the customer of last week"
    return Call(boundary="tool", name="search", request={"arguments": {"query": text}})


def _run(deck: Deck, word: str) -> float:
    began = _now()
    for number in range(ROUNDS):
        deck.perform(_llm(number), FunctionAdapter(lambda: "an answer"))
        deck.perform(_tool(number, word), FunctionAdapter(lambda: "a result"))
    return _now() - began


def mixed_run() -> dict[str, float]:
    """Milliseconds for 30 calls: bare, recorded, mixed with exact and with fuzzy matches."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder)
        with playhead.record(store=store / "then") as then:
            recorded = _run(Deck(then.recorder), "today")
        found = {"recorded": recorded * 1000}
        for name, word in (("exact", "today"), ("fuzzy", "now")):
            with playhead.record(store=store / name) as now:
                began = _now()
                mode = MixedMode(load(Tape(then.path)), now.recorder, Policy(live=("llm",)))
                took = _run(Deck(now.recorder, mode), word)
                found[f"mixed, {name} tools"] = took * 1000
                found[f"mixed, {name} tools, with opening the tape"] = (_now() - began) * 1000
        return found


def fuzzy_match() -> dict[str, float]:
    """Milliseconds for one look-up, median of 21, and for building the index."""
    shift = [int(drawn(f"7:{number}") * len(WORDS)) for number in range(TAPED)]
    texts = [
        " ".join(WORDS[(one * at * at + number) % len(WORDS)] for at in range(260))
        for number, one in enumerate(shift)
    ]
    began = _now()
    index = FuzzyIndex(enumerate(texts))
    built = _now() - began
    took = []
    for number in range(0, TAPED, TAPED // 21):
        words = texts[number].split()
        words[::10] = ["changed"] * len(words[::10])
        asked = " ".join(words)
        began = _now()
        found = index.like(asked, 0.7)
        took.append(_now() - began)
        if found[0].key != number:
            raise SystemExit(f"text {number} was not found")
    return {"index of 10,000": built * 1000, "one look-up": sorted(took)[10] * 1000}


def main() -> None:
    for title, found in (("30 calls", mixed_run()), ("2 KB against 10,000", fuzzy_match())):
        print(title)
        for name, milliseconds in found.items():
            print(f"  {name:45} {milliseconds:9.2f} ms")


if __name__ == "__main__":
    main()
