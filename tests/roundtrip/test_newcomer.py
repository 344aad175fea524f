"""A newcomer installs the wheel into an empty environment, then does twelve tasks by the commands of the docs."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.demo.test_demo_command import PRINTS

ROOT = Path(__file__).parents[2]
DOCS = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs").glob("*.md"))
AGENT = """
import random, subprocess
print("tools:", subprocess.run(["echo", "found 3 orders"], capture_output=True, text=True).stdout.strip())
print("ticket", random.randint(1, 10**9))
open("answer.txt", "w").write("done")
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    """An environment with nothing in it but the wheel of Playhead and what it depends on."""
    folder = tmp_path_factory.mktemp("newcomer")
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    build = [uv, "build", "-q", "--wheel", "-o", str(folder), str(ROOT)]
    venv = [uv, "venv", "-q", "--python", sys.executable, str(folder / "env")]
    for argv in (build, venv):
        subprocess.run(argv, check=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    install = [uv, "pip", "install", "-q", "--python", str(folder / "env/bin/python"), str(wheel)]
    subprocess.run(install, check=True, timeout=600)
    return folder


class Newcomer:
    """Types commands as they stand in the docs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        (self.folder / "my_agent.py").write_text(AGENT)
        path = f"{folder / 'env/bin'}{os.pathsep}{os.environ['PATH']}"
        home = str(folder / "tapes")
        self.env = {**os.environ, "PATH": path, "PLAYHEAD_HOME": home, "HOME": str(folder)}
        self.env.pop("PYTHONPATH", None)

    def types(self, command: str, *, documented: str | None = None, code: int = 0) -> str:
        known = documented or command
        assert re.search(rf"(?<![\w-]){re.escape(known)}(?![\w-])", DOCS), f"no page says {known!r}"
        ended = subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        told = ended.stdout + ended.stderr
        assert ended.returncode == code, f"{command}: exit {ended.returncode}\n{told}"
        return told


# Thirty processes of Python, two of them with the imports of an SDK: minutes on a machine that is busy.
@pytest.mark.timeout(400)
def test_a_newcomer_does_twelve_tasks_by_the_commands_of_the_docs(environment):
    me = Newcomer(environment)
    # 1 see it work, without an SDK  2 record  3 read  4 one call
    told = me.types("playhead demo")
    assert [said for said in (*PRINTS, "identical") if said not in told] == []
    assert not list((environment / "env/lib").glob("python3*/site-packages/anthropic"))
    assert "● recorded" in me.types("playhead record -- python my_agent.py")
    assert "echo" in me.types("playhead show last")
    assert "found 3 orders" in me.types(
        "playhead show last --call 1", documented="playhead show last --call 8"
    )
    # 5 replay: the random number and the tool come from the tape
    assert "✓ identical" in me.types("playhead replay last")
    # 6 the list  7 raw events  8 is the tape intact?
    assert "my_agent.py" in me.types("playhead list")
    kinds = [json.loads(line)["kind"] for line in me.types("playhead events").splitlines()]
    assert {"run.start", "call", "run.end"} <= set(kinds)
    assert "intact" in me.types("playhead verify")
    # 9 a page to share  10 a test for git
    me.types("playhead export last --html run.html")
    assert "<html" in (me.folder / "run.html").read_text("utf-8")[:500]
    me.types("playhead promote last tests/")
    assert list((me.folder / "tests").rglob("*.tape.jsonl"))
    # 11 the program changed: where?
    (me.folder / "my_agent.py").write_text(AGENT.replace("3 orders", "4 orders"))
    assert "found 4 orders" in me.types("playhead replay last", code=3)
    # 12 delete it
    me.types("playhead rm last --yes", documented="playhead rm last")
    me.types("playhead show my_agent.py", documented="playhead show", code=2)


def test_the_base_installation_stays_small(environment):
    packages = next((environment / "env/lib").glob("python3*/site-packages"))
    # Without byte code: pip makes it while it installs, uv and pipx do not.
    files = (one for one in packages.rglob("*") if one.is_file() and one.suffix != ".pyc")
    size = sum(one.stat().st_size for one in files)
    names = list(packages.glob("*.dist-info"))
    assert size < 50_000_000, f"{size / 1e6:.0f} MB"
    assert len(names) <= 22, sorted(name.name for name in names)
