"""What each rule decides, on contexts small enough to say what it should."""

import numpy as np
import pytest
from tiny_tasks import (
    FixedSource,
    chain_task,
    document_segment,
    exchange,
    goal_segment,
    mixed_task,
    stream_task,
    words,
)

from contextpilot.core.edit import Op
from contextpilot.core.segment import Form, Kind
from contextpilot.observations.observation import Observation
from contextpilot.policies.base import Policy
from contextpilot.policies.rules import (
    ClearOldResults,
    DropOldest,
    GoalSelection,
    RollingSummary,
    SummarizeAtThreshold,
    ThresholdFold,
    used_share,
)
from contextpilot.policies.simple import KeepAll, RandomPolicy
from contextpilot_envs.context_edit import ContextEditEnv
from contextpilot_envs.simulator.config import SimulatorConfig

ROOMY = SimulatorConfig(budget_fraction=None)


class Desk:
    """An environment, and what a policy does in it."""

    def __init__(self, task, config: SimulatorConfig = ROOMY, slots: int = 64) -> None:
        self.env = ContextEditEnv(
            FixedSource(task), simulator=config, context_slots=slots, archive_slots=8
        )
        self.env.reset(seed=0, options={"task_id": task.id, "noise_seed": 0})
        self.context = self.env.engine.episodes[0].context
        self.ended = False

    def view(self) -> Observation:
        arrays = self.env.engine.arrays()
        return Observation({k: a[0] for k, a in arrays.items()}, self.env.engine.codec)

    def sent(self, requests: int) -> "Desk":
        for _ in range(requests):
            self.step(0)
        return self

    def step(self, action: int) -> None:
        self.ended = self.env.step(action)[2]

    def decisions(self, policy: Policy) -> list[tuple[str, str, str]]:
        """Lets a policy edit until it sends; returns (operation, preset, segment id) of each."""
        made, request = [], self.context.request
        while not self.ended and self.context.request == request:
            number = policy(self.view())
            assert self.env.action_masks()[number]
            action = self.env.engine.codec.decode(number)
            if action.op != Op.KEEP:
                index = self.env.engine.encoder.slot_index[0, action.slot]
                name = self.context.entries[index].segment.id
                made.append((action.op.name.lower(), action.preset, name))
            self.step(number)
        return made


def limit(task, share: float) -> SimulatorConfig:
    return SimulatorConfig(budget_fraction=share, compression_threshold=0.8)


def test_keep_all_keeps():
    assert Desk(chain_task(8)).sent(5).decisions(KeepAll()) == []


# ---- truncation --------------------------------------------------------------------------------


def test_truncation_drops_the_oldest_and_only_over_the_limit():
    desk = Desk(chain_task(10), limit(chain_task(10), 0.5))
    dropped = []
    while not desk.ended:
        over = used_share(desk.view()) > 1.0
        made = desk.decisions(DropOldest())
        assert bool(made) == over
        dropped += made
    assert [name for *_, name in dropped] == [f"t{n}" for n in range(len(dropped))]
    assert {made[:2] for made in dropped} == {("drop", "this")}
    assert len(dropped) >= 4
    assert desk.env.engine.episodes[0].tally.overflows == 0


def test_truncation_stops_as_soon_as_it_fits():
    task = chain_task(10)
    desk = Desk(task, limit(task, 0.5))
    while used_share(desk.view()) <= 1.0:
        desk.step(0)
    assert len(desk.decisions(DropOldest())) == 1


def test_an_earlier_trigger_truncates_earlier():
    task = chain_task(10)
    desk = Desk(task, limit(task, 0.5))
    while used_share(desk.view()) <= 0.6:
        assert desk.decisions(DropOldest(trigger=0.6)) == []
    assert len(desk.decisions(DropOldest(trigger=0.6))) == 1


# ---- clearing old results ------------------------------------------------------------------------


def clear(**settings) -> ClearOldResults:
    return ClearOldResults(**{"older_than": 0, "batch_tokens": 0, "floor_tokens": 0, **settings})


def folds(*names: str) -> list[tuple[str, str, str]]:
    return [("fold", "stub", name) for name in names]


def test_clearing_keeps_the_latest_results():
    desk = Desk(chain_task(10)).sent(6)
    assert desk.decisions(clear(keep_last=2)) == folds("r0", "r1", "r2", "r3")
    assert desk.decisions(clear(keep_last=2)) == folds("r4")


