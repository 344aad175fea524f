"""Record a state store that the program names (`playhead.watch`): snapshots at the start and the end of a run, and
every mutation between them as a call. Knows objects with methods; database files are in `sqlite_files`.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import wraps
from typing import Any

from playhead import events
from playhead.encoding.values import safe_str
from playhead.errors import UsageError
from playhead.hooks import answers
from playhead.hooks.guest import report
from playhead.hooks.tools.tool_calls import binder
from playhead.host.interrupts import is_interrupt
from playhead.recording import deck, where
from playhead.recording.adapter import Adapter
from playhead.recording.deck import Call, Crossing, Deck
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder


def watch(
    store: Any,
    snapshot: str | Callable[..., Any] | None = None,
    mutations: Iterable[str] = (),
    *,
    name: str | None = None,
) -> Watch:
    """Record a state store: its content when the run begins and ends, and each call that changes it.

        playhead.watch(store, snapshot="tasks", mutations=["add", "complete"])

    `unwatch()`, or the end of a `with` block, undoes it.

    Args:
        store: Any object.
        snapshot: How to read its content: the name of an attribute or method, or a function (of the store, or
            without parameters). By default the store itself is serialised.
        mutations: The names of the methods that change it.
        name: What it is called on the tape. By default the name of its class.
    """
    methods = [mutations] if isinstance(mutations, str) else list(mutations)
    earlier = [_watch_of(getattr(store, method, None)) for method in methods]
    watched = next((one for one in earlier if one is not None and one.store is store), None)
    if watched is None:
        watched = Watch(store, snapshot, name or type(store).__name__)
    for method in methods:
        watched._hook(method)
    watched._begin()
    return watched


# The result of a mutation that raised, or that is a coroutine.
UNKNOWN = object()


class Watch:
    """A watched store. Made by `playhead.watch`; never raises because of recording."""

    def __init__(self, store: Any, snapshot: str | Callable[..., Any] | None, name: str) -> None:
        self.store = store
        self.name = name
        self._look = _looker(store, snapshot)
        self._hooked: list[tuple[Any, str, Any, Any]] = []
        self._begun: weakref.WeakSet[Recorder] = weakref.WeakSet()
        self._on = True
        # The methods that change the store, as they were.
        self._originals: dict[str, Callable[..., Any]] = {}
        # Whether a replay served a mutation that it could not repeat on the store. Then the store's content at the
        # end cannot be compared.
        self._is_behind = False

    def snapshot(self, when: str = "now") -> None:
        """Record the store's present content."""
        open_deck = deck.declared()
        if open_deck is not None:
            self._snapshot(open_deck.recorder, when)

    def unwatch(self) -> None:
        """Take the last snapshot and restore the store's own methods."""
        if not self._on:
            return
        self.snapshot("end")
        self._on = False
        while self._hooked:
            owner, method, own, made = self._hooked.pop()
            if vars(owner).get(method) is not made:
                continue  # another library has wrapped our wrapper, and its wrapper must keep working
            if own is None:
                delattr(owner, method)
            else:
                setattr(owner, method, own)

    def __enter__(self) -> Watch:  # noqa: PYI034  typing.Self came with 3.11
        return self

    def __exit__(self, *raised: object) -> None:
        self.unwatch()

    def _begin(self) -> Deck | None:
        """Take the first snapshot in each run that uses the store. Return the deck, if there is one."""
        open_deck = deck.declared()
        if open_deck is not None and open_deck.recorder not in self._begun:
            recorder = open_deck.recorder
            self._begun.add(recorder)
            self._is_behind = False
            _watches.add(self)
            self._snapshot(recorder, "start")
            recorder.last_words.append(lambda: self._finish(recorder))
        return open_deck

    def _finish(self, recorder: Recorder) -> None:
        if self._on:
            self._snapshot(recorder, "end")

    def _snapshot(self, recorder: Recorder, when: str) -> None:
        try:
            value = self._look()
        except Exception as error:  # noqa: BLE001  the host's code may raise anything
            why = f"{type(error).__name__}: {safe_str(error)}"
            report(
                events.HOLE, {"boundary": "state", "what": self.name, "why": f"no snapshot: {why}"}
            )
            return
        data = {"store": self.name, "when": when, "value": value}
        if self._is_behind:
            data["behind"] = True
        recorder.append(NewEvent(events.SNAPSHOT, data, where.asked(2)))

    def _hook(self, method: str) -> None:
        original = getattr(self.store, method, None)
        if not callable(original):
            raise UsageError(
                f"{self.name} has no method {method!r} to watch. Name the methods that change the store."
            )
        if _watch_of(original) is self:
            return
        owner = self.store
        # Python looks for `__setitem__` and its like on the class, and slots leave no other room.
        if not hasattr(owner, "__dict__") or method.startswith("__"):
            owner = type(self.store)
        own = vars(owner).get(method)
        made: Any = (
            self._recorded(original, method)
            if owner is self.store
            else self._on_class(owner, method)
        )
        made.__playhead_watch__ = self
        try:
            setattr(owner, method, made)
        except (AttributeError, TypeError):
            raise UsageError(
                f"{type(self.store).__name__} does not allow {method!r} to be watched. Give `watch` an "
                "object of a class of your own that wraps it."
            ) from None
        self._hooked.append((owner, method, own, made))

    def _on_class(self, owner: type, method: str) -> Any:
        """Wrap the method on the class. The wrapper records only this store, and passes other instances through."""
        original = getattr(owner, method)

        @wraps(original)
        def changed(instance: Any, *args: Any, **kwargs: Any) -> Any:
            bound = original.__get__(instance, owner)
            if instance is not self.store or not self._on:
                return bound(*args, **kwargs)
            return self._recorded(bound, method)(*args, **kwargs)

        return changed

    def _recorded(self, original: Callable[..., Any], method: str) -> Callable[..., Any]:
        bind, name = binder(original, method=False), f"{self.name}.{method}"
        self._originals[method] = original

        def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
            request = {"arguments": bind(args, kwargs)}
            return Call(boundary="state", name=name, request=request, effect="write")

        if inspect.iscoroutinefunction(original):

            @wraps(original)
            async def changed_async(*args: Any, **kwargs: Any) -> Any:
                open_deck = None if _applying.get() else self._begin()
                if open_deck is None:
                    return await original(*args, **kwargs)
                mutation = _Mutation(self, original, args, kwargs)
                return await open_deck.perform_async(call(args, kwargs), mutation)

            return changed_async

        @wraps(original)
        def changed(*args: Any, **kwargs: Any) -> Any:
            open_deck = None if _applying.get() else self._begin()
            if open_deck is None:
                return original(*args, **kwargs)
            return open_deck.perform(call(args, kwargs), _Mutation(self, original, args, kwargs))

        return changed

    def has_begun(self, recorder: Recorder) -> bool:
        """Return whether the store is part of this recorder's run."""
        return self._on and recorder in self._begun

    def apply(self, method: str, arguments: dict[str, Any]) -> Any:
        """Make a mutation that another worker made on the tape, and do not record it. Return its result, or UNKNOWN if
        it has none.
        """
        original = self._originals.get(method)
        if original is None:
            return UNKNOWN
        args, kwargs = _unbound(original, arguments)
        return self._repeat(original, args, kwargs)

    def _repeat(
        self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Make the mutation again on the store. Ignore its error: the program gets the result or error of the tape."""
        token = _applying.set(True)
        made: Any = UNKNOWN
        try:
            made = method(*args, **kwargs)
            if inspect.iscoroutine(made):
                self._is_behind |= not _runs_through(made)
                made = UNKNOWN
        except Exception as error:
            if is_interrupt(error):
                raise
        finally:
            _applying.reset(token)
        return made


class _Mutation(Adapter):
    """One call of a watched method, plain or async."""

    __slots__ = ("_args", "_kwargs", "_method", "_watch")

    def __init__(
        self,
        watch: Watch,
        method: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self._watch = watch
        self._method = method
        self._args = args
        self._kwargs = kwargs

    def live(self, crossing: Crossing) -> Any:
        return self._method(*self._args, **self._kwargs)

    def serve(self, crossing: Crossing) -> Any:
        taped = crossing.taped
        if taped is not None and taped.is_alone:
            # The mutation made no calls, so it can be made again. The store then has the recorded content.
            self._watch._repeat(self._method, self._args, self._kwargs)
        else:
            self._watch._is_behind = True
        return answers.serve(crossing, answers.classes_of(self._method))


def _runs_through(coroutine: Any) -> bool:
    """Run a coroutine to its end. If it waits for something, close it and return False."""
    try:
        coroutine.send(None)
    except StopIteration:
        return True
    coroutine.close()
    return False


def _unbound(
    method: Callable[..., Any], arguments: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Turn arguments by name into positional and keyword arguments: the inverse of `binder`."""
    left = dict(arguments)
    args: list[Any] = []
    for name, parameter in inspect.signature(method).parameters.items():
        if name not in left:
            break
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            args.append(left.pop(name))
        elif parameter.kind == parameter.VAR_POSITIONAL:
            args.extend(left.pop(name))
    return tuple(args), left


def watch_of_store(name: str, recorder: Recorder) -> Watch | None:
    """Return the store of this name in the run of this recorder."""
    return next(
        (one for one in list(_watches) if one.name == name and one.has_begun(recorder)), None
    )


_watches: weakref.WeakSet[Watch] = weakref.WeakSet()
# Whether the code running now repeats a mutation of the tape.
_applying: ContextVar[bool] = ContextVar("playhead_applying", default=False)


def _watch_of(method: Any) -> Watch | None:
    return getattr(method, "__playhead_watch__", None)


def _looker(store: Any, snapshot: str | Callable[..., Any] | None) -> Callable[[], Any]:
    if snapshot is None:
        return lambda: store
    if isinstance(snapshot, str):
        if not hasattr(store, snapshot):
            raise UsageError(f"{type(store).__name__} has no {snapshot!r} to take a snapshot of.")

        def look() -> Any:
            found = getattr(store, snapshot)
            return found() if callable(found) else found

        return look
    if not callable(snapshot):
        raise UsageError(
            f"snapshot is {snapshot!r}; expected a function, or the name of an attribute."
        )
    try:
        inspect.signature(snapshot).bind()
    except (TypeError, ValueError):
        return lambda: snapshot(store)
    return snapshot
