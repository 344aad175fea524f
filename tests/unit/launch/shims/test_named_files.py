"""A process call's files outside the workspace are found by the paths of its command line."""

from playhead.encoding.values import freeze
from playhead.launch.shims.named_files import NamedFiles, files_to_write, paths_in


def test_paths_are_found_in_words_and_inside_a_shell_command():
    words = ["/bin/bash", "-c", "f=/tmp/a-1/b.tmp; curl http://h/p -o '/var/x.y' s/8/9/ $HOME/z"]
    assert paths_in(words) == ["/tmp/a-1/b.tmp", "/var/x.y"]


def test_a_file_that_the_program_changed_has_the_name_of_the_other_command_line(tmp_path):
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("as before")
    argv = ["sh", "-c", f"cat {old} > {new}"]
    named = NamedFiles(argv, lambda _: False)
    new.write_bytes(b"\xff!")
    facts = freeze(named.facts())
    assert files_to_write(["sh", "-c", "cat /o/ld > /n/ew"], facts) == [("/n/ew", b"\xff!")]
    assert files_to_write(["sh", "-c", "cat x"], facts) == []


def test_files_of_the_workspace_secrets_links_and_large_files_are_not_taken(tmp_path):
    paths = [tmp_path / name for name in ("mine", ".env", "link", "large", "fifo")]
    mine, secret, link, large, _ = paths
    named = NamedFiles(["sh", *map(str, paths)], lambda path: path == str(mine))
    mine.write_text("m")
    secret.write_text("KEY=1")
    link.symlink_to(mine)
    large.write_bytes(bytes(1 << 20))
    assert named.facts() == {}
