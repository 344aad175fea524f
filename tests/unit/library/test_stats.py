import pytest

from playhead import clock
from playhead.errors import UsageError
from playhead.library.digest import bucket, seconds_in
from playhead.library.library_json import stats_json
from playhead.library.search import Search
from playhead.library.stats import percentiles, stats
from playhead.testing import Reply, Usage

pytestmark = pytest.mark.usefixtures("wherever")

DAY = 86_400_000_000_000
STARTED = 1_794_744_000_000_000_000  # 2026-11-15 at noon, UTC: no zone makes two days of it


@pytest.fixture
def runs(forge):
    """Two days: one run that fails on a tool; two that do not."""
    bad = forge("bad", started=STARTED, name="refund")
    bad.llm("a", Reply(text="x", usage=Usage(input=1000, output=10)), took=2.0)
    bad.tool("issue", {}, took=0.5, error=ValueError("no"))
    bad.tool("issue", {}, took=0.5)
    bad.end("failed", ValueError("no"))
    for name in ("one", "two"):
        good = forge(name, started=STARTED + 2 * DAY, name="greet")
        good.llm("b", Reply(text="y", usage=Usage(input=500, output=10)), took=1.0)
        good.end()
    forge("plain", started=STARTED + 2 * DAY, name="greet").tool("lookup", {}, took=0.1)


def groups(store, **asked):
    return {group.key: group for group in stats(store, **asked).groups}


def test_the_sum_of_all_runs_says_how_they_ended_and_what_they_spent(runs, store):
    found = stats(store)
    assert found.total.runs == 4
    assert found.statuses == {"failed": 1, "ok": 2, "interrupted": 1}
    assert found.total.tokens == 2030
    assert found.total.cost_usd == pytest.approx((2000 * 3 + 30 * 15) / 1e6)


def test_models_are_told_with_calls_tokens_cost_and_times(runs, store):
    (model,) = stats(store, by="model").groups
    assert model.key == "claude-sonnet-4-5"
    assert (model.runs, model.failed_runs, model.calls, model.failures) == (3, 1, 3, 0)
    assert model.tokens == 2030
    p50, p95, _ = model.times
    assert p50 == pytest.approx(1.0, rel=0.05)
    assert p95 == pytest.approx(2.0, rel=0.05)


def test_tools_are_told_with_their_failures_and_the_worst_is_named(runs, store):
    found = stats(store, by="tool")
    issue = {group.key: group for group in found.groups}["issue"]
    assert (issue.runs, issue.calls, issue.failures) == (1, 2, 1)
    assert issue.tokens is None
    assert issue.cost_usd is None
    assert [(one.tool, one.failures, one.calls) for one in found.failing] == [("issue", 1, 2)]


def test_days_are_told_newest_first_and_times_are_those_of_runs(runs, store):
    newest, oldest = stats(store, by="day").groups
    assert (newest.key, oldest.key) == ("2026-11-17", "2026-11-15")
    assert (newest.runs, oldest.runs, oldest.failed_runs) == (3, 1, 1)
    assert oldest.times[0] == pytest.approx(3.0)


def test_names_are_told_by_what_they_cost(runs, store):
    found = groups(store, by="name")
    assert list(found) == ["greet", "refund"]
    assert found["greet"].runs == 3


def test_only_runs_that_fit_are_summed_up(runs, store):
    failed = Search(statuses=frozenset({"failed"}))
    assert stats(store, wanted=failed).total.runs == 1
    assert list(groups(store, by="tool", wanted=failed)) == ["issue"]
    assert groups(store, by="model", wanted=Search(text="x"))["claude-sonnet-4-5"].calls == 1
    assert stats(store, wanted=Search(name="nobody")).total.runs == 0


def test_no_runs_are_no_error_and_no_heading_is_one(store):
    assert stats(store).total.runs == 0
    with pytest.raises(UsageError, match="model, tool, day, name"):
        stats(store, by="mood")


def test_a_call_that_never_ended_counts_but_has_no_time(forge, store):
    tape = forge(pid=clock.pid())
    tape.call("tool", "hang", {"arguments": {}})
    (tool,) = stats(store, by="tool").groups
    assert (tool.calls, tool.times) == (1, None)


def test_sums_as_json_have_every_figure_by_its_name(runs, store):
    told = stats_json(stats(store, by="name"))
    assert told["by"] == "name"
    assert told["total"]["statuses"]["failed"] == 1
    assert told["groups"][1]["key"] == "refund"
    assert told["groups"][1]["p95_s"] == pytest.approx(3.0)
    assert told["most_failing_tools"] == [{"tool": "issue", "failures": 1, "calls": 2}]


@pytest.mark.parametrize("took_ns", [1, 999, 10**6, 123_456_789, 10**10, 10**15])
def test_a_time_in_a_bucket_is_within_five_percent(took_ns):
    assert seconds_in(bucket(took_ns)) * 1e9 == pytest.approx(took_ns, rel=0.05, abs=1)


def test_percentiles_are_the_nearest_ranks():
    hundred = [(float(one), 1) for one in range(1, 101)]
    assert percentiles(hundred) == (50.0, 95.0, 99.0)
    assert percentiles([(7.0, 1)]) == (7.0, 7.0, 7.0)
    assert percentiles([(1.0, 99), (9.0, 1)]) == (1.0, 1.0, 1.0)
