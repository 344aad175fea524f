"""Search results and statistics as JSON, for `--json` and the HTTP API. Pure."""

from __future__ import annotations

import dataclasses
from typing import Any

from playhead.library.run_rows import is_golden, note_of
from playhead.library.search import FoundRun, ResultPage
from playhead.library.stats import Group, Stats
from playhead.tape.ending import ending_of
from playhead.tape.manifest import verdict_of


def page_json(page: ResultPage) -> dict[str, Any]:
    return {
        "runs": [found_json(found) for found in page.rows],
        "total": page.total,
        "next": page.next,
    }


def found_json(found: FoundRun) -> dict[str, Any]:
    entry, summary, manifest = found.entry, found.summary, found.entry.manifest
    took = manifest.duration_s if manifest.duration_s is not None else summary.duration_s
    return {
        "id": entry.id,
        "name": manifest.name,
        "status": entry.status,
        "started_at": manifest.started_at,
        "started_ns": manifest.started_ns,
        "ended_at": manifest.ended_at,
        "duration_s": took,
        "command": manifest.command,
        "tags": manifest.tags,
        "note": note_of(manifest),
        "kept": manifest.keep,
        "golden": is_golden(manifest),
        "level": manifest.level,
        "project": manifest.project,
        "git_commit": manifest.git_commit,
        "exit_code": manifest.exit_code,
        "replay_of": manifest.replay_of,
        "forked_from": manifest.extra.get("forked_from"),
        "verdict": verdict_of(manifest),
        "ending": ending_of(entry.status, manifest).as_json(),
        "models": list(found.models),
        "tools": list(found.tools),
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
