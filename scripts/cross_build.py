"""Compile the native core for other platforms, beside its sources: a wheel that is built then holds all of them.

python scripts/cross_build.py [--only aarch64] [--into FOLDER]

Needs `ziglang` from PyPI, a C compiler with the libraries of all targets. A process loads the core whose name has its
platform (`playhead.host.native_core`). The core of macOS is compiled only, because Playhead does not load it yet.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import sysconfig
from pathlib import Path

from playhead.host import native_core

# The target of the compiler, and the part of the file name that `native_core.file_name` makes on that platform.
TARGETS = {
    "x86_64-linux-gnu.2.17": "linux-x86_64-gnu",
    "x86_64-linux-musl": "linux-x86_64-libc",
    "aarch64-linux-gnu.2.17": "linux-aarch64-gnu",
    "aarch64-linux-musl": "linux-aarch64-libc",
    "aarch64-macos": "darwin-arm64-libc",
}


def built(target: str, platform: str, folder: Path) -> Path:
    """Compile the core for one target. The limited API is the same for all platforms with 64 bits."""
    sources = sorted(str(one) for one in Path(native_core.SOURCES).glob("*.c"))
    made = folder / f"core-{native_core.DIGEST}-{platform}.abi3.so"
    options = ["-std=gnu11", "-O2", "-w", "-s", "-shared", "-fPIC", "-fvisibility=hidden"]
    if "macos" in target:
        options += ["-undefined", "dynamic_lookup"]
    headers = f"-I{sysconfig.get_paths()['include']}"
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target]
    subprocess.run([*compiler, *options, headers, "-o", str(made), *sources], check=True)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="targets with this text in their name")
    parser.add_argument("--into", type=Path, default=Path(native_core.SOURCES))
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    for target, platform in TARGETS.items():
        if given.only in target:
            print(f"{built(target, platform, given.into).name}  {target}", flush=True)


if __name__ == "__main__":
    main()
