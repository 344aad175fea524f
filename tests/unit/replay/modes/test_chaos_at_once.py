"""Several faults in one replay: at different steps, and the same ones for the same seed."""

import playhead
from playhead.replay.matching.taped import load
from playhead.replay.modes.chaos_trials import trials
from playhead.tape.reader import Tape


def test_trials_with_several_faults_are_at_different_steps(tmp_path):
    @playhead.tool(name="search")
    def search(query):
        return query

    with playhead.record(store=tmp_path) as run:
        for query in "abc":
            search(query)
    recording = load(Tape(run.path))
    found = trials(recording, 5, 7, at_once=2)
    assert found == trials(recording, 5, 7, at_once=2)
    assert [len(one.specs) for one in found] == [2] * 5
    assert all(len({spec.partition("=")[0] for spec in one.specs}) == 2 for one in found)
    assert [one.more for one in trials(recording, 5, 7)] == [()] * 5
    assert all(len(one.specs) == 3 for one in trials(recording, 5, 7, at_once=9))
