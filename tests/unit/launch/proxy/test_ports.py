"""Codex, which looks at no variable; and spare ports."""

import asyncio
from pathlib import Path

import pytest

from playhead.launch.proxy import ports
from playhead.launch.proxy.ports import addresses_in, turned, why_silent
from playhead.launch.proxy.proxy_server import Proxy
from playhead.launch.proxy.routes import SPARE, Origin


@pytest.fixture
def env(tmp_path):
    return {"HOME": str(tmp_path), "CODEX_API_KEY": "k"}


def turn(url: str) -> str:
    return f"http://127.0.0.1:1/{url.rpartition('/')[2]}"


def test_an_address_in_its_own_words_is_turned(env):
    provider = 'model_providers.x={name="x",base_url="https://gateway.example/v1",env_key="K"}'
    command = ["codex", "exec", "-c", provider, "-c", "model_provider=x", "Hello"]
    assert addresses_in(command, env) == ["https://gateway.example/v1"]
    assert turned(command, env, turn)[3] == provider.replace(
        "https://gateway.example/v1", "http://127.0.0.1:1/v1"
    )


@pytest.mark.parametrize(
    "word", ['-copenai_base_url="https://own/v1"', "--config=openai_base_url=https://own/v1"]
)
def test_every_form_of_the_switch_is_known(env, word):
    assert addresses_in(["codex", word, "exec", "Hi"], env) == ["https://own/v1"]


def test_where_nothing_is_said_the_usual_server_is_meant(env):
    command = ["npx", "-y", "@openai/codex", "exec", "Hello"]
    switch = ["-c", 'openai_base_url="http://127.0.0.1:1/v1"']
    assert turned(command, env, turn) == [*command[:3], *switch, *command[3:]]


def test_a_login_or_a_configuration_of_its_own_is_left_alone(env, tmp_path):
    command = ["codex", "exec", "Hello"]
    assert turned(command, {"HOME": str(tmp_path)}, turn) == command
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text('model_provider = "mine"\n')
    assert turned(command, env, turn) == command


def test_other_programs_keep_their_words(env):
    command = ["git", "log", "codex", "-c", "openai_base_url=https://own"]
    assert turned(command, env, turn) == command
    assert addresses_in(command, env) == []


def test_an_agent_that_asked_nobody_is_a_hole_unless_it_was_not_to_work():
    assert "openai_base_url" in why_silent(["codex", "exec", "Hello"])
    assert "settings" in why_silent(["/usr/bin/claude", "-p", "Hello"])
    assert why_silent(["codex", "login"]) is None
    assert why_silent(["claude", "--version"]) is None
    assert why_silent(["ls", "-l"]) is None


def test_spare_ports_of_a_killed_process_serve_nobody_and_are_not_given_away_again():
    listener = ports.listen()
    number = listener.getsockname()[1]
    spares = ports.SparePorts([number, 1])
    assert spares.port_for(Origin("http", "gateway.example", 80)) == number
    spares.withdraw()
    assert spares.port_for(Origin("http", "other.example", 80)) is None

    async def asked() -> bytes:
        over = asyncio.Event()
        proxy = Proxy({Origin(SPARE, "", number): listener}, {}, spares=spares)
        serving = asyncio.create_task(proxy.serve_until(over))
        reader, writer = await asyncio.open_connection("127.0.0.1", number)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()
            over.set()
            await serving

    assert asyncio.run(asked()) == b""


def test_the_proxy_takes_no_port_that_a_server_on_any_port_may_have_had():
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    made = ports.ProxyPorts(["agent"], {}, followed=True)
    try:
        assert made.numbers
        assert max(made.numbers) < lowest
    finally:
        made.close()


def test_a_port_that_is_taken_is_passed_over():
    tried = []

    def listen(port=0):
        tried.append(port)
        if len(tried) < 3:
            raise OSError(98, "Address already in use")
        return port

    assert ports.listen_apart(listen) == tried[2]
    assert 0 not in tried
