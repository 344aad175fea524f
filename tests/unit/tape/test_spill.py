"""What is too large for a line goes into blobs and comes back the same."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead.encoding.jsonbytes import encode_std
from playhead.encoding.values import freeze
from playhead.errors import TapeDamaged
from playhead.tape.blobs import THRESHOLD, push, spill, unspill

large = st.sampled_from(["ä" * 40_000, "x" * 70_000, b"\x00" * 80_000, list(range(20_000))])
keys = st.text(max_size=5) | st.sampled_from(["$blob", "$bytes", "$dict", "$"])
values = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(max_size=5) | large,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=values)
def test_whatever_is_spilled_comes_back(tmp_path_factory, value):
    run = tmp_path_factory.mktemp("run")
    frozen = freeze(value)
    encoded = spill(run, frozen, encode_std)
    assert unspill(run, json.loads(encoded)) == frozen


def test_metadata_stays_in_the_line(tmp_path):
    data = {"boundary": "llm", "name": "POST x", "request": {"n": list(range(30_000))}}
    kept = json.loads(spill(tmp_path, data, encode_std))
    assert (kept["boundary"], kept["name"], next(iter(kept["request"]))) == (
        "llm",
        "POST x",
        "$blob",
    )


def test_a_line_stays_short_however_many_members_there_are(tmp_path):
    data = {f"member {number}": "x" * 300 for number in range(2_000)}
    encoded = spill(tmp_path, data, encode_std)
    assert len(encoded) <= THRESHOLD
    assert unspill(tmp_path, json.loads(encoded)) == data


def test_a_users_own_blob_key_is_a_word_like_any_other(tmp_path):
    frozen = freeze({"$blob": "not a digest", "$bytes": "b" * 70_000})
    assert unspill(tmp_path, json.loads(spill(tmp_path, frozen, encode_std))) == frozen


def test_blobs_that_multiply_are_opened_once_and_not_for_ever(tmp_path):
    digest = push(tmp_path, b'"bottom"')
    for _ in range(2):
        digest = push(tmp_path, encode_std([{"$blob": digest, "as": "json"}] * 1_000))
    whole = unspill(tmp_path, {"$blob": digest, "as": "json"})
    assert len(whole) == len(whole[0]) == 1_000
    assert whole[0] is whole[1]
    deeper = push(tmp_path, encode_std([{"$blob": digest, "as": "json"}]))
    with pytest.raises(TapeDamaged, match="nested references to blobs"):
        unspill(tmp_path, {"$blob": deeper, "as": "json"})


@pytest.mark.parametrize("payload", [b"no JSON", b"[" * 200_000, b"\xff"])
def test_a_blob_of_strange_content_is_damage(tmp_path, payload):
    digest = push(tmp_path, payload)
    with pytest.raises(TapeDamaged):
        unspill(tmp_path, {"$blob": digest, "as": "json"})


@pytest.mark.parametrize("digest", [None, 7, ["x"], "../x"])
def test_a_strange_digest_is_damage(tmp_path, digest):
    with pytest.raises(TapeDamaged):
        unspill(tmp_path, {"$blob": digest})
