"""Process ids differ from run to run: those in logs are not compared, and root's replays have the command's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import warm_start

from playhead.launch.follow import tracer

PLAYHEAD = [sys.executable, "-m", "playhead"]

# A log as servers write it; a job that is killed, perhaps before anything else is known of it; a duration.
SCRIPT = """
"$PYTHON" -c 'import os; print(f"Started server process [{os.getpid()}]")' > server.log
sleep 30 & kill -9 $!; wait $!
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
    (tmp_path / "agent.sh").write_text(script)
    env = {k: v for k, v in os.environ.items() if not k.startswith("PLAYHEAD_")}
    env |= {"PLAYHEAD_HOME": str(tmp_path / "store"), "PYTHON": sys.executable}

    def play(*words: str) -> subprocess.CompletedProcess[str]:
        return warm_start.run(
            [*PLAYHEAD, *words], cwd=tmp_path, env=env, capture_output=True, text=True,
            check=False, timeout=100,
        )  # fmt: skip

    recorded = play("record", "--", "bash", "agent.sh")
    assert recorded.returncode == 0, recorded.stderr
    replayed = play("replay", "last")
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == recorded.stdout
