"""A recorded command runs again over HTTP only where the server's owner has said so."""

import subprocess
import sys

from playhead.tape import store as stores


def record(store, program):
    argv = [sys.executable, "-m", "playhead", "record", "--store", str(store), "--"]
    # In a folder of its own: other tests change files in the folder of the checkout meanwhile.
    folder = program.parent / "workspace"
    folder.mkdir()
    asked = [*argv, sys.executable, str(program)]
    subprocess.run(asked, cwd=folder, check=True, capture_output=True)
    return stores.run_ids(store)[0]


def test_nothing_is_run_unless_it_was_allowed(site, refund):
    said = site.ask(f"/api/recordings/{refund.path.name}/replay", "POST")
    assert said.status == 403
    assert "--allow-replay" in said.json["error"]["next"]


def test_a_replay_gives_its_report_and_keeps_it(serve, store, tmp_path):
    program = tmp_path / "agent.py"
    program.write_text("print('hello from the agent')\n")
    run = record(store, program)
    site = serve(allow_replay=True)
    report = site.ask(f"/api/recordings/{run}/replay", "POST", body={}).json
    assert (report["verdict"], report["run"]) == ("identical", run), report
    again = site.ask(f"/api/recordings/{report['replay']}/report").json
    assert (again["verdict"], again["run"], again["coverage"]) == (
        *("identical", run),
        report["coverage"],
    )
    listed = site.ask("/api/recordings").json["runs"]
    assert {row["replay_of"] for row in listed} == {None, run}


def test_a_tape_that_cannot_be_replayed_is_said_with_the_reason(serve, forge):
    forge("light", level="minimal").end()
    site = serve(allow_replay=True)
    said = site.ask("/api/recordings/light/replay", "POST")
    assert said.status == 409
    assert "level 'minimal'" in said.reason
    wrong = site.ask("/api/recordings/light/replay", "POST", body={"faults": ["nonsense"]})
    assert wrong.status == 400