def test_with_none_kept_everything_read_is_folded():
    desk = Desk(chain_task(10)).sent(4)
    assert desk.decisions(clear()) == folds("r0", "r1", "r2")  # r3 is unread


def test_age_decides_which_are_old():
    desk = Desk(chain_task(10)).sent(6)
    assert desk.decisions(clear(older_than=3)) == folds("r0", "r1")


def test_nothing_is_cleared_until_a_batch_has_gathered():
    desk = Desk(chain_task(12))
    view = desk.sent(2).view()
    saved = int((view.tokens("size") - view.tokens("stub"))[2])
    rule = clear(batch_tokens=3 * saved)
    made = [desk.decisions(rule) for _ in range(5)]
    assert made == [[], [], folds("r0", "r1", "r2"), [], []]


def test_small_results_stay():
    segments, arrivals = [goal_segment()], [0]
    for n, size in enumerate((30, 200, 30, 200)):
        segments += exchange(n, words(size, 1000 * n))
        arrivals += [n, n]
    desk = Desk(stream_task(segments, arrivals, 7)).sent(5)
    assert desk.decisions(clear(floor_tokens=400)) == folds("r1", "r3")


def test_nothing_is_cleared_below_the_trigger():
    task = chain_task(10)
    desk = Desk(task, limit(task, 1.0)).sent(4)
    assert desk.decisions(clear(trigger=0.9)) == []
    while used_share(desk.view()) < 0.9:
        assert desk.decisions(clear(trigger=0.9)) == []
    assert desk.decisions(clear(trigger=0.9))


def test_long_call_arguments_are_cleared_on_demand():
    argument = '{"content": "' + "x" * 600 + '"}'
    segments = [goal_segment(), *exchange(0, words(100), argument=argument)]
    task = stream_task(segments, [0, 1, 1], 5)
    assert Desk(task).sent(3).decisions(clear()) == folds("r0")
    assert Desk(task).sent(3).decisions(clear(calls=True)) == folds("t0", "r0")


def test_documents_are_cleared_on_demand():
    segments = [goal_segment(), document_segment("d0", words(100)), *exchange(0, words(100, 500))]
    task = stream_task(segments, [0, 0, 1, 1], 5)
    assert Desk(task).sent(3).decisions(clear()) == folds("r0")
    assert Desk(task).sent(3).decisions(clear(everything=True)) == folds("d0", "r0")


def many(count: int):
    """A task whose request 1 has so many results to clear."""
    segments, arrivals = [goal_segment()], [0]
    for n in range(count):
        segments += exchange(n, words(60, 1000 * n))
        arrivals += [0, 0]
    return stream_task(segments, arrivals, 6)


def test_what_fits_the_edit_steps_is_folded_one_by_one():
    desk = Desk(many(15)).sent(1)
    made = desk.decisions(clear())
    assert made == folds(*(f"r{n}" for n in range(15)))


def test_more_than_that_is_marked_and_flushed_as_a_whole():
    desk = Desk(many(20)).sent(1)
    first = desk.decisions(clear())
    assert first == [("expire", "0", f"r{n}") for n in range(15)]
    assert Form.STUB not in desk.view().forms
    second = desk.decisions(clear())
    assert second[:-1] == [("expire", "0", f"r{n}") for n in range(15, 20)]
    assert second[-1] == ("fold", "flush", "r0")
    assert int((desk.view().forms == Form.STUB).sum()) == 20
    assert len(desk.env.engine.episodes[0].log) == 21


# ---- pressure ------------------------------------------------------------------------------------


def under_pressure(share: float) -> Desk:
    task = chain_task(12)
    desk = Desk(task, limit(task, 0.7))
    while used_share(desk.view()) <= share:
        desk.step(0)
    return desk


def test_threshold_fold_outlines_the_oldest_until_below_its_target():
    desk = under_pressure(0.8)
    made = desk.decisions(ThresholdFold(trigger=0.8, target=0.6))
    assert made == [("fold", "outline", f"r{n}") for n in range(len(made))]
    assert 1 <= len(made) <= 4
    desk = under_pressure(0.8)
    for action in made[:-1]:
        desk.step(desk.view().action(Op.FOLD, "outline", 2 + 2 * int(action[2][1:])))
    assert used_share(desk.view()) > 0.6  # one fewer would not have done


