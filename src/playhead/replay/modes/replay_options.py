"""Options of a replay beyond the tape: write them to the plan and read them back. Knows JSON and the rules of the
modes; loads none of the modes, because most replays need only one.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, NamedTuple

from playhead.errors import ConfigError
from playhead.recording.calls import Call
from playhead.replay.modes.edits import Rewrite

DEFAULT_THRESHOLD = 0.7
TOOLS = ("tool", "mcp")
_EFFECTS = ("read", "write", "irreversible")


class Policy(NamedTuple):
    """The rules for calls to which the tape has no answer."""

    live: tuple[str, ...] = ()
    threshold: float = DEFAULT_THRESHOLD
    allow_tools: tuple[str, ...] = ()
    # Tools that only read may run; with `allow_all_tools` those with effects as well.
    allow_reads: bool = True
    allow_all_tools: bool = False
    strict: bool = False
    # Effects by tool name, from the config. An effect that the tool itself declares takes precedence.
    effects: Mapping[str, str] = MappingProxyType({})
    rewrite: Rewrite = Rewrite()

    def is_live(self, call: Call) -> bool:
        """Return whether a call is live by an entry such as `llm`, `tool:search` or `http:api.*`: a boundary, or a
        boundary and a name.
        """
        for one in self.live:
            boundary, colon, name = one.partition(":")
            if boundary == call.boundary and (not colon or is_named(call.name, name)):
                return True
        return False

    def effect_of(self, call: Call) -> str:
        """Return the effect of a tool: from the decorator or the MCP annotation, else from the config; else
        irreversible.
        """
        if call.effect is not None:
            return call.effect
        found = (effect for name, effect in self.effects.items() if is_named(call.name, name))
        return next(found, "irreversible")

    def lets_through(self, call: Call) -> bool:
        if call.boundary not in TOOLS:
            return False
        named = any(is_named(call.name, name) for name in self.allow_tools)
        # Only if something is live: a replay that is entirely from the tape touches nothing.
        reads = bool(self.live) and self.allow_reads and self.effect_of(call) == "read"
        return named or self.allow_all_tools or reads


class ReplayOptions(NamedTuple):
    """The options. `mixed`: follow the rules of mixed mode even if nothing is live."""

    policy: Policy = Policy()
    mixed: bool = False
    faults: tuple[str, ...] = ()
    seed: int = 0
    fork_at: int | None = None
    edits: tuple[str, ...] = ()
    # The only inbound request that is replayed; None: all of them.
    request: int | None = None


def write_options(wishes: ReplayOptions) -> dict[str, Any]:
    """Return the options for `ReplayPlan.options`. `live` is not included, because it is a member of the plan
    itself.
    """
    policy = wishes.policy._asdict()
    policy.pop("live")
    policy |= {"effects": dict(policy["effects"]), "rewrite": policy["rewrite"]._asdict()}
    return {
        "mixed": wishes.mixed,
        "policy": policy,
        "faults": list(wishes.faults),
        "seed": wishes.seed,
        "fork_at": wishes.fork_at,
        "edits": list(wishes.edits),
        "request": wishes.request,
    }


def read_options(live: tuple[str, ...], options: Mapping[str, Any]) -> ReplayOptions:
    """Return the options from the plan. A missing option has its default."""
    given: Mapping[str, Any] = options.get("policy") or {}
    rewrite = dict(given.get("rewrite") or {})
    rewrite["patch"] = tuple(rewrite.get("patch") or ())
    policy = Policy(
        live=live,
        threshold=float(given.get("threshold", DEFAULT_THRESHOLD)),
        allow_tools=tuple(given.get("allow_tools") or ()),
        allow_reads=bool(given.get("allow_reads", True)),
        allow_all_tools=bool(given.get("allow_all_tools")),
        strict=bool(given.get("strict")),
        effects=dict(given.get("effects") or {}),
        rewrite=Rewrite(**rewrite),
    )
    return ReplayOptions(
        policy=policy,
        mixed=bool(live or options.get("mixed")),
        faults=tuple(options.get("faults") or ()),
        seed=int(options.get("seed") or 0),
        fork_at=options.get("fork_at"),
        edits=tuple(options.get("edits") or ()),
        request=options.get("request"),
    )


def effects_from(section: Any) -> dict[str, str]:
    """Return `[effects]` of the config: `"send_*" = "irreversible"`. ConfigError says what is wrong."""
    if section is None:
        return {}
    if not isinstance(section, dict):
        raise ConfigError('[effects] is a table of tools: "search*" = "read".')
    for name, effect in section.items():
        if effect not in _EFFECTS:
            raise ConfigError(
                f"[effects] {name} is {effect!r}; expected one of {', '.join(_EFFECTS)}."
            )
    return {str(name): str(effect) for name, effect in section.items()}


def is_named(name: str, pattern: str) -> bool:
    """Return whether the pattern fits the name of a call, or the part after its first word: people write the host of
    `POST api.example.com/v1/things` and the model of `anthropic.messages claude-…`.
    """
    rest = name.partition(" ")[2]
    return fnmatchcase(name, pattern) or bool(rest and fnmatchcase(rest, pattern))
