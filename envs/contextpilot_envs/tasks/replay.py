"""A recorded run as a task: its messages are the stream, its demands are derived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from contextpilot.core.segment import Kind, Role, Segment
from contextpilot.messages import anthropic, openai
from contextpilot.tokenizers.base import Tokenizer
from contextpilot.tokenizers.count import segment_tokens
from contextpilot.tokenizers.estimate import EstimateTokenizer
from contextpilot_envs.tasks.base import Task
from contextpilot_envs.tasks.demands import derive, relabel
from contextpilot_envs.tasks.transcripts import Transcript
from contextpilot_envs.tasks.usage import UsageFit, cold_requests, fit_usage

MIN_REQUESTS = 4
"""Shorter runs have nothing to manage, and are skipped."""


def replay_tasks(
    transcript: Transcript,
    *,
    source: str = "transcripts",
    tokenizer: Tokenizer | None = None,
    quotes: bool = True,
    window: int | None = None,
) -> tuple[Task, ...]:
    """Returns a transcript as a task, or as one task per window; none below 4 requests.

    Args:
        transcript: one recorded run.
        source: the data set's name; the task's id begins with it.
        tokenizer: what segments are counted with; by default the estimate.
        quotes: whether values that the agent quotes in its text are demanded, besides those in
            the arguments of its calls.
        window: requests a window; None keeps the run whole.

    Raises:
        MessageFormatError: when the messages are not in the transcript's format.
    """
    if transcript.requests < MIN_REQUESTS:
        return ()
    task = replay_task(transcript, source=source, tokenizer=tokenizer, quotes=quotes)
    return tuple(cut(task, start, stop) for start, stop in windows(task.requests, window))


def replay_task(
    transcript: Transcript,
    *,
    source: str = "transcripts",
    tokenizer: Tokenizer | None = None,
    quotes: bool = True,
) -> Task:
    """Returns a whole transcript as a task, whatever its length; arguments as `replay_tasks`.

    Request t is the t-th assistant message. What stands before it has arrived by then; what the
    agent said there, and what was answered, arrives at t + 1. What comes after the last request
    is in no context, and left out.

    Raises:
        MessageFormatError: when the messages are not in the transcript's format.
    """
    tokenizer = tokenizer or EstimateTokenizer()
    stream, arrivals, turns = _streamed(transcript)
    prompt = transcript.metadata.get("system", "")
    facts, demands = derive(stream, arrivals, turns, quotes=quotes, prompt=prompt)
    counts = [segment_tokens(tokenizer, segment) for segment in stream]
    reported = [usage.input_tokens if usage else None for usage in transcript.usage]
    fit = fit_usage(_context_tokens(counts, arrivals, len(turns)), reported)
    return Task(
        id=f"{source}/{transcript.id}",
        source=source,
        cluster=f"{source}/{transcript.session}",
        goal=_goal(transcript, stream),
        segments=tuple(stream),
        arrivals=tuple(arrivals),
        requests=len(turns),
        output_tokens=_output_tokens(transcript, turns, tokenizer, fit.token_scale),
        facts=facts,
        demands=demands,
        language="en",
        prefix_tokens=fit.prefix_tokens if fit.requests else tokenizer.count(prompt),
        token_scale=fit.token_scale,
        recorded_input_tokens=tuple(tokens or 0 for tokens in reported) if fit.requests else (),
        cold_requests=cold_requests(transcript.usage),
        success="no_silent_miss",
        metadata=_metadata(transcript, fit),
    )


def windows(requests: int, window: int | None) -> list[tuple[int, int]]:
    """Returns the (first, last + 1) requests of consecutive windows; a short rest joins the last.

    Args:
        requests: requests of the run.
        window: requests a window; None is one window of everything.
    """
    if window is None or requests < 2 * window:
        return [(0, requests)]
    starts = list(range(0, requests - window + 1, window))
    return list(zip(starts, [*starts[1:], requests], strict=True))


def cut(task: Task, start: int, stop: int) -> Task:
    """Returns requests `start` to `stop - 1` of a task, as a task.

    Pinned segments stay; of the rest only what arrives inside the window is there (of a result
    that came late, its turn too), and only what a result inside the window states is demanded.
    The whole task comes back as it is.
    """
    if (start, stop) == (0, task.requests):
        return task
    kept = [
        (segment, max(0, arrival - start))
        for segment, arrival in zip(task.segments, task.arrivals, strict=True)
        if arrival < stop and (segment.pinned or arrival >= start)
    ]
    turns = {segment.exchange for segment, _ in kept if segment.kind == Kind.TURN}
    kept = [
        (s, t) for s, t in kept if s.kind != Kind.RESULT or not s.exchange or s.exchange in turns
    ]
    segments = tuple(segment for segment, _ in kept)
    arrivals = tuple(arrival for _, arrival in kept)
    demands = [
        replace(demand, request=demand.request - start)
        for demand in task.demands
        if start <= demand.request < stop
    ]
    facts, demands_left = relabel(segments, arrivals, task.facts, demands)
    return replace(
        task,
        id=f"{task.id}@{start}-{stop}",
        segments=segments,
        arrivals=arrivals,
        requests=stop - start,
        output_tokens=task.output_tokens[start:stop],
        facts=facts,
        demands=demands_left,
        recorded_input_tokens=task.recorded_input_tokens[start:stop] if start == 0 else (),
        cold_requests=tuple(t - start for t in task.cold_requests if start <= t < stop),
    )


def parse_messages(transcript: Transcript) -> tuple[Segment, ...]:
    """Returns the segments of a transcript's messages, in host-history order.

    Raises:
        MessageFormatError: when the messages are not in the transcript's format.
    """
    parse = openai.parse if transcript.format == "openai" else anthropic.parse
    return parse(transcript.messages)


def _streamed(transcript: Transcript) -> tuple[list[Segment], list[int], list[Segment]]:
    """Returns what arrives before the last request ends, when, and the turn of each request."""
    everything = parse_messages(transcript)
    is_turn = [message["role"] == "assistant" for message in transcript.messages]
    arrival_of_message = list(accumulate(is_turn))
    arrivals = [arrival_of_message[segment.position[0]] for segment in everything]
    turns = [segment for segment in everything if segment.kind == Kind.TURN]
    count = sum(arrival < len(turns) for arrival in arrivals)
    return list(everything[:count]), arrivals[:count], turns


def _context_tokens(counts: Sequence[int], arrivals: Sequence[int], requests: int) -> list[int]:
    """Returns per request the estimated tokens of everything that has arrived by then."""
    arriving = [0] * requests
    for tokens, arrival in zip(counts, arrivals, strict=True):
        arriving[arrival] += tokens
    return list(accumulate(arriving))


def _output_tokens(
    transcript: Transcript, turns: Sequence[Segment], tokenizer: Tokenizer, scale: float
) -> tuple[int, ...]:
    """Returns per request what was reported, or counted where that is more.

    Some harnesses record the count at the beginning of the stream: a few tokens for a long turn.
    """
    return tuple(
        max((usage.output_tokens or 0) if usage else 0, round(scale * tokenizer.count(turn.text)))
        for usage, turn in zip(transcript.usage, turns, strict=True)
    )


def _goal(transcript: Transcript, segments: Sequence[Segment]) -> str:
    """Returns what the reader found to be the goal, or the first thing that a user said."""
    said = (s.text for s in segments if s.role == Role.USER and s.kind == Kind.TEXT)
    return transcript.metadata.get("goal") or next(said, "")


def _metadata(transcript: Transcript, fit: UsageFit) -> dict[str, str]:
    kept = {
        key: value
        for key, value in transcript.metadata.items()
        if key not in ("file", "session", "goal", "system")
    }
    about = {"agent": transcript.agent, "format": transcript.format} | kept
    if fit.requests:
        about["usage_error"] = f"{fit.median_relative_error:.4f}"
        about["usage_error_p90"] = f"{fit.p90_relative_error:.4f}"
    return about
