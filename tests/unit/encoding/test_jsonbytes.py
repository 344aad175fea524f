"""Same bytes, other speed."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.encoding import jsonbytes

SOURCE = jsonbytes.__file__.rpartition("/playhead/")[0]


@given(st.text())
def test_every_text_is_spelled_alike(text):
    try:
        expected = jsonbytes.encode_std(text)
    except UnicodeEncodeError:
        with pytest.raises(ValueError, match="surrogates"):
            jsonbytes.msgspec_encoder()(text)
        return
    assert jsonbytes.msgspec_encoder()(text) == expected
    assert jsonbytes.decode_std(expected) == jsonbytes.msgspec_decoder()(expected) == text


def test_canonical_sorts_keys_and_takes_any_text():
    assert jsonbytes.canonical({"b": 1, "a": [1.5, "ü"]}) == '{"a":[1.5,"ü"],"b":1}'.encode()
    assert jsonbytes.canonical("\ud800") == b'"\xed\xa0\x80"'


def ask(program, *options):
    argv = [
        sys.executable,
        *options,
        "-c",
        f"import sys; sys.path.insert(0, {SOURCE!r}); {program}",
    ]
    return subprocess.check_output(argv, text=True).strip()


def test_msgspec_is_not_imported_unless_the_program_has_it_already():
    program = "from playhead.encoding import jsonbytes as j; print(j.fastest(may_import=False) is j.encode_std)"
    assert ask(program) == "True"
    assert ask(f"import msgspec; {program}") == "False"


def test_without_msgspec_the_standard_library_does():
    program = (
        "from playhead.encoding import jsonbytes as j; "
        "print(j.fastest(may_import=True) is j.encode_std, j.could_be_faster(j.encode_std))"
    )
    assert ask(program, "-I", "-S") == "True False"


def test_a_program_is_told_that_it_could_be_faster():
    assert jsonbytes.could_be_faster(jsonbytes.encode_std)
    assert not jsonbytes.could_be_faster(jsonbytes.fastest(may_import=True))


def test_numbers_that_json_has_no_word_for_are_refused():
    with pytest.raises(ValueError, match="Out of range"):
        jsonbytes.encode_std(float("nan"))
    assert json.loads(jsonbytes.encode_std(1.5)) == 1.5


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(PLAIN)
def test_json_without_the_module_is_the_same_json(value):
    assert jsonbytes.dumps(value) == json.dumps(value)
    assert jsonbytes.loads(json.dumps(value)) == value
    assert jsonbytes.loads(json.dumps(value, indent=1) + "\n") == value


@given(st.text())
def test_a_text_is_quoted_as_json_has_it(text):
    assert jsonbytes.quote(text) == json.dumps(text)
    assert jsonbytes.quote_as_is(text) == json.dumps(text, ensure_ascii=False)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "{} x", "nul"])
def test_what_is_no_json_is_refused_as_ever(text):
    with pytest.raises(json.JSONDecodeError):
        jsonbytes.loads(text)


def test_what_json_cannot_hold_is_refused_as_ever():
    with pytest.raises(TypeError, match="Object of type set is not JSON serializable"):
        jsonbytes.encode_std({"a": {1}})
