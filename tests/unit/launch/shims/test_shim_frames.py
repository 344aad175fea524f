"""What a shim and the sidecar say to each other."""

from hypothesis import given
from hypothesis import strategies as st

from playhead.host.descriptors import frame, take_frames
from playhead.launch.shims.shim_frames import ShimCall, call_frame, read_call

WORDS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=20)


@given(st.lists(st.tuples(st.sampled_from([b"O", b"X"]), st.binary(max_size=50))), st.data())
def test_frames_come_out_whole_however_they_are_cut(sent, data):
    line = b"".join(frame(what, payload) for what, payload in sent)
    buffer, came = bytearray(), []
    while line:
        size = data.draw(st.integers(1, len(line)))
        buffer += line[:size]
        line = line[size:]
        came += take_frames(buffer)
    assert came == sent
    assert not buffer


@given(
    st.lists(WORDS, min_size=1), st.dictionaries(WORDS.filter(lambda one: "=" not in one), WORDS)
)
def test_a_call_is_read_as_it_was_said(argv, env):
    asked = ShimCall(
        pid=7, ppid=6, how="child", name="git", real="", cwd="/", run="", parent="7:1", lane="main",
        kinds=("pipe", "file", "tty"), passed=(1,), argv=tuple(argv), env=env,
    )  # fmt: skip
    ((what, payload),) = take_frames(bytearray(call_frame(asked)))
    assert (what, read_call(payload)) == (b"C", asked)
