"""The distribution over actions: numbers computed by hand, and brute force over all actions."""

from __future__ import annotations

import math

import pytest
import torch
from pointer_cases import distribution, network, padded, random_observation
from torch import Tensor

from contextpilot.core.edit import Op
from contextpilot.edits.codec import ActionCodec
from contextpilot.errors import ConfigurationError
from contextpilot.policies.pointer.distribution import ActionDistribution
from contextpilot.policies.pointer.layout import Layout

CODEC = ActionCodec(4, 3)
TINY = Layout(4, 3, 2, 1)
FOLDS = [CODEC.encode(Op.FOLD, "stub", slot) for slot in (0, 1)]
RELOADS = [
    CODEC.encode(Op.RELOAD, "in_place", 1),
    CODEC.encode(Op.RELOAD, "at_end", 0, archived=True),
]
LN2, LN3, LN4 = math.log(2), math.log(3), math.log(4)


def by_hand() -> ActionDistribution:
    """keep : fold : reload = 1 : 2 : 1; fold 1 : 3 over two slots; reload 1 : 4."""
    logits = [0.0, 9.0, LN2, 9.0, 9.0, 0.0, 9.0]
    scores = dict(zip([*FOLDS, *RELOADS], [0.0, LN3, 1.0, 1.0 + LN4], strict=True))
    return distribution(TINY, logits, scores)


EXPECTED = {0: 0.25, FOLDS[0]: 0.125, FOLDS[1]: 0.375, RELOADS[0]: 0.05, RELOADS[1]: 0.2}


def test_probabilities_are_those_computed_by_hand() -> None:
    expected = torch.zeros(1, CODEC.size)
    expected[0, list(EXPECTED)] = torch.tensor(list(EXPECTED.values()))
    torch.testing.assert_close(by_hand().log_probs.exp(), expected)
    ops = torch.tensor([[0.25, 0, 0.5, 0, 0, 0.25, 0]])
    torch.testing.assert_close(by_hand().op_log_probs.exp(), ops)


def test_what_is_illegal_has_the_log_probability_minus_infinity() -> None:
    log_probs = by_hand().log_probs[0]
    assert set(log_probs.isfinite().nonzero()[:, 0].tolist()) == set(EXPECTED)
    assert by_hand().op_log_probs[0].isfinite().nonzero()[:, 0].tolist() == [0, 2, 5]


@pytest.mark.parametrize(("action", "probability"), EXPECTED.items())
def test_log_prob_of_an_action(action: int, probability: float) -> None:
    assert by_hand().log_prob(torch.tensor([action])).item() == pytest.approx(math.log(probability))


def test_log_prob_of_illegal_actions_within_and_beyond_the_used_slots() -> None:
    for slot in (0, 3):
        action = CODEC.encode(Op.DROP, "this", slot)
        assert by_hand().log_prob(torch.tensor([action])).item() == -math.inf


def test_entropy_is_that_computed_by_hand() -> None:
    expected = -sum(p * math.log(p) for p in EXPECTED.values())
    assert by_hand().entropy().item() == pytest.approx(expected)


def test_kl_is_that_computed_by_hand() -> None:
    other = distribution(TINY, [0.0] * 7, dict.fromkeys([*FOLDS, *RELOADS], 7.0))
    uniform = {action: 1 / 3 if action == 0 else 1 / 6 for action in EXPECTED}
    expected = sum(p * math.log(p / uniform[action]) for action, p in EXPECTED.items())
    assert by_hand().kl(other).item() == pytest.approx(expected)
    assert by_hand().kl(by_hand()).item() == pytest.approx(0.0, abs=1e-7)


def test_kl_of_other_observations_is_refused() -> None:
    other = distribution(Layout(4, 3, 2, 2), [0.0] * 7, {})
    with pytest.raises(ConfigurationError, match="same observations"):
        by_hand().kl(other)


def test_mode_decodes_the_operation_first() -> None:
    scores = dict(zip(FOLDS, [0.0, 0.1], strict=True))
    chosen = distribution(TINY, [math.log(0.4), 0, math.log(0.6), 0, 0, 0, 0], scores)
    assert chosen.log_probs.argmax().item() == 0  # each fold alone is less likely than keep
    assert chosen.mode().item() == FOLDS[1]


def test_mode_finds_an_archived_segment() -> None:
    scores = dict(zip(RELOADS, [0.0, 0.1], strict=True))
    assert distribution(TINY, [0.0, 0, 0, 0, 0, 1.0, 0], scores).mode().item() == RELOADS[1]


def test_samples_are_as_frequent_as_they_are_likely() -> None:
    one = by_hand()
    draw = torch.Generator().manual_seed(0)
    drawn = torch.cat([one.sample(draw) for _ in range(6000)])
    counts = torch.bincount(drawn, minlength=CODEC.size)
    assert counts[[a for a in range(CODEC.size) if a not in EXPECTED]].sum() == 0
    for action, p in EXPECTED.items():
        deviation = math.sqrt(p * (1 - p) / len(drawn))
        assert counts[action].item() / len(drawn) == pytest.approx(p, abs=4 * deviation)


