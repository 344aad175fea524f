"""A nightly job whose turn fails halfway: the tape shows how far it had come."""

from typing import Any

import playhead


@playhead.turn("digest", purpose="send the morning mail")
def digest(day: str) -> str:
    tickets: list[dict[str, Any]] = [{"id": 4711, "customer": "ada@example.com"}, {"id": 4712}]
    playhead.seam("tickets read", {"count": len(tickets)})
    lines = [f"{ticket['id']} is open" for ticket in tickets]
    playhead.seam("summary written", {"lines": len(lines)})
    return f"to: {[ticket['customer'] for ticket in tickets]}, {day}: {lines}"


if __name__ == "__main__":
    with playhead.record(name="nightly-digest"):
        digest("2026-11-15")
