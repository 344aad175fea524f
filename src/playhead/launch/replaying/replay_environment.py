"""The environment of a replay, made from the recorded and the current one. Pure; knows variables, not runs.

A replay must see the run's base URLs, model names and switches. Variables of the machine and the user (PATH,
HOME, a terminal) keep their current values, and so does a secret that is set now.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from playhead.launch.environment import LONGEST, OF_THE_MACHINE
from playhead.redact.forms import PLACEHOLDER
from playhead.tape.single_file import SHARED_VARIABLE

_OF_A_SERVICE = re.compile(
    r".*_(?:BASE_URL|API_BASE|ENDPOINT|API_KEY|AUTH_TOKEN|ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN)"
    r"|(?i:(?:https?|all|no)_proxy)|SSL_CERT_.*|REQUESTS_CA_BUNDLE"
)
# For a tape that another person recorded, if something is live: these variables decide neither where requests go nor
# what they contain.
_HARMLESS_LIVE = re.compile(r"\w+_MODEL|TZ|LANG|LC_\w+")
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredEnvironment:
    """The variables of a replay, and the names of those that differ from the tape or from the current environment."""

    variables: dict[str, str]
    # Set now, but the replay has another value, or none.
    overridden: list[str] = field(default_factory=list)
    # On the tape, but not applied.
    withheld: list[str] = field(default_factory=list)

    @property
    def notes(self) -> tuple[str, ...]:
        """The lines for the report."""
        said = []
        if self.overridden:
            said.append(
                f"environment: {_named(self.overridden)}: as on the tape, not as set now "
                "(--env K=V sets one, --env-from-here uses all current ones)"
            )
        if self.withheld:
            said.append(
                f"environment: not applied from the tape: {_named(self.withheld)} (--env K=V sets one)"
            )
        return tuple(said)


def restored(
    environ: Mapping[str, str],
    taped: Mapping[str, object],
    *,
    live: bool = False,
    foreign: bool = False,
    from_here: bool = False,
    chosen: Mapping[str, str] | None = None,
) -> RestoredEnvironment:
    """Return the environment of the run on top of the current one.

    `live`: some requests are sent, and the current variables decide where to and with which key. `foreign`: another
    person recorded the tape, so only harmless variables of it are applied. `from_here`: today's environment alone.
    `chosen` has the last word in any case.
    """
    chosen = chosen or {}
    if from_here:
        return RestoredEnvironment(variables={**environ, **chosen})
    todays = {name for name in environ if live and _OF_A_SERVICE.fullmatch(name)}
    applied: dict[str, str] = {}
    withheld: list[str] = []
    for name, value in taped.items():
        if name in chosen or name in todays or not isinstance(value, str):
            continue
        if not _may_apply(name, value, live=live, foreign=foreign):
            withheld.append(name)
        elif not re.search(PLACEHOLDER, value) or name not in environ:
            applied[name] = value
    made = {
        name: value
        for name, value in environ.items()
        if OF_THE_MACHINE.fullmatch(name) or name in taped or name in todays
    }
    made.update(applied)
    made.update(chosen)
    changed = {name for name in environ.keys() & made.keys() if made[name] != environ[name]}
    return RestoredEnvironment(
        variables=made,
        overridden=[*sorted(changed - chosen.keys()), *sorted(environ.keys() - made.keys())],
        withheld=sorted(withheld),
    )


def _may_apply(name: str, value: str, *, live: bool, foreign: bool) -> bool:
    """Return whether a variable of the tape may be applied. For tapes of other people this is an allow-list: a
    deny-list would never know every variable that loads code.
    """
    if not name or "=" in name or "\0" in name + value or OF_THE_MACHINE.fullmatch(name):
        return False
    if not foreign:
        return True
    rule = _HARMLESS_LIVE if live else SHARED_VARIABLE
    return len(value) <= LONGEST and rule.fullmatch(name) is not None


def _named(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
