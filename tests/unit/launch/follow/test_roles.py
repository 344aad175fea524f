"""Which programs are part of the agent, by how they are started."""

import pytest

from playhead.launch.follow.roles import Role, agent_in, is_part_of_agent, role_of


@pytest.mark.parametrize(
    ("words", "role"),
    [
        ("claude -p hello", Role.AGENT),
        ("/opt/x/node_modules/.bin/codex exec", Role.AGENT),
        ("node /x/node_modules/@openai/codex/bin/codex.js exec", Role.AGENT),
        ("/usr/bin/env node /x/@google/gemini-cli/bundle/gemini.js -p x", Role.AGENT),
        ("node --max-old-space-size=8000 /x/gemini -p x", Role.AGENT),
        ("/x/codex --codex-run-as-apply-patch y", Role.OTHER),
        ("/proc/self/exe --codex-run-as-process-setup 47 16416 pipe bash", Role.SETUP),
        ("/bin/bash /home/me/bin/claude -p x", Role.AGENT),
        ("bash -c claude", Role.SHELL),
        ("rg --files", Role.OTHER),
        ("node -e 1", Role.OTHER),
        ("node agent.js", Role.SCRIPT),
        ("python3 agent.py", Role.PYTHON),
        ("/usr/bin/env python3 agent.py", Role.PYTHON),
        ("python3 -S agent.py", Role.OTHER),
        ("bash -c x", Role.SHELL),
        ("bash /home/me/.pyenv/shims/python agent.py", Role.PREFIX),
        ("/usr/bin/env bash /home/me/.pyenv/libexec/pyenv exec python agent.py", Role.PREFIX),
        ("bash python.sh", Role.SHELL),
        ("timeout 60 claude", Role.PREFIX),
        ("make agent", Role.RUNNER),
        ("node /usr/bin/npx claude", Role.RUNNER),
        ("env X=1 claude", Role.AGENT),
        ("curl x", Role.OTHER),
        ("", Role.OTHER),
    ],
)
def test_a_program_has_the_role_that_its_words_say(words, role):
    assert role_of(words.split()) is role


@pytest.mark.parametrize(
    ("parent", "words", "is_part"),
    [
        (Role.SHELL, "bash /home/me/.asdf/shims/python3 agent.py", True),
        (Role.SHELL, "bash /home/me/.pyenv/libexec/pyenv versions", False),
        (Role.SHELL, "claude -p x", True),
        (Role.SHELL, "python agent.py", True),
        (Role.SHELL, "node agent.js", False),
        (Role.SHELL, "bash other.sh", False),
        (Role.SHELL, "timeout -k 5 60s claude -p x", True),
        (Role.SHELL, "timeout 5 curl x", False),
        (Role.SHELL, "npx -y @openai/codex exec", True),
        (Role.SHELL, "uv run agent.py", True),
        (Role.SHELL, "make test", False),
        (Role.SHELL, "/usr/bin/env python3 agent.py", True),
        (Role.PREFIX, "./anything", True),
        (Role.RUNNER, "sh -c x", True),
        (Role.RUNNER, "node agent.js", True),
        (Role.RUNNER, "git clone x", False),
        (Role.RUNNER, "/v/bin/python -I -B -c import_get_interpreter_info;main()", True),
        (Role.RUNNER, "/v/bin/python -I tool.py", False),
        (Role.RUNNER, "/lib64/ld-linux-x86-64.so.2 --version", True),
        (Role.RUNNER, "/lib64/ld-linux-x86-64.so.2 ./program", False),
        (Role.AGENT, "python tool.py", False),
        (Role.AGENT, "/x/vendor/codex exec", True),
        (Role.AGENT, "bash -c SNAPSHOT_FILE=/root/.claude/shell-snapshots/snapshot.sh", True),
        (Role.OTHER, "sh -c x", False),
    ],
)
def test_what_starts_a_program_decides_whether_it_is_part_of_the_agent(parent, words, is_part):
    assert is_part_of_agent(parent, words.split()) is is_part


def test_an_agent_is_known_by_its_package_where_its_file_is_not_named_after_it():
    assert agent_in(["node", "/x/node_modules/@anthropic-ai/claude-code/cli.js", "-p"]) == "claude"
    assert agent_in(["node", "/x/node_modules/@anthropic-ai/claude-code/vendor/rg.js"]) is None
