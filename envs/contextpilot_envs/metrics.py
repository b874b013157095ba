"""What an episode came to, under the names that evaluation rows use."""

from __future__ import annotations

from typing import Any

from contextpilot_envs.simulator.episode import Episode


def episode_metrics(episode: Episode, invalid_actions: int = 0) -> dict[str, Any]:
    """Returns the measures of an episode that has ended.

    Costs are in input-token equivalents ("billed tokens"). `miss_cost_tokens` prices each silent
    miss at one raw request. `demand_success` is 1 where nothing was demanded.
    """
    tally, task, raw = episode.tally, episode.prepared.task, episode.prepared.raw
    by_op = episode.edits_by_op()
    requests = max(1, episode.context.request)
    return {
        "objective": episode.objective,
        "demand_success": tally.demands_met / tally.demands if tally.demands else 1.0,
        "task_success": float(episode.succeeded),
        "silent_misses": tally.silent_misses,
        "forced_reloads": tally.forced_reloads,
        "billed_tokens": tally.bill,
        "raw_billed_tokens": raw.total,
        "mean_request_tokens": tally.request_tokens / requests,
        "peak_tokens": tally.peak_tokens,
        "edits": sum(by_op.values()),
        "overflows": tally.overflows,
        "key_facts_kept": tally.facts_kept / tally.facts if tally.facts else 1.0,
        "cluster": task.cluster,
        "language": task.language,
        "requests": task.requests,
        "demands": tally.demands,
        "miss_cost_tokens": tally.miss_cost,
        "failed": episode.failed,
        "edits_by_op": by_op,
        "revisits": tally.forced_reloads + by_op.get("reload", 0),
        "billed_without_prefix_tokens": tally.bill_without_prefix,
        "raw_without_prefix_tokens": raw.total_without_prefix,
        "removed_facts": list(tally.removed),
        "latency_seconds": tally.latency_seconds,
        "invalid_actions": invalid_actions,
    }
