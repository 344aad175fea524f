"""Which variables lead agents through the proxy, and where they lead from there."""

import pytest

from playhead.launch.proxy.routes import (
    Detour,
    Origin,
    addresses,
    arrived,
    detours,
    guessed,
    led,
    origin_of,
    origins,
)

ANTHROPIC = Origin("https", "api.anthropic.com", 443)


def test_the_users_own_address_is_where_the_proxy_leads():
    found = addresses({"ANTHROPIC_BASE_URL": "http://gateway:8080/a"})
    assert found["ANTHROPIC_BASE_URL"] == "http://gateway:8080/a"
    assert origin_of(found["GOOGLE_GEMINI_BASE_URL"]).host == "generativelanguage.googleapis.com"


def test_two_names_of_one_address_lead_to_the_one_that_is_set():
    assert addresses({"OPENAI_BASE_URL": "http://own/v1"})["OPENAI_API_BASE"] == "http://own/v1"


def test_a_variable_without_an_address_is_left_alone():
    assert "ANTHROPIC_BASE_URL" not in addresses({"ANTHROPIC_BASE_URL": "unix:/run/x"})
    assert "AZURE_OPENAI_ENDPOINT" not in addresses({})


def test_each_origin_has_one_port_and_paths_stay():
    found = {"A": "http://one/v1", "B": "http://one", "C": "https://two:8443/x"}
    assert [str(one) for one in origins(found.values())] == ["http://one", "https://two:8443"]
    ports = dict(zip(origins(found.values()), (4001, 4002), strict=True))
    assert detours({"A": "http://one/v1"}, found, ports) == {
        "A": Detour("http://127.0.0.1:4001/v1", "http://one/v1"),
        "B": Detour("http://127.0.0.1:4001", None),
        "C": Detour("http://127.0.0.1:4002/x", None),
    }


WAYS = {"A": Detour("http://127.0.0.1:4001/v1", "http://one/v1", "t0ken")}


def test_a_child_with_an_address_of_its_own_comes_by_and_is_led_there():
    values, told = led({"A": "https://two/v2"}, WAYS, "7:12")
    assert values == {"A": "http://127.0.0.1:4001/~7:12~https~two:443~t0ken/v2"}
    assert told == {"A": Detour("http://127.0.0.1:4001/v1", "https://two/v2", "t0ken")}
    assert arrived("/~7:12~https~two:443~t0ken/v2/messages", ANTHROPIC, "t0ken") == (
        Origin("https", "two", 443),
        "/v2/messages",
        "7:12",
    )


@pytest.mark.parametrize(
    "target",
    ["/~~http~evil.test:80/x", "/~~http~169.254.169.254:80/latest", "/~~http~evil:80~/x", "/~~http~evil:80~wrong/x",
     "/~7:12~http~evil:80~t0ken~more/x", "/~7:12~t0ken/x", "/~~ftp~evil:80~t0ken/x", "/~~http~evil:80~t\xf6ken/x"],
)  # fmt: skip
def test_a_server_is_named_only_with_the_token_of_the_run(target):
    assert arrived(target, ANTHROPIC, "t0ken") is None
    assert arrived("/~~http~evil:80~/x", ANTHROPIC, "") is None


def test_the_way_is_taken_once_whoever_adds_to_it():
    values, _ = led({"A": "http://127.0.0.1:4001/~7:12/v1"}, WAYS, "9:1")
    assert values == {"A": "http://127.0.0.1:4001/~9:1/v1"}
    assert arrived("/~9:1/v1/messages?beta=true", ANTHROPIC, "t0ken") == (
        *(ANTHROPIC, "/v1/messages?beta=true", "9:1"),
    )
    assert arrived("/v1/messages", ANTHROPIC, "t0ken") == (ANTHROPIC, "/v1/messages", None)


def test_by_a_port_for_all_a_request_finds_its_vendor():
    found = addresses({})

    def host(target: str, *headers: str) -> str:
        return guessed(target, headers, found).host

    assert host("/v1/messages") == "api.anthropic.com"
    assert host("/v1/models", "Anthropic-Version") == "api.anthropic.com"
    assert host("/v1/responses", "Authorization") == "api.openai.com"
    assert host("/v1beta/models/x:generateContent") == "generativelanguage.googleapis.com"


def test_addresses_are_read_as_they_are_written():
    assert origin_of("HTTPS://User:pw@Host.Example:8443/x") == Origin("https", "host.example", 8443)
    assert origin_of("http://[::1]:80") == Origin("http", "[::1]", 80)
    assert origin_of("http://[::1]").authority == "[::1]"
    assert origin_of("/just/a/path") is None
