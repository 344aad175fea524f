"""What `playhead record` takes, says and leaves behind."""

import json
import re
import sys

import pytest

from playhead.tape.manifest import read_manifest

OK = (sys.executable, "-c", "import subprocess; subprocess.run(['true'])")


def test_one_line_on_stderr_says_what_was_recorded(record):
    take = record(*OK)
    assert take.ended.stdout == ""
    told = r"● recorded \d{8}-\d{6}-\w{4} · 1 call · [\d.]+ (ms|s) · playhead show last\n"
    assert re.fullmatch(told, take.ended.stderr), take.ended.stderr
    assert take.run.name in take.ended.stderr


def test_a_failure_is_in_that_line(record):
    take = record("sh", "-c", "exit 3")
    assert " · failed (exit code 3) · " in take.ended.stderr
    assert take.ended.stderr.count("\n") == 1


def test_quiet_says_nothing_at_all(record):
    take = record(*OK, options=["--quiet"])
    assert (take.ended.stdout, take.ended.stderr) == ("", "")
    assert take.status == "ok"


def test_json_says_it_for_programs_on_stderr(record):
    take = record(*OK, options=["--json"])
    assert take.ended.stdout == ""
    told = json.loads(take.ended.stderr)
    assert told["run"] == take.run.name
    assert told["path"] == str(take.run)
    assert (told["status"], told["exit_code"], told["calls"], told["lost"]) == ("ok", 0, 1, 0)
    assert told["sealed"] is False
    assert told["left_plain"] == "small"


def test_name_tags_and_level_are_in_the_manifest(record):
    options = ["--name", "nightly", "--tag", "env=ci", "--tag", "a=b=c", "--level", "standard"]
    manifest = record(*OK, options=options).manifest
    assert manifest.name == "nightly"
    assert manifest.tags == {"env": "ci", "a": "b=c"}
    assert manifest.level == "standard"
    assert manifest.command == list(OK)


def test_every_process_records_at_the_level_of_the_run(record):
    take = record(*OK, options=["--level", "minimal"])
    assert {one.data["level"] for one in take.of("segment.start")} == {"minimal"}
    (call,) = take.calls()
    assert "request" not in call.data


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ([sys.executable, "-c", "pass"], "python"),
        ([sys.executable, "-m", "this"], "this"),
        (["sh", "-c", "true"], "sh"),
    ],
)
def test_a_run_is_called_after_its_program(record, command, name):
    assert record(*command).manifest.name == name


def test_a_run_is_called_after_its_script(record):
    script = record.script("my_agent.py", "")
    assert record(sys.executable, "-B", script).manifest.name == "my_agent.py"


def test_the_manifest_knows_folder_project_commit_and_segments(record):
    git = record.folder / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs" / "heads" / "main").write_text(f"{'a1' * 20}\n")
    inside = record.folder / "inside"
    inside.mkdir()
    take = record(*OK, cwd=inside)
    manifest = take.manifest
    assert manifest.cwd == str(inside)
    assert manifest.project == str(record.folder)
    assert manifest.git_commit == "a1" * 20
    assert manifest.events == len(take.events)
    sizes = {f"tape-{one.name}.jsonl": one.bytes for one in manifest.segments}
    assert sizes == {path.name: path.stat().st_size for path in take.run.glob("tape-*")}
    assert len(sizes) == len(take.of("segment.start"))


def test_the_store_may_be_named(record):
    take = record(*OK, options=["--store", "elsewhere"])
    assert take.ended.returncode == 0
    assert not (record.home / "runs").exists()
    (run,) = (record.folder / "elsewhere" / "runs").iterdir()
    assert read_manifest(run).status == "ok"


def test_a_run_may_be_given_its_id_and_a_taken_one_is_not_overwritten(record):
    record(*OK, options=["--run-id", "mine"])
    take = record("sh", "-c", "exit 3", options=["--run-id", "mine"])
    assert take.ended.returncode == 3
    assert "mine exists already; recording as mine-2" in take.ended.stderr
    runs = {path.name: read_manifest(path).status for path in (record.home / "runs").iterdir()}
    assert runs == {"mine": "ok", "mine-2": "failed"}


