"""What the process that began a run tells the others, as long as the run lasts."""

import pytest

from playhead.errors import TapeDamaged
from playhead.launch.guest import rules
from playhead.recording.recorder import Recorder
from playhead.redact import Redactor
from playhead.tape.store import new_run, open_store, redaction_key


@pytest.fixture
def run(tmp_path):
    return new_run(open_store(tmp_path / "home"), "r", 0)[1]


@pytest.fixture
def first(run):
    key = redaction_key(run.parent.parent)
    redactor = Redactor(key=key, patterns=["customer-[0-9]+"], names=["Account"])
    recorder = Recorder(
        run=run, run_id="r", who="me", level="standard", redactor=redactor, generation=2
    )
    yield recorder
    recorder.close()


def test_another_process_records_by_the_same_rules(run, first):
    rules.post(first)
    second = rules.join(run, "1:0", {})
    assert (second.run_id, second.who, second.level, second.generation) == (
        "r",
        "me",
        "standard",
        2,
    )
    assert second.redactor.patterns == ("customer-[0-9]+",)
    assert second.redactor.names == ("Account",)
    assert second.root == "1:0"
    hidden = first.redactor.clean_text("customer-12")
    assert second.redactor.clean_text("customer-12") == hidden
    second.close()


def test_without_redaction_the_others_do_not_redact(run):
    first = Recorder(run=run, run_id="r", who="me")
    rules.post(first)
    second = rules.join(run, None, {})
    assert second.redactor is None
    first.close()
    second.close()


def test_a_run_that_has_ended_is_joined_by_nobody(run, first):
    rules.post(first)
    rules.withdraw(run)
    assert rules.join(run, None, {}) is None
    rules.withdraw(run)


def test_rules_that_cannot_be_read_are_no_licence_to_write_secrets(run, first):
    rules.post(first)
    (run / rules.FILE).write_text("{")
    with pytest.raises(TapeDamaged, match="cannot be read"):
        rules.join(run, None, {})


def test_the_rules_are_for_their_owner_alone(run, first):
    rules.post(first)
    assert (run / rules.FILE).stat().st_mode & 0o777 == 0o600
