"""Which project a run belongs to, and at which commit."""

import subprocess

import pytest

from playhead.host.project import commit_of, project_of

IDENTITY = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"]


def git(folder, *words):
    argv = ["git", "-C", str(folder), *IDENTITY, *words]
    return subprocess.check_output(argv, text=True).strip()


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    return folder


def head(folder):
    return git(folder, "rev-parse", "HEAD")


def test_the_git_root_is_the_project_from_anywhere_in_it(project):
    deep = project / "a" / "b"
    deep.mkdir(parents=True)
    assert project_of(deep) == project


def test_without_git_the_folder_is_the_project(tmp_path):
    assert project_of(tmp_path) == tmp_path
    assert commit_of(tmp_path) is None


def test_the_commit_is_what_git_says(project):
    assert commit_of(project) == head(project)


def test_packed_and_detached_commits_are_found(project):
    git(project, "pack-refs", "--all")
    assert commit_of(project) == head(project)
    git(project, "checkout", "-q", "--detach")
    assert commit_of(project) == head(project)


def test_a_worktree_has_its_own_commit(project, tmp_path):
    other = tmp_path / "other"
    git(project, "worktree", "add", "-q", "-b", "side", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "y")
    assert commit_of(other) == head(other) != head(project)


def test_a_project_without_a_commit_has_none(tmp_path):
    git(tmp_path, "init", "-q")
    assert commit_of(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    [b"", b"ref: ../../secret", b"\xff\xfe", b"ref: refs/heads/none", b"not a hash", b"ref: HEAD"],
)
def test_a_broken_or_hostile_head_gives_none(project, tmp_path, text):
    (tmp_path / "secret").write_text("password")
    (project / ".git" / "HEAD").write_bytes(text)
    assert commit_of(project) is None
