"""`playhead` and `python -m playhead`: choose the command line. The steps of a shell script's session have a small
command line of their own, which does not import all verbs.
"""

from __future__ import annotations

import gc
import sys

# Importing makes a hundred thousand objects that all stay. With Python's own threshold (700) the garbage collector
# would examine them 140 times, a tenth of the start; with this one it does not start before a verb is running.
_OBJECTS_BEFORE_COLLECTING = 200_000


def main() -> None:
    try:
        _main()
    finally:
        # Python collects garbage once more when it ends, which takes 20 ms after all these imports. It skips frozen
        # objects.
        gc.freeze()


def _main() -> None:
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTING, 10, 10)
    if sys.argv[1:2] == ["session"]:
        from playhead.loop import steps

        code = steps.main(sys.argv[2:])
        if code is not None:
            sys.exit(code)
    from playhead.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
