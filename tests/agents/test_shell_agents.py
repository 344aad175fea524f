"""Agents written on the bare SDKs, whose tool is a shell: the commands, and who wrote them."""

import pytest

# Each agent is started three times, and some take seconds to import.
pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]

WORDS = [("echo hello big world", 0, 1), ("echo hello big world | wc -w", 0, 2)]


def check(run) -> None:
    assert run.printed == run.bare
    assert run.story.totals.llm_calls == run.requests == 3
    assert (run.story.totals.input_tokens, run.story.totals.output_tokens) == (300, 60)
    assert run.commands() == WORDS
    assert run.story.status == "ok"
    assert run.story.totals.lost == 0
    assert run.replay() == run.printed


@pytest.mark.parametrize(
    ("environment_name", "program"),
    [
        ("sdks", "anthropic_loop.py"),
        ("sdks", "anthropic_stream.py"),
        ("sdks", "openai_chat.py"),
        ("sdks", "openai_responses.py"),
        ("litellm", "litellm_loop.py"),
    ],
)
def test_the_model_s_calls_and_the_commands_it_wrote_are_on_the_tape(
    record, shell, environment_name, program
):
    run = record(environment_name, program, shell)
    assert "Three words." in run.printed
    check(run)


def test_mini_swe_agent_is_recorded_as_it_is(record, shell, reply):
    done = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo three"
    shell[2] = reply("Three words.", bash={"command": done})
    run = record("litellm", "mini_swe.py", shell)
    assert "Submitted" in run.printed
    assert run.printed == run.bare
    assert run.story.totals.llm_calls == 3
    assert run.commands() == [*WORDS, (done, 0, 3)]
    assert run.replay() == run.printed


EDIT = """Here.

greeting.py
```python
<<<<<<< SEARCH
{before}
=======
{after}
>>>>>>> REPLACE
```
"""


def test_aider_edits_tests_and_edits_again_on_the_tape(record, reply):
    script = [
        reply(EDIT.format(before='print("hello")', after='print("hello wrld")')),
        reply(EDIT.format(before='print("hello wrld")', after='print("hello world")')),
    ]
    test = "python3 -B greeting.py | grep world"
    run = record(
        "aider",
        "aider",
        script,
        *("--model", "openai/gpt-4o", "--edit-format", "diff", "--message", "Greet the world."),
        *("--yes-always", "--no-git", "--no-check-update", "--no-pretty", "--no-detect-urls"),
        *("--no-show-model-warnings", "--no-show-release-notes", "--no-analytics"),
        *("--auto-test", "--test-cmd", test, "greeting.py"),
        # Without this list of prices it would look for one on the net.
        files={
            "greeting.py": 'print("hello")\n',
            "home/.aider/caches/model_prices_and_context_window.json": '{"none": {}}',
        },
    )
    assert run.printed == run.bare
    assert (run.cwd / "greeting.py").read_text() == 'print("hello world")\n'
    assert run.story.totals.llm_calls == run.requests == 2
    tests = [one for one in run.calls("process") if test in str(one.request)]
    assert [one.outcome.get("exit_code") for one in tests] == [1, 0]
    (run.cwd / "greeting.py").write_text('print("hello")\n')
    assert run.replay() == run.printed
