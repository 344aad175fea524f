"""A resumed session keeps the level of its recording."""

import pytest

from playhead.errors import UsageError
from playhead.loop import beginning


def test_another_level_is_refused_with_the_reason(tmp_path):
    with beginning.open_session(
        "fix", ["work:2"], record=True, level="standard", store=tmp_path, context=None
    ):
        pass
    with pytest.raises(UsageError, match=r"level 'standard'.*--record-level full"):
        beginning.open_session(
            "fix", ["work:2"], record=True, level="full", store=tmp_path, resume=True
        )
