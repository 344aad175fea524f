"""Traffic that is not the agent's work."""

import json

import pytest

from playhead.launch.proxy.proxied_request import kind_of

API = "https://api.example"


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("HEAD", "/", "probe"),
        ("GET", "/api/hello", "probe"),
        ("POST", "/api/event_logging/batch", "telemetry"),
        ("POST", "/v1/traces", "telemetry"),
        ("GET", "/v1/models?client_version=0.166.0", "catalogue"),
        ("POST", "/v1/messages", None),
        ("POST", "/v1/responses", None),
        ("GET", "/v1/files/7", None),
    ],
)
def test_side_traffic_is_known_by_its_address(method, path, kind):
    assert kind_of(method, f"{API}{path}", b"") == kind


def asked(system: str, **more: object) -> bytes:
    return json.dumps({"model": "m", "system": system, "messages": [], **more}).encode()


def test_a_request_for_a_title_is_none_of_the_agents_work():
    title = "Generate a concise, sentence-case title (3-7 words) for this coding session."
    assert kind_of("POST", f"{API}/v1/messages", asked(title)) == "title"
    naming = (
        "You are naming a coding session so the user can pick it out of a long list of sessions."
    )
    assert kind_of("POST", f"{API}/v1/messages", asked(naming)) == "title"
    work = "You are a coding agent. Be concise."
    assert kind_of("POST", f"{API}/v1/messages", asked(work)) is None
    assert kind_of("POST", f"{API}/v1/messages", asked(title, tools=[{"name": "bash"}])) is None
    wished = [{"role": "user", "content": title}]
    assert kind_of("POST", f"{API}/v1/messages", asked(work, messages=wished)) is None
    long = asked(title, tools=["x" * 40_000])
    assert kind_of("POST", f"{API}/v1/messages", long) is None
