"""Limits of the command line become invariants."""

import pytest

from playhead import config
from playhead.cli.batch.batch_options import invariants_from


@pytest.mark.parametrize("name", ["max_steps", "max_cost_usd", "max_tokens", "max_duration_s"])
def test_zero_is_a_limit(name):
    rules = invariants_from(config.Settings(), {name: 0, "no_new_tools": False})
    assert getattr(rules, name) == 0
    assert getattr(invariants_from(config.Settings(), {name: None}), name) is None
