import pytest

from playhead.views.play.terminal import keys_in


@pytest.mark.parametrize(
    ("raw", "keys"),
    [
        (b" .,f?q", ["space", ".", ",", "f", "?", "q"]),
        (b"\x1b[C\x1b[D", ["right", "left"]),
        (b"\x1bOC\x1bOD", ["right", "left"]),
        (b"\x1b[1;5C", ["right"]),
        (b"\x1b[H\x1b[F", ["home", "end"]),
        (b"+=-_", ["+", "+", "-", "-"]),
        (b"\x1b[A\x1b[3~", []),
        (b"\x1b", []),
        (b"\x03", ["q"]),
        (b"", []),
        ("é".encode(), ["Ã", "©"]),
    ],
)
def test_bytes_of_a_terminal_are_keys(raw, keys):
    assert keys_in(raw) == keys
