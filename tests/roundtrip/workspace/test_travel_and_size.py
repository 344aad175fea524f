"""A run travels with its files, and their size is known and limited."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

from tests.roundtrip.workspace.conftest import Project
from tests.unit.workspace.conftest import fingerprint

AGENT = """
import subprocess
def sh(script):
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout
sh("git init -q . && git add -A && git -c user.name=a -c user.email=a@b.c commit -qm one")
sh("sed -i s/then/later/ data.txt; head -c 9000000 /dev/zero > large.bin")
print(sh("cat data.txt; git log --format=%s"))
"""


def moved_away(project: Project, tmp_path: Path) -> tuple[Project, str]:
    """A bundle of a run whose store and folder are gone."""
    project.write("data.txt", "then\n" * 2000)
    project.record(AGENT)
    bundle = tmp_path / "run.playhead.zip"
    done = project.playhead("export", "last", "--bundle", str(bundle))
    assert done.returncode == 0, done.stderr
    other = Project(folder=tmp_path / "other", home=tmp_path / "other-home")
    other.folder.mkdir()
    return other, str(bundle)


def test_a_bundle_has_the_files_of_every_step(project: Project, tmp_path: Path) -> None:
    other, bundle = moved_away(project, tmp_path)
    expected = fingerprint(project.folder)
    shutil.rmtree(project.home)
    shutil.rmtree(project.folder)
    assert [one["step"] for one in other.json("files", bundle)["steps"]] == [1, 2]
    done = other.playhead("checkout", bundle, str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert fingerprint(tmp_path / "out") == expected


def test_a_bundle_replays_where_the_run_never_was(project: Project, tmp_path: Path) -> None:
    other, bundle = moved_away(project, tmp_path)
    shutil.rmtree(project.home)
    shutil.rmtree(project.folder)
    done = other.playhead("replay", bundle, "--no-persist", "--trust")
    assert done.returncode == 0, done.stderr
    assert "files: identical" in done.stderr
    assert not project.folder.exists()


def test_a_bundle_of_another_person_changes_no_folder_that_it_names(
    project: Project, tmp_path: Path
) -> None:
    other, bundle = moved_away(project, tmp_path)
    for words in (
        ("checkout", bundle, "--at", "1", "--in-place"),
        ("fork", bundle, "--at", "2", "--apply", "--yes"),
    ):
        done = other.playhead(*words)
        assert done.returncode == 2
        assert "does not change the folder that its tape names" in done.stderr


def test_an_archive_that_is_not_a_bundle_is_refused(project: Project, tmp_path: Path) -> None:
    for name in ("../evil", "runs/../../evil", "other/x", "/etc/x"):
        path = tmp_path / "x.playhead.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, "x")
        done = project.playhead("files", str(path))
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        assert not os.path.lexists(tmp_path / "evil")
    (tmp_path / "y.playhead.zip").write_bytes(b"no archive")
    assert (
        "cannot be read as a bundle"
        in project.playhead("files", f"{tmp_path}/y.playhead.zip").stderr
    )


def test_the_size_of_recorded_files_is_known_and_limited(project: Project) -> None:
    for _ in range(3):
        project.record(
            "import subprocess; subprocess.run('head -c 400000 /dev/urandom > x', shell=True)"
        )
    before = project.json("stats")["store"]["file_bytes"]
    assert before > 1_200_000
    assert "of recorded files in the store" in project.playhead("stats").stdout
    done = project.playhead("prune", "--max-size", "700KB", "--yes")
    assert done.returncode == 0, done.stderr
    assert project.json("stats")["total"]["runs"] == 1
    assert project.json("stats")["store"]["file_bytes"] < before


def test_automatic_retention_deletes_contents_too(project: Project) -> None:
    project.write("playhead.toml", "[retention]\nauto = true\nkeep = 1\n")
    for _ in range(3):
        project.record(
            "import subprocess; subprocess.run('head -c 400000 /dev/urandom > x', shell=True)"
        )
    told = project.json("stats")
    assert told["total"]["runs"] == 1
    # The last run starts with the file of the one before: two of three contents are needed.
    assert told["store"]["file_bytes"] < 1_000_000
