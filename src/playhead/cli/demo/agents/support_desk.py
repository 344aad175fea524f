"""A server that answers requests. Two of them fail; the server catches the error and continues."""

import playhead

SOURCES = [
    {"id": "faq-12", "snippet": "Orders ship within two days.", "score": 0.91},
    {"id": "faq-40", "snippet": "Closed on Sundays.", "score": 0.2, "dropped": "score below 0.5"},
]
ORDERS = {"A-1": "shipped", "A-3": "lost"}


def answer(order: str) -> str:
    with playhead.turn("answer", purpose=f"status of {order}") as turn:
        turn.retrieval(SOURCES)
        turn.seam("context", {"sources": 1})
        status = ORDERS[order]
        turn.seam("status", {"order": order, "status": status})
        return f"{order}: {status}"


if __name__ == "__main__":
    with playhead.record(name="support-desk"):
        for order in ("A-1", "A-2", "A-3", "A-4"):
            try:
                print(answer(order))
            except KeyError:
                print(f"{order}: sorry, something went wrong")
