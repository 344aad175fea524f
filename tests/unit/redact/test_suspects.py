"""The quick look for secrets: JSON's own numbers are none, and numbers inside texts may be."""

import json

import pytest

from playhead.redact import Redactor

REDACTOR = Redactor(key=b"k" * 32)


def suspects(data) -> bool:
    return REDACTOR.suspects(json.dumps(data, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    "data",
    [
        {"call": 17, "how": "returned", "took_ns": 1_234_567_890, "value": "fine"},
        {"sizes": [12345, 67890], "at_ns": [123_456_789]},
        {"n": -1234567},
        {"outer": {"inner": 1234567}},
    ],
)
def test_numbers_of_the_event_itself_cost_no_second_look(data):
    assert not suspects(data)


@pytest.mark.parametrize(
    "text",
    [
        "auth_token:abc123def456,",
        '{"auth_token":12345678}',
        "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB",
    ],
)
def test_numbers_and_tokens_inside_a_text_are_looked_at_closely(text):
    assert suspects({"took_ns": 1234567, "value": text})
