import json
import random

from hypothesis import given
from hypothesis import strategies as st

from playhead.testing import Reply
from playhead.views.web.page_blocks import Packer, run_blocks

TEXTS = st.text(max_size=80) | st.builds(
    lambda one, n: one * n, st.text(min_size=1, max_size=9), st.integers(1, 90)
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["$t", "$q", "a", "b"]), inner, max_size=3)
    ),
    max_leaves=12,
)


def unpacked(value, texts):
    """What static/packed.js does, in Python."""
    if isinstance(value, list):
        return [unpacked(one, texts) for one in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("$t"), int) and len(value) == 1:
        return texts[value["$t"]]
    members = value.get("$q", value)
    return {name: unpacked(one, texts) for name, one in members.items()}


def whole(kept):
    texts = []
    for one in kept:
        if isinstance(one, str):
            texts.append(one)
        else:
            base, before, after, middle = one
            old = texts[base]
            texts.append(old[:before] + middle + (old[-after:] if after else ""))
    return texts


@given(st.lists(VALUES, max_size=4))
def test_what_is_packed_can_be_unpacked(values):
    packer = Packer()
    packed = [packer.pack(value) for value in values]
    assert [unpacked(one, whole(packer.texts)) for one in packed] == values


def test_a_text_that_only_grows_is_kept_as_what_is_new_in_it():
    packer = Packer()
    chance = random.Random(1)
    talk = ""
    for _ in range(50):
        talk += "".join(chance.choice("abcdefgh ") for _ in range(1000))
        packer.pack({"body": '{"messages": "' + talk + '", "model": "m"}'})
    assert whole(packer.texts)[-1] == '{"messages": "' + talk + '", "model": "m"}'
    assert len(json.dumps(packer.texts)) < 60_000


def test_the_page_finds_each_item_in_the_group_that_its_row_says(forge, told, monkeypatch):
    monkeypatch.setattr("playhead.views.web.page_blocks._LARGEST_GROUP", 2000)
    tape = forge()
    for number in range(20):
        tape.llm(f"Question {number}", Reply(text=f"Answer {number}"))
    tape.end()
    story = told(tape)
    blocks = run_blocks(story)
    begins = blocks["start"]["groups"]
    assert len(begins) > 3
    for row, ref in enumerate(blocks["outline"]["refs"]):
        if "~" not in ref:
            number = max(at for at, begin in enumerate(begins) if begin <= row)
            assert ref in blocks[f"detail-{number}"]["items"]
