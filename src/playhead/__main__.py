"""`playhead` and `python -m playhead`: which command line is asked. Knows that the steps of a shell
script's session must not wait for the import of all the others.
"""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:2] == ["session"]:
        from playhead.loop import steps

        code = steps.main(sys.argv[2:])
        if code is not None:
            sys.exit(code)
    from playhead.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
