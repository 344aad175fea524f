"""WebSockets through the proxy."""

import json

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from playhead.testing import HttpSite, ScriptedLLM


def address(recorded, path: str) -> str:
    return f"ws://127.0.0.1:{recorded.port}{path}"


def talk(recorded, *messages: str | bytes) -> list:
    with connect(address(recorded, "/ws"), proxy=None) as socket:
        heard = []
        for message in messages:
            socket.send(message)
            heard.append(socket.recv())
        return heard


def test_messages_go_both_ways_and_come_from_the_tape_again(room):
    said = ["one", "naïve →", "x" * 200_000]
    with HttpSite() as site, room.recording(site.url) as then:
        assert talk(then, *said) == said
    (answer,) = then.answers()
    assert [piece.stream for piece in answer.pieces] == ["sent", "received"] * 3
    assert answer.facts["close"]["by"] == "agent"
    with room.replaying(then) as now:
        assert talk(now, *said) == said
    assert now.mode.partings == []


def test_conversations_side_by_side_are_told_apart_by_what_is_said_first(room):
    with HttpSite() as site, room.recording(site.url) as then:
        for words in (["north", "cold"], ["south", "warm"]):
            assert talk(then, *words) == words
    with room.replaying(then) as now:
        place = address(now, "/ws")
        with connect(place, proxy=None) as first, connect(place, proxy=None) as second:
            for socket, words in ((first, ["south", "warm"]), (second, ["north", "cold"])):
                for word in words:
                    socket.send(word)
                    assert socket.recv() == word
    assert now.mode.partings == []


def test_a_message_that_differs_parts_the_replay(room):
    with HttpSite() as site, room.recording(site.url) as then:
        talk(then, "Paris")
    with room.replaying(then) as now, pytest.raises(ConnectionClosed):
        talk(now, "Lyon")
    (parting,) = now.mode.partings
    assert "Lyon" in str(parting)


def create(session: str) -> str:
    turn = {"turn_started_at_unix_ms": int(session[:8], 16) + 1_700_000_000_000}
    return json.dumps(
        {
            "type": "response.create",
            "model": "gpt-6.1",
            "input": [{"type": "message", "role": "user", "content": "Hello?"}],
            "client_metadata": {"session_id": session, "turn": json.dumps(turn)},
        }
    )


def ask(recorded, session: str) -> list[str]:
    with connect(address(recorded, "/v1/responses"), proxy=None) as socket:
        socket.send(create(session))
        heard = [socket.recv()]
        while '"response.completed"' not in heard[-1]:
            heard.append(socket.recv())
        return heard


def test_ids_that_a_client_makes_anew_do_not_part_a_conversation_from_its_tape(room):
    with ScriptedLLM(["Hello."]) as llm, room.recording(llm.url) as then:
        first = ask(then, "0199a1f0-9a4d-4e2f-8b7a-1c2d3e4f5a6b")
    with room.replaying(then) as now:
        assert ask(now, "0199b2c4-1111-4e2f-8b7a-aaaaaaaaaaaa") == first
    assert now.mode.partings == []


def test_a_server_that_wants_no_socket_answers_as_ever(room):
    with (
        HttpSite() as site,
        room.recording(site.url) as then,
        pytest.raises(Exception, match="HTTP 404"),
    ):
        connect(address(then, "/nothing"), proxy=None)
    (answer,) = then.answers()
    assert (answer.how, answer.head["status"]) == ("returned", 404)
