"""`playhead diff`: two runs on a terminal, as JSON and as a page."""

import json

import pytest

from playhead.testing import Reply

EVIL = "</pre><script>alert(1)</script>\x1b[2J"


@pytest.fixture
def two(forge):
    for run_id, said in (("one", "It shipped on Tuesday."), ("two", f"It is lost. {EVIL}")):
        tape = forge(run_id)
        tape.tool("lookup", {"order": 1}, value="late")
        tape.llm("Where is my order?", Reply(text=said))
        tape.end()


def test_figures_first_then_what_differs(two, store, playhead):
    out = playhead("diff", "one", "two", "--store", store).out
    assert out.startswith("~ trajectories differ · 1 same, 1 changed")
    assert "-It shipped on Tuesday." in out
    assert "lookup" not in out
    assert "lookup" in playhead("diff", "one", "two", "--all", "--store", store).out
    assert "\x1b" not in out


def test_bisect_names_the_first_step_that_matters(two, store, playhead):
    out = playhead("diff", "one", "two", "--bisect", "--store", store).out
    assert out.startswith("first difference: step 2 of 2")
    assert (
        "every step is the same" in playhead("diff", "one", "one", "--bisect", "--store", store).out
    )


def test_json_has_every_step(two, store, playhead):
    found = json.loads(playhead("diff", "one", "two", "--json", "--store", store).out)
    assert [step["kind"] for step in found["steps"]] == ["same", "changed"]
    assert found["first_difference"] == 1
    assert found["same"] is False


def test_the_exit_code_is_3_only_where_it_is_asked_for(two, store, playhead):
    assert playhead("diff", "one", "two", "--store", store).code == 0
    assert playhead("diff", "one", "two", "--exit-code", "--store", store).code == 3
    assert playhead("diff", "one", "one", "--exit-code", "--store", store).code == 0


def test_a_page_holds_both_runs_and_no_markup_of_theirs(two, store, here, playhead):
    assert playhead("diff", "one", "two", "--html", "d.html", "--store", store).code == 0
    page = (here / "d.html").read_text()
    assert "−</span><span>It shipped on Tuesday.</span></del>" in page
    assert "+</span><span>It is lost. &lt;/pre&gt;&lt;script&gt;" in page
    assert "<script" not in page
    assert "\x1b" not in page
    assert '<li id="step-1" class="step-same">' in page