def test_force_moves_the_earlier_run_aside(record):
    record(*OK, options=["--run-id", "mine"])
    record("sh", "-c", "exit 3", options=["--run-id", "mine", "--force"])
    runs = sorted(path.name for path in (record.home / "runs").iterdir())
    assert runs[0] == "mine"
    assert re.fullmatch(r"mine\.old\.\d{8}T\d{6}", runs[1])
    assert read_manifest(record.home / "runs" / "mine").status == "failed"


@pytest.mark.parametrize(
    "options", [["--resume", "mine"], ["--resume"], ["--run-id", "mine", "--resume"]]
)
def test_resume_appends_to_the_earlier_run(record, options):
    record(*OK, options=["--run-id", "mine"])
    take = record(*OK, options=[*options])
    assert take.ended.returncode == 0, take.ended.stderr
    assert take.run.name == "mine"
    assert len(take.calls()) == 2
    assert [event.data["resumed"] for event in take.of("run.start")] == [False, True]
    assert take.manifest.generation == 1
    assert take.damages == []


def test_secrets_are_taken_out_by_every_process_unless_that_is_switched_off(record):
    secret = "sk-ant-" + "a1B2" * 8
    program = f"import subprocess; subprocess.run(['echo', '{secret}'])"
    record(sys.executable, "-c", program, options=["--run-id", "clean"])
    record(sys.executable, "-c", program, options=["--run-id", "open", "--no-redact"])
    clean, opened = (
        b"".join(
            path.read_bytes() for path in sorted((record.home / "runs" / name).rglob("*.json*"))
        )
        for name in ("clean", "open")
    )
    assert secret.encode() not in clean
    assert b"redacted" in clean
    assert secret.encode() in opened


def test_patterns_of_the_users_own_hold_in_every_process(record):
    (record.folder / "playhead.toml").write_text('[redact]\npatterns = ["customer-[0-9]+"]\n')
    take = record(
        sys.executable, "-c", "import subprocess; subprocess.run(['echo', 'customer-77'])"
    )
    assert "redacted" in str(take.calls()[0].data["request"]["argv"])


def test_a_run_worth_it_is_sealed_unless_that_is_switched_off(record):
    program = "import random\nfor _ in range(40): print(random.randbytes(8000).hex())"
    take = record(sys.executable, "-c", program, options=["--json", "--run-id", "one"])
    assert json.loads(take.ended.stderr)["sealed"] is True
    assert not list((record.home / "runs" / "one").glob("tape-*.jsonl"))
    take = record(sys.executable, "-c", program, options=["--json", "--run-id", "two", "--no-seal"])
    assert json.loads(take.ended.stderr)["left_plain"] == "not asked for"
    assert list((record.home / "runs" / "two").glob("tape-*.jsonl"))


def test_a_command_that_is_not_there_is_told_as_a_shell_tells_it(record):
    take = record("no-such-command-here")
    assert take.ended.returncode == 127
    assert "cannot run no-such-command-here: No such file or directory." in take.ended.stderr
    assert take.status == "failed"


def test_a_command_that_may_not_be_run_is_told_as_a_shell_tells_it(record):
    take = record(record.script("data.txt", "x"))
    assert take.ended.returncode == 126
    assert "Permission denied" in take.ended.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--level", "loud"], "--level"),
        (["--force"], "--run-id or --name"),
        (["--run-id", "../x"], "cannot be a run id"),
        (["--resume", "nothing"], "No run is called 'nothing'"),
        (["--tag", "novalue"], "K=V"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_run(record, options, told):
    take = record("touch", "was-run", options=options)
    assert take.ended.returncode == 2
    assert told in take.ended.stderr
    assert "Traceback" not in take.ended.stderr
    assert not (record.folder / "was-run").exists()


def test_without_a_command_nothing_is_recorded(record):
    ended = record.bare(*record.argv()[:-1])
    assert ended.returncode == 2
    assert not record.home.exists()


def test_a_configuration_that_is_wrong_is_said_before_anything_is_run(record):
    (record.folder / "playhead.toml").write_text('level = "loud"\n')
    take = record("touch", "was-run")
    assert take.ended.returncode == 2
    assert "level is 'loud'" in take.ended.stderr
    assert not (record.folder / "was-run").exists()


def test_nothing_of_ours_is_left_in_the_folder_of_an_ended_run(record):
    take = record(*OK)
    names = {path.name for path in take.run.iterdir() if not path.name.startswith("tape-")}
    assert names <= {"manifest.json", "summary.json"}
