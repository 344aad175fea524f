"""Which reply a request gets: described ones first, the others in order, each as often as said."""

import asyncio
import threading

import anthropic
import httpx2
import pytest

from playhead.testing import Reply, ScriptedLLM, When


def asking(text, **fields):
    return {"model": "claude-x", "messages": [{"role": "user", "content": text}], **fields}


def ask(llm, text="Hi", path="/v1/messages", **fields):
    answer = httpx2.post(llm.url + path, json=asking(text, **fields))
    return answer.json()["content"][0]["text"] if answer.is_success else answer.json()["error"]


def test_replies_without_a_when_go_out_in_order():
    with ScriptedLLM(["one", Reply(text="two", repeat=2), "three"]) as llm:
        assert [ask(llm) for _ in range(4)] == ["one", "two", "two", "three"]


def test_a_reply_that_repeats_forever_never_runs_out():
    with ScriptedLLM([Reply(text="again", repeat="forever"), "never"]) as llm:
        assert {ask(llm) for _ in range(5)} == {"again"}


def test_a_described_reply_goes_before_the_next_in_order():
    with ScriptedLLM(["first", {"when": {"contains": "Lyon"}, "text": "of Lyon"}]) as llm:
        assert ask(llm, "What of Lyon?") == "of Lyon"
        assert ask(llm, "What of Lyon?") == "first"


DESCRIBED = [
    (When(contains="Paris"), asking("In Paris."), asking("In paris.")),
    (When(matches=r"^\d+ files$"), asking("12 files"), asking("no files")),
    (When(conversation="brief"), asking("x", system="Be brief."), asking("x", system="Be long.")),
    (When(model="haiku"), asking("x", model="claude-haiku-5"), asking("x")),
    (When(model="claude", contains="a"), asking("a"), asking("b")),
    (When(turn=1), asking("x"), None),
]


@pytest.mark.parametrize(("when", "fitting", "other"), DESCRIBED)
def test_a_described_reply_is_for_the_requests_that_it_describes(when, fitting, other):
    script = [Reply(text="mine", when=when, repeat="forever"), "another's"]
    with ScriptedLLM(script) as llm, httpx2.Client(base_url=llm.url) as client:
        if other is not None:
            answer = client.post("/v1/messages", json=other).json()
            assert answer["content"][0]["text"] == "another's"
        answer = client.post("/v1/messages", json=fitting).json()
    assert answer["content"][0]["text"] == "mine"


def test_a_reply_may_be_for_a_path_or_for_the_nth_request():
    script = [
        {"when": {"path": "/eu/"}, "text": "from the EU"},
        {"when": {"nth": 3}, "text": "the third"},
        {"text": "any", "repeat": "forever"},
    ]
    with ScriptedLLM(script) as llm:
        assert ask(llm, path="/eu/v1/messages") == "from the EU"
        assert [ask(llm), ask(llm), ask(llm)] == ["any", "the third", "any"]


def test_a_script_that_ran_out_says_so_and_is_not_asked_again():
    with ScriptedLLM(["only", Reply(text="x", when=When(contains="never"))]) as llm:
        with anthropic.Anthropic(base_url=llm.url, api_key="x") as client:
            client.messages.create(**asking("One"), max_tokens=9)
            with pytest.raises(anthropic.InternalServerError) as failed:
                client.messages.create(**asking("Two"), max_tokens=9)
        assert len(llm.requests) == 2
    assert failed.value.body["error"]["message"] == (
        "The script has no reply left for request 2 (anthropic, turn 1, last user message 'Two'): "
        "of 2 replies unused, and for other requests: replies[1]. "
        "Add a reply, or let one `repeat`."
    )


CITIES = [f"City{number:02}" for number in range(12)]


def conversations(seed):
    """Twelve conversations of two turns at once; what each was told, ids included."""
    script = [
        Reply(
            text=f"{city} turn {turn}", when=When(conversation=city, turn=turn), chunk_delay=0.001
        )
        for turn in (1, 2)
        for city in CITIES
    ]

    async def talk(client, city):
        messages = [{"role": "user", "content": f"Tell me of {city}."}]
        told = []
        for _ in range(2):
            async with client.messages.stream(
                model="claude-x", max_tokens=9, messages=messages
            ) as stream:
                message = await stream.get_final_message()
            told.append((message.id, message.content[0].text))
            answer = {"role": "assistant", "content": message.content}
            messages += [answer, {"role": "user", "content": "More."}]
        return told

    async def all_at_once(llm):
        async with anthropic.AsyncAnthropic(base_url=llm.url, api_key="x") as client:
            return await asyncio.gather(*(talk(client, city) for city in CITIES))

    with ScriptedLLM(script, seed=seed) as llm:
        return asyncio.run(all_at_once(llm))


def test_parallel_conversations_get_their_own_answers_and_with_a_seed_their_own_ids():
    first, again, other = conversations(1), conversations(1), conversations(2)
    for city, told in zip(CITIES, first, strict=True):
        assert [text for _, text in told] == [f"{city} turn 1", f"{city} turn 2"]
    assert first == again
    ids = {told_id for told in [*first, *other] for told_id, _ in told}
    assert len(ids) == 2 * 2 * len(CITIES)


def test_a_function_may_answer_with_a_reply_a_text_or_a_table():
    answers = {"a": "text", "b": Reply(text="reply"), "c": {"text": "table"}}
    with ScriptedLLM(lambda request: answers[request.prompt]) as llm:
        assert [ask(llm, key) for key in "abc"] == ["text", "reply", "table"]


def test_a_function_may_be_async():
    async def respond(request):
        await asyncio.sleep(0)
        return f"{request.wire} {request.turn}"

    with ScriptedLLM(respond) as llm:
        assert ask(llm) == "anthropic 1"


def test_functions_that_wait_for_each_other_do_not_block_the_server():
    barrier = threading.Barrier(8)

    def respond(request):
        barrier.wait(10)
        return request.prompt

    async def all_at_once(llm):
        async with httpx2.AsyncClient(base_url=llm.url, timeout=20) as client:
            posts = [client.post("/v1/messages", json=asking(str(n))) for n in range(8)]
            return [one.json()["content"][0]["text"] for one in await asyncio.gather(*posts)]

    with ScriptedLLM(respond) as llm:
        assert asyncio.run(all_at_once(llm)) == [str(number) for number in range(8)]


@pytest.mark.parametrize("answer", [lambda _: 1 / 0, lambda _: {"txet": "x"}])
def test_a_function_that_fails_is_told_to_the_agent(answer):
    with ScriptedLLM(answer) as llm:
        assert ask(llm)["message"].startswith("The function that answers raised ")


def test_with_a_seed_a_function_gives_equal_requests_equal_ids_in_their_order():
    def ids():
        with ScriptedLLM(lambda _: "x", seed=5) as llm:
            posts = [httpx2.post(f"{llm.url}/v1/messages", json=asking("Hi")) for _ in range(2)]
            return [(one.json()["id"], one.headers["date"]) for one in posts]

    first, again = ids(), ids()
    assert first == again
    assert len(set(first)) == 2
