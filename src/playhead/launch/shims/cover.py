"""What covers the real paths of a run. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """`moved`: where the real programs will be found, by name. `prefix`: what goes before the command's
    words to make it so. Neither: nothing is covered.
    """

    moved: Mapping[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
