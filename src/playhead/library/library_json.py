"""Runs, search results and statistics as JSON, for `--json` and the HTTP API. Pure."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from playhead.library.run_rows import Summary, authors_of, comments_of, is_golden, note_of
from playhead.tape.ending import ending_of
from playhead.tape.manifest import verdict_of

if TYPE_CHECKING:
    from playhead.library.catalogue import Entry
    from playhead.library.search import FoundRun, ResultPage
    from playhead.library.stats import Group, Stats


def page_json(page: ResultPage) -> dict[str, Any]:
    return {
        "runs": [found_json(found) for found in page.rows],
        "total": page.total,
        "has_more": page.has_more,
        "next": page.next,
    }


def run_json(entry: Entry, summary: Summary) -> dict[str, Any]:
    """One run, as every list of runs has it."""
    manifest = entry.manifest
    took = manifest.duration_s if manifest.duration_s is not None else summary.duration_s
    return {
        "id": entry.id,
        "name": manifest.name,
        "status": entry.status,
        "verdict": verdict_of(manifest),
        "started_at": manifest.started_at,
        "ended_at": manifest.ended_at,
        "duration_s": took,
        "command": manifest.command,
        "tags": manifest.tags,
        "note": note_of(manifest),
        "comments": comments_of(manifest),
        "authors": authors_of(manifest),
        "kept": manifest.keep,
        "golden": is_golden(manifest),
        "level": manifest.level,
        "project": manifest.project,
        "git_commit": manifest.git_commit,
        "exit_code": manifest.exit_code,
        "replay_of": manifest.replay_of,
        "forked_from": manifest.extra.get("forked_from"),
        "events": summary.events,
        "calls": summary.calls,
        "llm_calls": summary.llm_calls,
        "tool_calls": summary.tool_calls,
        "failed_calls": summary.failures,
        "failed_turns": summary.failed_turns,
        "emitted": summary.emitted,
        "tokens": summary.tokens,
        "input_tokens": summary.input_tokens,
        "output_tokens": summary.output_tokens,
        "cost_usd": summary.cost_usd,
        "unpriced_calls": summary.unpriced,
        "failure": summary.failure,
        "last_seam": summary.last_seam,
        "lost": summary.lost,
        "problem": entry.problem,
    }


def found_json(found: FoundRun) -> dict[str, Any]:
    manifest = found.entry.manifest
    return {
        **run_json(found.entry, found.summary),
        "started_ns": manifest.started_ns,
        "ending": ending_of(found.entry.status, manifest).as_json(),
        "models": list(found.models),
        "tools": list(found.tools),
        "snippets": [
            {"in": one.scope, "text": one.text, "hits": [list(hit) for hit in one.hits]}
            for one in found.snippets
        ],
    }


def stats_json(stats: Stats) -> dict[str, Any]:
    return {
        "by": stats.by,
        "total": {**_group(stats.total), "statuses": dict(stats.statuses)},
        "groups": [{"key": group.key, **_group(group)} for group in stats.groups],
        "most_failing_tools": [dataclasses.asdict(one) for one in stats.failing],
    }


def _group(group: Group) -> dict[str, Any]:
    p50, p95, p99 = group.times or (None, None, None)
    return {
        "runs": group.runs,
        "failed_runs": group.failed_runs,
        "calls": group.calls,
        "failed_calls": group.failures,
        "failed_turns": group.failed_turns,
        "tokens": group.tokens,
        "cost_usd": group.cost_usd,
        "p50_s": p50,
        "p95_s": p95,
        "p99_s": p99,
    }
