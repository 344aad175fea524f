"""Compile the native core while the wheel is built. Knows the build tool; `playhead.launch.native_build` knows the
compiler.

The wheel holds the core for the platform that it is built on, and those that `scripts/cross_build.py` has made before.
Where that is not possible, it holds Python alone, works everywhere, and compiles the core before the first recording if
there is a compiler then. PLAYHEAD_BUILD_NATIVE=0 builds such a wheel on purpose.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SKIPPED = "The native core is not in this build, so events are recorded in Python: {}."


class NativeCoreHook(BuildHookInterface[Any]):
    """Adds the compiled core to a wheel, and to the source tree of an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or os.environ.get("PLAYHEAD_BUILD_NATIVE") == "0":
            return
        sys.path.insert(0, str(Path(self.root) / "src"))
        try:
            from playhead.launch import native_build

            made = native_build.build_beside_sources(os.environ)
        except Exception as error:  # noqa: BLE001  a wheel without the core is better than none
            self.app.display_warning(_SKIPPED.format(error))
            return
        finally:
            del sys.path[0]
        if made is None:
            self.app.display_warning(_SKIPPED.format("no C compiler, or no headers of Python"))
        elif version != "editable":
            cores = sorted(Path(made).parent.glob(f"{Path(made).name.split('-linux-')[0]}-*.so"))
            build_data["artifacts"] += [str(one.relative_to(self.root)) for one in cores]
            if len(cores) > 1:
                return  # `scripts/cross_build.py` has made those of other platforms: one wheel for all of them
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            # The limited API: one binary for every supported Python.
            build_data["tag"] = f"py3-none-{platform}"
