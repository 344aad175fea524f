"""Where compiled programs are kept."""

import os

from playhead.host.cache_folder import cache_folder


def test_the_users_cache_is_used_where_it_can_be_made(tmp_path):
    assert cache_folder({"HOME": str(tmp_path)}) == f"{tmp_path}/.cache/playhead"
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path)}) == f"{tmp_path}/playhead"


def test_a_home_that_cannot_be_written_leads_to_a_private_temporary_folder(tmp_path):
    found = cache_folder({"HOME": "/dev/null/nonexistent", "TMPDIR": str(tmp_path)})
    assert found == f"{tmp_path}/playhead-cache-{os.geteuid()}"
    assert os.stat(found).st_mode & 0o777 == 0o700


def test_a_temporary_folder_that_others_may_write_to_is_not_used(tmp_path):
    (tmp_path / f"playhead-cache-{os.geteuid()}").mkdir()
    (tmp_path / f"playhead-cache-{os.geteuid()}").chmod(0o777)
    env = {"HOME": "/dev/null/nonexistent", "TMPDIR": str(tmp_path)}
    assert cache_folder(env) == "/dev/null/nonexistent/.cache/playhead"