def test_threshold_fold_rests_below_its_trigger():
    task = chain_task(12)
    assert Desk(task, limit(task, 0.7)).sent(4).decisions(ThresholdFold()) == []


def test_goal_selection_folds_what_says_least_about_the_goal():
    segments = [goal_segment("Find the code.")]
    texts = ["find the code\n", "groceries\n", "code\n"]
    for n, text in enumerate(texts):
        segments += exchange(n, text + words(150, 1000 * n))
    task = stream_task(segments, [0] * 7, 4)
    desk = Desk(task, SimulatorConfig(budget_fraction=1.2)).sent(1)
    made = desk.decisions(GoalSelection(trigger=0.8, target=0.5))
    assert made == folds("r1", "r2")


def test_the_fixed_summary_takes_all_but_the_latest_requests():
    desk = under_pressure(0.8)
    request = desk.context.request
    made = desk.decisions(SummarizeAtThreshold(trigger=0.8, keep_requests=3))
    assert made == [("summarize", "through", f"r{request - 4}")]
    summary = desk.context.entries[desk.context.native].segment
    assert summary.kind == Kind.SUMMARY
    last = request - 4
    assert summary.lineage == tuple(f"{c}{n}" for n in range(last + 1) for c in "tr")


def test_the_fixed_summary_waits_for_its_trigger():
    task = chain_task(12)
    assert Desk(task, limit(task, 0.7)).sent(4).decisions(SummarizeAtThreshold()) == []


def test_the_rolling_summary_consumes_the_last_one():
    desk = Desk(chain_task(12))
    view = desk.sent(2).view()
    each = int(view.tokens("size")[2] + view.tokens("size")[1])
    rule = RollingSummary(every_tokens=2 * each, keep_requests=1)
    made = [desk.decisions(rule) for _ in range(7)]
    assert [bool(m) for m in made].count(True) == 3
    context = desk.context
    first, second, third = (
        context.entries[i].segment for i in range(context.native, context.native + 3)
    )
    assert first.lineage == ("t0", "r0", "t1", "r1")
    assert second.lineage == (first.id, *first.lineage, "t2", "r2", "t3", "r3")
    assert third.lineage[0] == second.id
    shown = [context.entries[i].segment.kind for i in context.visible()]
    assert shown.count(Kind.SUMMARY) == 1


def test_rules_leave_what_is_pinned_and_unread():
    rules = [
        DropOldest(0.0), clear(everything=True, calls=True), ThresholdFold(0.0, 0.0, 0),
        GoalSelection(0.0, 0.0), SummarizeAtThreshold(0.0, 0), RollingSummary(0, 0),
    ]  # fmt: skip
    for rule in rules:
        desk = Desk(chain_task(6), SimulatorConfig(budget_fraction=1.5))
        while not desk.ended:
            unread = list(desk.context.unread)
            for _, _, name in desk.decisions(rule):
                assert name != "s0"
                assert name not in {desk.context.entries[i].segment.id for i in unread}


# ---- chance --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_random_policy_is_legal_and_repeats_itself(seed):
    task, config = mixed_task(seed, 8), SimulatorConfig(budget_fraction=0.8)
    runs = []
    for _ in range(2):
        desk, policy, made = Desk(task, config, slots=20), RandomPolicy(), []
        policy.reset(seed)
        while not desk.ended:
            made.append(desk.decisions(policy))
        runs.append(made)
    assert runs[0] == runs[1]
    policy = RandomPolicy()
    policy.reset(seed + 100)
    assert Desk(task, config, slots=20).sent(2).decisions(policy) != runs[0][2]


def test_the_random_policy_keeps_as_often_as_it_is_told():
    view = Desk(chain_task(8)).sent(5).view()
    policy = RandomPolicy(keep_share=0.5)
    policy.reset(0)
    kept = sum(policy(view) == 0 for _ in range(2000)) / 2000
    assert kept == pytest.approx(0.5, abs=0.05)


def test_the_random_policy_gives_every_operation_its_share():
    view = Desk(chain_task(8)).sent(5).view()
    policy = RandomPolicy(keep_share=0.0)
    policy.reset(0)
    ops = [view.codec.decode(policy(view)).op for _ in range(2000)]
    shares = np.array([ops.count(op) / 2000 for op in set(ops)])
    assert len(shares) == 4  # summarize, fold, expire, drop
    assert shares.min() > 0.2
