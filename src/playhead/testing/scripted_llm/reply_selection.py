"""Choose the encoder and the reply for a request. Knows the script, the used replies and the encoders of all
providers; does not know sockets.

A reply with a `when` answers the requests that it describes, whenever they arrive: so parallel conversations get
their own answers. The other replies are given in order.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from playhead.llm.llm_script import LlmScript, ReceivedRequest, Reply, When
from playhead.llm.openai.encode_responses import OpenAiResponsesEncoder
from playhead.llm.providers import all_providers
from playhead.llm.reply_encoder import Endpoint, IdSource, Json, ReplyEncoder
from playhead.testing.scripted_llm.script_file import load_reply

ReplyLike = Reply | str | Mapping[str, Any]
Respond = Callable[[ReceivedRequest], ReplyLike | Awaitable[ReplyLike]]

# Callables may wait for one another (a barrier in a test); a short queue would be a deadlock.
_RESPONDING = 64


class ScriptRanOut(Exception):
    """The script has no reply for a request; the text names the request and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenReply:
    """A reply, and the key of its ids: the same in every seeded run."""

    reply: Reply
    key: str


class ReplySelection(Protocol):
    """A source of replies."""

    async def choose(self, request: ReceivedRequest) -> ChosenReply:
        """Return the reply to this request. Raises ScriptRanOut if there is none."""

    def close(self) -> None:
        """Release resources."""


class ScriptSelection:
    """Replies from a script, each given as often as its `repeat` allows."""

    def __init__(self, script: LlmScript) -> None:
        self._script = script
        self._used = [0] * len(script.replies)
        self._asked = 0

    async def choose(self, request: ReceivedRequest) -> ChosenReply:
        self._asked += 1
        for described in (True, False):
            for index, reply in enumerate(self._script.replies):
                if (reply.when is not None) is described and self._fits(index, reply, request):
                    self._used[index] += 1
                    return ChosenReply(reply=reply, key=f"{index}.{self._used[index]}")
        raise ScriptRanOut(self._complaint(request))

    def close(self) -> None:
        """Nothing to release."""

    def _fits(self, index: int, reply: Reply, request: ReceivedRequest) -> bool:
        if reply.repeat != "forever" and self._used[index] >= reply.repeat:
            return False
        return reply.when is None or matches(reply.when, request, self._asked)

    def _complaint(self, request: ReceivedRequest) -> str:
        total = len(self._script.replies)
        waiting = [index for index, used in enumerate(self._used) if not used]
        left = ", ".join(f"replies[{index}]" for index in waiting)
        state = f"unused, and for other requests: {left}" if waiting else "all are used"
        return (
            f"The script has no reply left for request {self._asked} ({request.wire}, "
            f"turn {request.turn}, last user message {request.prompt[:60]!r}): of {total} "
            f"replies {state}. Add a reply, or let one `repeat`."
        )


class CallableSelection:
    """Replies from a function of the request, plain or async."""

    def __init__(self, respond: Respond) -> None:
        self._respond = respond
        self._seen: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(_RESPONDING, thread_name_prefix="scripted-reply")

    async def choose(self, request: ReceivedRequest) -> ChosenReply:
        digest = hashlib.sha256(request.body).hexdigest()
        self._seen[digest] += 1
        key = f"{digest}.{self._seen[digest]}"
        reply = await asyncio.wrap_future(self._threads.submit(self._respond, request))
        if isinstance(reply, Awaitable):
            reply = await reply
        return ChosenReply(reply=load_reply(reply), key=key)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def matches(when: When, request: ReceivedRequest, nth: int) -> bool:
    """Whether all conditions of `when` hold for the request, which is the nth to the model."""
    conversation = "\n".join(message.text for message in request.messages)
    return (
        (when.contains is None or when.contains in request.prompt)
        and (when.matches is None or re.search(when.matches, request.prompt) is not None)
        and (when.conversation is None or when.conversation in conversation)
        and (when.turn is None or when.turn == request.turn)
        and (when.model is None or when.model in (request.model or ""))
        and (when.path is None or when.path in request.path)
        and (when.nth is None or when.nth == nth)
    )


_LOOPBACK = "127.0.0.1,localhost"


class ServedApis:
    """One encoder per provider. Paths are compared by their ends, so that any base URL works."""

    def __init__(self) -> None:
        made = [provider.reply_encoder() for provider in all_providers()]
        self.encoders: list[ReplyEncoder] = [one for one in made if one is not None]
        # The only API that is also served on a WebSocket.
        self.responses = next(
            one for one in self.encoders if isinstance(one, OpenAiResponsesEncoder)
        )

    @property
    def served(self) -> str:
        """All addresses, for the answer to a request that goes to none of them."""
        return ", ".join([*(path for one in self.encoders for path in one.serves), "GET …/models"])

    @property
    def default_models(self) -> list[str]:
        return list(dict.fromkeys(one.default_model for one in self.encoders if one.default_model))

    def endpoint(self, method: str, path: str) -> tuple[ReplyEncoder, Endpoint] | None:
        """Return the encoder for this path and the kind of the request; None: no API has this path."""
        path = path.rstrip("/") or "/"
        if method != "POST":
            return None
        for encoder in self.encoders:
            endpoint = encoder.endpoint(path)
            if endpoint is not None:
                return encoder, endpoint
        return None

    def fake_keys(self, ids: IdSource) -> dict[str, str]:
        """Return API keys that look real and open nothing, so that redaction has work to do."""
        keys: dict[str, str] = {}
        for encoder in self.encoders:
            if encoder.key_variable and encoder.key_variable not in keys:
                keys[encoder.key_variable] = encoder.fake_key(ids)
        return keys

    def environ(self, url: str) -> dict[str, str]:
        """Return the variables that point SDKs and agents at a server on loopback."""
        outside = os.environ.get("NO_PROXY") or os.environ.get("no_proxy")
        direct = f"{outside},{_LOOPBACK}" if outside else _LOOPBACK
        variables: dict[str, str] = {}
        for encoder in self.encoders:
            variables.update(encoder.environ(url))
        return {**variables, "NO_PROXY": direct, "no_proxy": direct}

    def models(self, request: ReceivedRequest, names: Sequence[str]) -> Json | None:
        """Return the list of models, or the one model that the path names; None: the model is unknown."""
        encoder = next((one for one in self.encoders if one.lists_models(request)), self.responses)
        wanted = request.path.rstrip("/").rpartition("/models")[2].lstrip("/")
        entries = [encoder.model_entry(name) for name in names if wanted in ("", name)]
        if wanted:
            return entries[0] if entries else None
        return encoder.model_list(list(entries))


def is_hello(method: str, path: str) -> bool:
    """Return whether a client checks that the server is there, as Claude Code does before its first call."""
    path = path.rstrip("/") or "/"
    return method in ("GET", "HEAD") and (path == "/" or path.endswith("/api/hello"))


def is_model_list(method: str, path: str) -> bool:
    path = path.rstrip("/")
    parent = path.rpartition("/")[0]
    return method in ("GET", "HEAD") and (path.endswith("/models") or parent.endswith("/models"))
