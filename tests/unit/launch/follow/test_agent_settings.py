"""Base URLs in settings files of agents are replaced by the agents' own switches."""

import json
from pathlib import Path

import pytest

from playhead.launch.follow.agent_settings import (
    urls_in,
    with_file_variables,
    with_inline_settings,
    with_settings,
)

URL = "http://gateway:8000/v1"


def through(url: str) -> str:
    return url.replace("http://gateway:8000", "http://127.0.0.1:9")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home")}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def claude(url: str) -> str:
    return json.dumps({"env": {"ANTHROPIC_BASE_URL": url, "OTHER": "x"}, "model": "m"})


@pytest.mark.parametrize(
    "place",
    ["home/.claude/settings.json", ".claude/settings.json", ".claude/settings.local.json"],
)
def test_claude_code_gets_the_address_of_its_settings_by_a_switch(tmp_path, env, place):
    write(tmp_path / place, claude(URL))
    made = with_settings(["/x/claude", "-p", "hi"], env, str(tmp_path), through)
    assert made[:2] == ["/x/claude", "--settings"]
    assert json.loads(made[2]) == {"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9/v1"}}
    assert made[3:] == ["-p", "hi"]
    assert urls_in(["claude"], env, str(tmp_path)) == [URL]


def test_the_settings_that_win_are_the_ones_that_are_led(tmp_path, env):
    write(tmp_path / "home/.claude/settings.json", claude("http://other/"))
    write(tmp_path / ".claude/settings.json", claude(URL))
    assert urls_in(["claude"], env, str(tmp_path)) == [URL]


def test_settings_of_the_command_line_are_kept_and_changed_in_place(tmp_path, env):
    given = json.dumps({"model": "m", "env": {"ANTHROPIC_BASE_URL": URL, "X": "1"}})
    made = with_settings(["claude", "--settings", given, "hi"], env, str(tmp_path), through)
    assert json.loads(made[2]) == {
        "model": "m",
        "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9/v1", "X": "1"},
    }


@pytest.mark.parametrize(
    "text",
    [
        f'model_provider = "local"\n[model_providers.local]\nname = "x"\nbase_url = "{URL}" # here\n',
        f'[model_providers]\nlocal = {{ name = "x", base_url = "{URL}" }}\n',
        f'model_providers.local.base_url = "{URL}"\n',
    ],
)
def test_codex_gets_the_addresses_of_its_providers_before_its_own_words(tmp_path, env, text):
    write(tmp_path / "home/.codex/config.toml", text)
    made = with_settings(["node", "/x/codex.js", "exec", "hi"], env, str(tmp_path), through)
    switch = 'model_providers.local.base_url="http://127.0.0.1:9/v1"'
    assert made == ["node", "/x/codex.js", "-c", switch, "exec", "hi"]
    said = ["codex", "-c", f'model_providers.local={{base_url="{URL}"}}', "exec"]
    assert with_settings(said, env, str(tmp_path), through) == said


def test_gemini_gets_the_address_of_the_nearest_dotenv_file(tmp_path, env):
    write(tmp_path / "home/.env", "GOOGLE_GEMINI_BASE_URL=http://far/\n")
    write(tmp_path / ".env", f'export GOOGLE_GEMINI_BASE_URL="{URL}"\nOTHER=1\n')
    inner = tmp_path / "inner"
    inner.mkdir()
    assert with_file_variables(["gemini"], {**env, "A": "1"}, str(inner)) == {
        **env,
        "A": "1",
        "GOOGLE_GEMINI_BASE_URL": URL,
    }
    given = {**env, "GOOGLE_GEMINI_BASE_URL": "http://mine/"}
    assert with_file_variables(["gemini"], given, str(inner)) == given


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"env": 1}', '{"env": {"ANTHROPIC_BASE_URL": 1}}']
)
def test_settings_that_cannot_be_read_change_nothing(tmp_path, env, text):
    write(tmp_path / "home/.claude/settings.json", text)
    write(tmp_path / "home/.codex/config.toml", "model_providers = [")
    for words in (["claude", "hi"], ["codex", "hi"], ["curl", "x"]):
        assert with_settings(words, env, str(tmp_path), through) == words


OPENCODE = """{
  // The house's own gateway: "http://gateway:8000" is not https.
  "provider": {"house": {"npm": "x", "options": {"baseURL": "%s", "apiKey": "k"}}},
}"""


@pytest.mark.parametrize(
    "place",
    ["home/.config/opencode/opencode.json", "opencode.jsonc", ".opencode/opencode.json"],
)
def test_opencode_gets_the_address_of_its_settings_by_a_variable(tmp_path, env, place):
    write(tmp_path / place, OPENCODE % URL)
    words, inner = ["/x/opencode", "run", "hi"], tmp_path / "inner"
    made = with_inline_settings(words, env, str(inner), through)
    led = {"provider": {"house": {"options": {"baseURL": "http://127.0.0.1:9/v1"}}}}
    assert json.loads(made["OPENCODE_CONFIG_CONTENT"]) == led
    assert urls_in(words, env, str(inner)) == [URL]
    own = {**env, "OPENCODE_CONFIG_CONTENT": '{"model": "house/m"}'}
    made = with_inline_settings(words, own, str(inner), through)
    assert json.loads(made["OPENCODE_CONFIG_CONTENT"]) == {"model": "house/m", **led}
    assert with_inline_settings(["claude"], env, str(inner), through) == env


def test_qwen_code_gets_the_address_of_its_settings_by_a_variable(tmp_path, env):
    settings = {"security": {"auth": {"selectedType": "openai", "baseUrl": URL}}}
    write(tmp_path / "home/.qwen/settings.json", json.dumps(settings))
    made = with_file_variables(["/x/qwen", "-p", "hi"], env, str(tmp_path))
    assert made == {**env, "OPENAI_BASE_URL": URL}
    write(tmp_path / ".qwen/.env", "OPENAI_BASE_URL=http://nearer/v1\n")
    assert (
        with_file_variables(["qwen"], env, str(tmp_path))["OPENAI_BASE_URL"] == "http://nearer/v1"
    )
    given = {**env, "OPENAI_BASE_URL": "http://said/v1"}
    assert with_file_variables(["qwen"], given, str(tmp_path)) == given