def test_samples_repeat_with_their_seed_whatever_the_padding() -> None:
    observation, net = random_observation(), network(sharp=50)
    wide = padded(observation, 20, 9)
    narrow, wider = ActionCodec(8, 3), ActionCodec(20, 9)
    for seed in range(20):
        first, again = (torch.Generator().manual_seed(seed) for _ in range(2))
        few = net(observation).distribution.sample(first)
        many = net(wide).distribution.sample(again)
        for a, b in zip(few.tolist(), many.tolist(), strict=True):
            assert narrow.decode(a) == wider.decode(b)


def brute_force(log_probs: Tensor) -> list[dict[int, float]]:
    return [
        {a: math.exp(lp) for a, lp in enumerate(row) if lp > -math.inf}
        for row in log_probs.double().tolist()
    ]


@pytest.mark.parametrize("sharp", [1.0, 300.0])
def test_entropy_kl_and_log_prob_equal_brute_force(sharp: float) -> None:
    observation = random_observation(seed=3)
    one = network(1, sharp=sharp)(observation).distribution
    two = network(2, sharp=sharp)(observation).distribution
    p, q = brute_force(one.log_probs), two.log_probs.double().tolist()
    entropy, kl = one.entropy().tolist(), one.kl(two).tolist()
    for row, probabilities in enumerate(p):
        assert sum(probabilities.values()) == pytest.approx(1.0, abs=1e-5)
        assert set(probabilities) == set(observation["action_mask"][row].nonzero()[:, 0].tolist())
        logs = {a: math.log(value) for a, value in probabilities.items() if value > 0}
        expected = -sum(probabilities[a] * log for a, log in logs.items())
        assert entropy[row] == pytest.approx(expected, abs=1e-5)
        expected = sum(probabilities[a] * (log - q[row][a]) for a, log in logs.items())
        assert kl[row] == pytest.approx(expected, rel=1e-4, abs=1e-5)
    for action in range(one.layout.size):
        found = one.log_prob(torch.full((len(p),), action))
        torch.testing.assert_close(found, one.log_probs[:, action])


def test_a_row_where_only_keep_is_legal() -> None:
    one = network()(random_observation()).distribution
    assert one.log_probs[0, 0].item() == 0.0
    assert one.entropy()[0].item() == 0.0
    assert one.mode()[0].item() == one.sample(torch.Generator())[0].item() == 0


def test_a_row_where_keep_is_not_legal() -> None:
    one = distribution(TINY, [9.0] + [0.0] * 6, {FOLDS[1]: 0.0}, keep_legal=False)
    assert one.log_probs.exp().argmax().item() == one.mode().item() == FOLDS[1]
    assert one.op_log_probs[0, 0].item() == -math.inf


def test_a_row_without_any_legal_action_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"without any in the rows \[0\]"):
        distribution(TINY, [0.0] * 7, {}, keep_legal=False)


@pytest.mark.parametrize("quantity", ["log_prob", "entropy", "kl", "log_probs", "op_log_probs"])
def test_gradients_are_finite_and_zero_where_illegal(quantity: str) -> None:
    one, net = by_hand(), network(2)
    op, context = torch.zeros(1, 7, requires_grad=True), torch.zeros(1, 14, 2, requires_grad=True)
    archive = torch.zeros(1, 2, 1, requires_grad=True)
    legal = (one.log_probs > -math.inf)[0]
    here = torch.stack([legal[1 + p * 4 : 3 + p * 4] for p in range(14)])[None]
    there = torch.stack([legal[57 + q * 3 : 58 + q * 3] for q in range(2)])[None]
    two = ActionDistribution(
        op, context, archive, keep_legal=torch.tensor([[True]]), context_legal=here,
        archive_legal=there, layout=TINY,
    )  # fmt: skip
    value = {
        "log_prob": lambda d, o: d.log_prob(torch.tensor([FOLDS[1]] * len(d.entropy()))),
        "entropy": lambda d, o: d.entropy(),
        "kl": lambda d, o: d.kl(o),
        "log_probs": lambda d, o: d.log_probs[d.log_probs > -math.inf],
        "op_log_probs": lambda d, o: d.op_log_probs[d.op_log_probs > -math.inf],
    }[quantity]
    (value(two, one) ** 2).sum().backward()
    for tensor, may in ((context, here), (archive, there)):
        if quantity == "op_log_probs":
            assert tensor.grad is None  # says nothing about slots
        else:
            assert tensor.grad.isfinite().all()
            assert not tensor.grad[~may].any()
    assert op.grad.isfinite().all()
    assert not op.grad[0, [1, 3, 4, 6]].any()
    assert op.grad.any()
    if quantity != "log_prob":  # of an action that is not legal in every row
        observation = random_observation()
        value(net(observation).distribution, network(3)(observation).distribution).sum().backward()
        assert all(p.grad.isfinite().all() for p in net.parameters() if p.grad is not None)
