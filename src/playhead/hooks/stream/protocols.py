"""Recognise the protocol of a conversation by its first bytes. Pure; for people who read a tape."""

from __future__ import annotations

import re

_RESP = re.compile(rb"\*\d+\r\n\$")
_HTTP = re.compile(rb"[A-Z]{3,7} \S+ HTTP/1\.[01]\r\n")
# Numbers that start a PostgreSQL connection: protocol 3, and the requests for TLS, GSSAPI and cancellation.
_POSTGRES = frozenset({196608, 80877103, 80877104, 80877102})
_MONGO = frozenset({2004, 2012, 2013})
_SERVER_FIRST = ((b"220", "SMTP"), (b"* OK", "IMAP"), (b"+OK", "POP3"), (b"SSH-", "SSH"))


def protocol_of(sent: bytes, received: bytes) -> str | None:
    """Return the name of the protocol; None if unknown. `sent` and `received` are the first bytes of each side."""
    if _RESP.match(sent) or sent[:4] == b"PING":
        return "RESP"
    if len(sent) >= 8 and int.from_bytes(sent[4:8], "big") in _POSTGRES:
        return "PostgreSQL"
    if len(sent) >= 16 and int.from_bytes(sent[12:16], "little") in _MONGO:
        return "MongoDB"
    if sent[:4] == b"AMQP":
        return "AMQP"
    if _HTTP.match(sent):
        return "WebSocket" if b"upgrade: websocket" in sent.lower() else "HTTP"
    if received[4:5] == b"\x0a" and received[:3] != b"\0\0\0" and received[3:4] == b"\0":
        return "MySQL"
    return next((name for start, name in _SERVER_FIRST if received.startswith(start)), None)
