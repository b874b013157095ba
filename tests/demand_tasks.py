"""A task whose facts are demanded near its end, and episodes that have edited it."""

from tiny_tasks import episode_at, exchange, goal_segment, stream_task, words

from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.tasks.base import Demand, KeyFact

LAST = 6
NAMES = ("alpha", "bravo", "delta", "gamma")


def settings_of(**settings) -> SimulatorConfig:
    return SimulatorConfig(**{"budget_fraction": None, "notice": "perfect", **settings})


def files(*demands: Demand, stale: tuple[int, ...] = (), success="answer"):
    """Four exchanges, read one a request; exchange n says what the code of NAMES[n] is."""
    segments, arrivals, facts = [goal_segment()], [0], []
    for n, name in enumerate(NAMES):
        text = f"{words(60, 1000 * n)}\nthe code of {name} is KEY-{n}\n{words(60, 1000 * n + 500)}"
        segments += exchange(n, text, argument=f'{{"path": "{name}"}}')
        arrivals += [n + 1, n + 1]
        facts.append(KeyFact(f"KEY-{n}", "code", (2 + 2 * n,), stale))
    if not demands:
        demands = (Demand(LAST, (0,), "the code of alpha", final=True),)
    return stream_task(segments, arrivals, LAST + 2, facts=facts, demands=demands, success=success)


class Says:
    """A summarizer with one answer."""

    name = "says"

    def __init__(self, text: str) -> None:
        self.text = text

    def summarize(self, request) -> str:
        return self.text


def edited(edit, task=None, settings=None, *, noise_seed: int = 0, summarizer=None) -> Episode:
    """An episode that has made an edit before its fifth request, at the demand's request."""
    episode = episode_at(
        task or files(), 5, settings or settings_of(), noise_seed=noise_seed, summarizer=summarizer
    )
    for one in edit if isinstance(edit, list) else [edit]:
        episode.edit(one)
    episode.send()
    assert episode.context.request == LAST
    return episode
