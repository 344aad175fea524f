"""Stories of forged tapes."""

import pytest

from playhead.story import tell
from playhead.tape.reader import Tape


@pytest.fixture
def told():
    """The story of a tape in the making, as far as it is written."""
    return lambda tape: tell(Tape(tape.path))
