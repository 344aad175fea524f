"""The results of a batch for CI systems: JUnit XML and a GitHub step summary. Pure.

JUnit elements and attributes follow windyroad's JUnit.xsd and its order: properties, testcases, system-out,
system-err.
"""

from __future__ import annotations

import re
from html import escape
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from playhead.story.verdicts import Case, Outcome, Results

# XML 1.0 cannot hold these characters, not even escaped.
_UNSAYABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FAILURES: tuple[Outcome, ...] = ("diverged", "broken")
_SUITE = "playhead.batch"


def junit_xml(results: Results) -> bytes:
    """Write one test case per tape: diverged and broken are failures, tapes that could not be replayed are errors."""
    failures = sum(results.count(outcome) for outcome in _FAILURES)
    errors = results.count("unusable") + results.count("error")
    counts = {
        "tests": str(len(results.cases)),
        "failures": str(failures),
        "errors": str(errors),
        "time": f"{results.took_s:.3f}",
    }
    root = Element("testsuites", {"name": "playhead", **counts})
    suite = SubElement(
        root,
        "testsuite",
        {
            "name": _SUITE,
            **counts,
            "skipped": "0",
            # The schema requires seconds without a time zone.
            "timestamp": results.started_at[:19],
            "hostname": _said(results.host) or "localhost",
        },
    )
    properties = SubElement(suite, "properties")
    found = results.pass_rate
    rates = (
        []
        if found is None
        else [
            ("pass_rate", found.rate),
            ("pass_rate_low", found.low),
            ("pass_rate_high", found.high),
        ]
    )
    facts = [("spent_usd", results.spent_usd), ("stopped", results.stopped or "")]
    facts.append(("missing", ", ".join(results.missing)))
    for name, value in (*results.counts.items(), ("not_run", results.not_run), *rates, *facts):
        SubElement(properties, "property", {"name": name, "value": _said(str(value))})
    for case in results.cases:
        _add(suite, case)
    SubElement(suite, "system-out")
    SubElement(suite, "system-err")
    indent(root)
    xml: str = tostring(root, "unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{xml}\n'.encode()


def _add(suite: Element, case: Case) -> None:
    test = SubElement(
        suite,
        "testcase",
        {
            "name": _said(f"{case.name} [{case.tape}]"),
            "classname": _SUITE,
            "time": f"{case.took_s:.3f}",
        },
    )
    if case.outcome == "passed":
        return
    worst = case.worst
    tag = "failure" if case.outcome in _FAILURES else "error"
    message = worst.why[0] if worst.why else case.outcome
    found = SubElement(test, tag, {"type": case.outcome, "message": _said(message)})
    lines = [f"{one.outcome}, round {one.round}: {why}" for one in case.verdicts for why in one.why]
    if len(case.verdicts) > 1:
        lines.append(f"passed {case.passes} of {len(case.verdicts)} rounds")
    if worst.replay:
        lines.append(f"playhead diff {case.tape} {worst.replay}")
    if worst.said.strip():
        lines += ["", "what it printed:", worst.said]
    found.text = _said("\n".join(lines))


def _said(text: str) -> str:
    """Replace a character that XML cannot hold."""
    return _UNSAYABLE.sub("\N{REPLACEMENT CHARACTER}", text)


_MARKS = {"passed": "✅", "diverged": "❌", "broken": "❌", "unusable": "⚠️", "error": "⚠️"}
# GitHub drops a summary of more than a mebibyte: https://docs.github.com/actions (workflow commands)
_MOST_CASES = 100
_MOST_TEXT = 300


def step_summary(results: Results) -> str:
    sums = ", ".join(f"{number} {name}" for name, number in results.counts.items() if number)
    lines = [
        f"### Playhead batch: {sums or 'nothing was run'}",
        "",
        f"{len(results.cases)} tapes in {results.took_s:.1f} s"
        + (f", {results.not_run} not run" if results.not_run else ""),
        "",
    ]
    if results.facts:
        lines += [*(f"- {_cell(fact)}" for fact in results.facts), ""]
    failing = results.failing
    if failing:
        lines += ["| tape | verdict | passes | why |", "|---|---|---|---|"]
        lines += [_row(case) for case in failing[:_MOST_CASES]]
        if len(failing) > _MOST_CASES:
            lines += ["", f"and {len(failing) - _MOST_CASES} more"]
    return "\n".join(lines) + "\n"


def _row(case: Case) -> str:
    why = "<br>".join(_cell(one) for one in case.worst.why[:3])
    flaky = " (flaky)" if case.flaky else ""
    verdict = f"{_MARKS[case.outcome]} {case.outcome}{flaky}"
    named = f"{_cell(case.name)} <code>{_cell(case.tape)}</code>"
    return f"| {named} | {verdict} | {case.passes}/{len(case.verdicts)} | {why} |"


def _cell(text: str) -> str:
    """Escape taped text for a table cell: no HTML, no Markdown, no line breaks."""
    return escape(" ".join(text.split())[:_MOST_TEXT]).translate(_MARKUP)


_MARKUP = {ord(mark): f"&#{ord(mark)};" for mark in "\\`*_[]|~@"}
