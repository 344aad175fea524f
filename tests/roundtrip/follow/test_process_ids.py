"""Process ids differ from run to run: those in logs are not compared, and root's replays have the command's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.launch.follow import tracer

# A log as servers write it; a job that is killed before it has executed any program; a duration. Whether a job that
# another process kills at once has executed its program by then is not ordered: see docs/determinism.md.
SCRIPT = """
"$PYTHON" -c 'import os; print(f"Started server process [{os.getpid()}]")' > server.log
(kill -9 $BASHPID) & wait $!
time tail -c 4 server.log | wc -l
"""
# The shell's own id in the name of a file, in arguments and in input.
OWN_ID = """
trap 'rm -f lock.$$' EXIT
echo $$ > lock.$$
seq 1 30000 > numbers.$$
cat numbers.$$ | tail -n 1
cat <<END
$$ is done
END
"""


def _can_choose_ids() -> bool:
    return os.access("/proc/sys/kernel/ns_last_pid", os.W_OK)


@pytest.mark.parametrize("script", [SCRIPT, OWN_ID], ids=["in a log", "its own"])
def test_a_script_with_process_ids_is_identical(tmp_path: Path, script: str):
    if why := tracer.why_not(os.environ):
        pytest.skip(f"needs a tracer, and {why}")
    if script == OWN_ID and not _can_choose_ids():
        pytest.skip("only root can choose the id of a process")
    project = tmp_path / "project"
    project.mkdir()
    (project / "agent.sh").write_text(script)
    env = {k: v for k, v in os.environ.items() if not k.startswith("PLAYHEAD_")}
    env |= {"PLAYHEAD_HOME": str(tmp_path / "store"), "PYTHON": sys.executable}
    verbs = {"recorded": "record -- bash agent.sh", "replayed": "replay last"}
    steps = [f'"$PYTHON" -m playhead {words} > ../{name}' for name, words in verbs.items()]
    # No process of another test must take the shell's id before the replay does, so these have ids of their own.
    alone = ["unshare", "--pid", "--fork", "--mount-proc"] if script == OWN_ID else []
    ended = subprocess.run(
        [*alone, "bash", "-c", " && ".join(steps)], cwd=project, env=env, capture_output=True,
        text=True, check=False, timeout=100,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "replayed").read_text() == (tmp_path / "recorded").read_text()
