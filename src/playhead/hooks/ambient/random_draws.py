"""Make the pseudo-random numbers of `random` and numpy repeatable. Knows their seeds and states.

The tape has the seed of a generator, and not each number: the same seed gives the same numbers in a replay.
The functions of `random` share one generator. When several lanes draw from it, the order of the draws is a race.
So each number is recorded from the first draw of a second lane on.
"""

from __future__ import annotations

import _thread
import struct
import sys

from playhead import clock
from playhead.hooks.ambient.entropy_reads import bytes_of
from playhead.hooks.guest import Patches, need
from playhead.hooks.replacements import replace_copies
from playhead.recording import ambient, lanes
from playhead.recording.lanes import Lane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def hook_random(module: ModuleType, patches: Patches) -> None:
    need(module, "Random", "SystemRandom", "_urandom", "_inst", "random", "getrandbits")
    patches.replace(module, "_urandom", bytes_of)
    patches.replace(module.Random, "seed", lambda original: _seeded(module, original))
    if ambient.source() is not None:
        _begin(module)
    _share(module, patches)


def _seeded(module: ModuleType, original: Callable[..., None]) -> Callable[..., None]:
    def seed(self: Any, a: Any = None, version: int = 2) -> None:
        if a is None and ambient.source() is not None and not isinstance(self, module.SystemRandom):
            a = int(_seed(), 16)
        original(self, a, version)

    return seed


def _seed() -> str:
    """Return a seed of 256 bits: a new one while recording, the recorded one in a replay."""
    return ambient.read("seed", lambda: clock.urandom(32).hex(), lambda draw: draw(32).hex())


def _begin(module: ModuleType) -> None:
    """Record the start of the module's generator, which was seeded when the module was loaded. If it was loaded
    just now, nothing has drawn from it yet, so its seed is enough. Otherwise the program may have seeded it,
    and its state is recorded.
    """
    is_new = getattr(module.__spec__, "_initializing", False)

    def look() -> list[Any]:
        return [clock.urandom(32).hex()] if is_new else _packed(module.getstate())

    taken = ambient.read_once("generator", _begin.__code__, look)
    if len(taken) == 1:
        module._inst.seed(int(taken[0], 16))
    else:
        module._inst.setstate(_unpacked(taken))


def _packed(state: Any) -> list[Any]:
    version, words, gauss = state
    return [version, struct.pack(f"<{len(words)}I", *words).hex(), gauss]


def _unpacked(taken: list[Any]) -> tuple[Any, ...]:
    raw = bytes.fromhex(taken[1])
    return taken[0], struct.unpack(f"<{len(raw) // 4}I", raw), taken[2]


def _share(module: ModuleType, patches: Patches) -> None:
    """Count the draws from the generator behind `random.random` and related functions. These functions were
    bound to it when the module was loaded; those that draw on their own or keep a value are bound again here.
    """
    shared = module._inst
    kind = type(shared)
    turns = _Turns()
    draw, draw_bits, draw_gauss = kind.random, kind.getrandbits, kind.gauss

    class Shared(kind):  # type: ignore[misc,valid-type]  # a class that is found at run time
        def random(self) -> float:
            if turns.is_alone(lanes.current.get()):
                return draw(self)  # type: ignore[no-any-return]  # what Random.random gives
            return ambient.read("random", lambda: draw(self))  # type: ignore[no-any-return]  # likewise

        def getrandbits(self, k: int, /) -> int:
            if turns.is_alone(lanes.current.get()):
                return draw_bits(self, k)  # type: ignore[no-any-return]  # likewise
            return ambient.read(f"bits {k}", lambda: draw_bits(self, k))  # type: ignore[no-any-return]

        def gauss(self, *args: Any, **kwargs: Any) -> float:
            if turns.is_alone(lanes.current.get()):
                return draw_gauss(self, *args, **kwargs)  # type: ignore[no-any-return]  # likewise
            # gauss() makes numbers in pairs and keeps the second for the next caller, which may be another
            # lane or a thread that runs in here at this moment.
            return draw_gauss(_Pair(self.random), *args, **kwargs)  # type: ignore[no-any-return]

    Shared.__name__, Shared.__qualname__, Shared.__module__ = "Random", "Random", "random"
    shared.__class__ = Shared
    names = ("random", "getrandbits", "gauss", "seed")
    before = {name: getattr(module, name) for name in names}
    for name in names:
        setattr(module, name, getattr(shared, name))

    def undo() -> None:
        shared.__class__ = kind
        for name, original in before.items():
            if getattr(module, name).__self__ is shared:
                setattr(module, name, original)

    patches.on_undo(undo)
    replace_copies(patches, {id(before[name]): _Drawing(shared, name) for name in names})


class _Drawing:
    """Replaces a method of the shared generator that a module copied before the hooks were installed."""

    def __init__(self, shared: Any, name: str) -> None:
        self._shared = shared
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._shared, self._name)(*args, **kwargs)


class _Pair:
    """Has the attributes of a generator that `gauss` uses. The second number that `gauss` makes is dropped."""

    __slots__ = ("gauss_next", "random")

    def __init__(self, random: Callable[[], float]) -> None:
        self.random = random
        self.gauss_next: float | None = None


class _Turns:
    """Tracks which lanes draw from the shared generator: one lane, whose draws are counted, or several."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._lane: Lane | None = None
        self._count = 0
        self._are_several = False
        source = ambient.source()
        self._serves = source is not None and source.log is None
        # From the tape: the only lane that drew at first, and how often it drew before a second lane did.
        self._then: list[Any] | None = self._draw_facts(None) if self._serves else None

    def is_alone(self, lane: Lane) -> bool:
        """Return whether only this lane has drawn so far, so that the seed alone determines the number."""
        if self._are_several:
            return False
        with self._lock:
            if self._serves:
                return self._was_alone(lane)
            if self._lane is None:
                self._lane = lane
            if self._lane is lane:
                self._count += 1
                return True
            first, self._are_several = not self._are_several, True
        if first:
            self._draw_facts([self._lane.name, self._count])
        return False

    def _draw_facts(self, alone: list[Any] | None) -> list[Any] | None:
        return ambient.read_once("alone", _Turns.is_alone.__code__, lambda: alone)

    def _was_alone(self, lane: Lane) -> bool:
        if self._then is None:
            return True
        name, count = self._then
        if lane.name != name or self._count >= count:
            return False
        self._count += 1
        return True


def hook_numpy(module: ModuleType, patches: Patches) -> None:
    """Record the state of numpy's global generator if numpy was loaded before the hooks were installed.

    Otherwise the recorded seed is enough: numpy draws it from `secrets`, whose bytes are on the tape.
    """
    need(module, "get_state", "set_state")
    if ambient.source() is not None and not getattr(module.__spec__, "_initializing", False):
        taken = ambient.read_once(
            "numpy", hook_numpy.__code__, lambda: _numpy_packed(module.get_state())
        )
        module.set_state(_numpy_unpacked(taken))


def _numpy_packed(state: Any) -> list[Any]:
    name, key, position, has_gauss, gauss = state
    return [str(name), key.tobytes().hex(), int(position), int(has_gauss), float(gauss)]


def _numpy_unpacked(taken: list[Any]) -> tuple[Any, ...]:
    key = sys.modules["numpy"].frombuffer(bytes.fromhex(taken[1]), dtype="uint32")
    return (taken[0], key, *taken[2:])
