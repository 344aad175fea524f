"""What no program can keep the same does not count; everything else does."""

import json

import pytest

from playhead.replay.matching.normalise import places_of, settled_text

CALLS = {
    "anthropic": (
        [{"type": "tool_use", "id": "one"}, {"type": "tool_use", "id": "two"}],
        lambda name, text: {"type": "tool_result", "tool_use_id": name, "content": text},
    ),
    "chat": (
        [
            {"type": "function", "id": "one", "function": {"name": "f"}},
            {"type": "function", "id": "two", "function": {"name": "g"}},
        ],
        lambda name, text: {"role": "tool", "tool_call_id": name, "content": text},
    ),
    "responses": (
        [{"type": "function_call", "call_id": "one"}, {"type": "function_call", "call_id": "two"}],
        lambda name, text: {"type": "function_call_output", "call_id": name, "output": text},
    ),
    "gemini": (
        [{"functionCall": {"id": "one"}}, {"functionCall": {"id": "two"}}],
        lambda name, text: {"functionResponse": {"id": name, "response": text}},
    ),
}


def body(value: object) -> dict:
    return {"body": {"text": json.dumps(value)}}


@pytest.mark.parametrize("api", CALLS)
def test_results_in_the_order_in_which_tools_came_back_are_the_same(api):
    calls, result = CALLS[api]
    one = body([calls, [result("one", "1"), result("two", "2")]])
    other = body([calls, [result("two", "2"), result("one", "1")]])
    swapped = body([calls, [result("one", "2"), result("two", "1")]])
    assert settled_text(one) == settled_text(other)
    assert settled_text(one) != settled_text(swapped)


def test_ids_in_json_within_json_count_by_where_they_stand():
    def asked(session: str, device: str, *, flip: bool = False) -> dict:
        user = {"device_id": device, "session_id": session}
        items = reversed(user.items()) if flip else user.items()
        return body({"metadata": {"user_id": json.dumps(dict(items))}, "again": session})

    first, second = "3f2b8c1e-9a4d-4e2f-8b7a-1c2d3e4f5a6b", "00000000-9a4d-4e2f-8b7a-1c2d3e4f5a6b"
    assert settled_text(asked(first, "a1" * 32)) == settled_text(
        asked(second, "b2" * 32, flip=True)
    )
    assert settled_text(asked(first, first)) != settled_text(asked(first, "a1" * 32))


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("Wall time: 0.0123 seconds", "Wall time: 1.5 seconds"),
        (" exited 3 in 52ms:", " exited 3 in 1238ms:"),
        ('{"x-codex-turn-metadata": "{\\"workspaces\\":{}}"}', '{"x-codex-turn-metadata": "{}"}'),
        ("Chunk ID: 4a20e9", "Chunk ID: 77b1c0"),
        ("run_shell_command_1794752050629_0", "run_shell_command_1794752099999_0"),
        ("[main d220ee9] fix", "[main a1b2c3d] fix"),
        ("Today is Sunday, November 15, 2026.", "Today is Monday, December 7, 2026."),
        ('{"duration_ms": 1200}', '{"duration_ms": 7}'),
        ("Process Group PGID: 14335", "Process Group PGID: 99"),
        (1794754483.6517882, 1794754527.0164158),
        (1794754483651, 1794754527016),
    ],
)
def test_what_changes_from_run_to_run_is_put_to_rest(then, now):
    assert settled_text({"text": then}) == settled_text({"text": now})


def test_times_that_happen_to_be_equal_are_no_bond():
    assert settled_text("1794752050629 1794752050629") == settled_text(
        "1794752050629 1794752050630"
    )


def test_a_number_is_no_text_and_no_other_number():
    assert settled_text({"n": 1}) != settled_text({"n": "1"})
    assert settled_text({"n": 1}) != settled_text({"n": 1.0})
    assert settled_text({"n": [1, 23]}) != settled_text({"n": [12, 3]})
    assert settled_text(["a", "b"]) != settled_text(["ab", ""])


def test_where_a_prompt_is_cached_does_not_count():
    marked = {"content": "x", "cache_control": {"type": "ephemeral"}}
    assert settled_text(body([marked])) == settled_text(body([{"content": "x"}]))


def test_folders_count_by_what_they_are():
    then = places_of("/home/ada/shop", "/home/ada")
    now = places_of("/srv/build/shop2", "/root")
    one = "in /home/ada/shop/a.py, see /home/ada/.claude/projects/-home-ada-shop/memory"
    other = "in /srv/build/shop2/a.py, see /root/.claude/projects/-srv-build-shop2/memory"
    assert settled_text(one, then) == settled_text(other, now)
    assert settled_text(one, then) != settled_text(other.replace("a.py", "b.py"), now)


def test_a_program_is_the_same_wherever_it_is_installed():
    then = {"argv": ["/usr/bin/git", "log", "/usr/bin/git"]}
    now = {"argv": ["git", "log", "/usr/bin/git"]}
    assert settled_text(then) == settled_text(now)
    assert settled_text(["git log", then]) == settled_text(["git log", now])
    assert settled_text(then) != settled_text({"argv": ["/usr/bin/hg", "log", "/usr/bin/git"]})


def test_an_empty_stdin_matches_an_inherited_one_and_no_other():
    texts = {
        kind: settled_text(["git", {"argv": ["git"], "stdin": kind}])
        for kind in ("null", "closed", "inherited", "pipe")
    }
    assert texts["null"] == texts["closed"] == texts["inherited"] != texts["pipe"]


@pytest.mark.parametrize("name", ["b64", "$bytes"])
def test_binary_data_is_compared_as_it_is(name):
    # It has what looks like a moment, by chance.
    one, other = ({"body": {name: f"AAAA+{moment}+"}} for moment in (1700000000, 1700000001))
    assert settled_text(one) != settled_text(other)
    assert settled_text(one) == settled_text(dict(one))


SNAPSHOT = """__CODEX_SNAPSHOT_OVERRIDE_0="${CODEX_VERSION-}"

if . '/root/.codex/shell_snapshots/01a1ed3d.1794981595.sh' >/dev/null 2>&1; then :; fi

if [ -n "${PATH:-}" ]; then export PATH='/codex-path':"$PATH"; fi

exec '/bin/bash' -c """


@pytest.mark.parametrize(
    "command",
    [
        "ls -l",
        "echo 'a b' > c.txt; cat <<'EOF'\n$HOME\nEOF",
        "true\n\nexec '/bin/bash' -c 'ls'",
        "cat /root/.codex/shell_snapshots/other.sh",
    ],
)
def test_a_tool_of_codex_is_the_same_before_and_after_its_shell_snapshot_exists(command):
    quoted = "'" + command.replace("'", "'\"'\"'") + "'"
    plain, wrapped, other = (
        settled_text({"argv": argv, "stdin": "inherited"})
        for argv in (
            ["/bin/bash", "-lc", command],
            ["/bin/bash", "-c", SNAPSHOT + quoted],
            ["/bin/bash", "-c", SNAPSHOT + quoted.replace("c", "d")],
        )
    )
    assert wrapped == plain
    assert (other == plain) is ("c" not in command)
    assert settled_text({"argv": ["/bin/bash", "-c", command], "stdin": "inherited"}) != plain
