"""The network: sets in, scores out, whatever the padding and the order of slots."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch
from pointer_cases import P, Q, network, padded, random_observation
from torch import Tensor, nn

from contextpilot.edits.codec import ActionCodec
from contextpilot.errors import ConfigurationError
from contextpilot.policies.pointer.config import PointerConfig
from contextpilot.policies.pointer.encoder import TEXT_INPUTS, EncodedText, segment_encoder
from contextpilot.policies.pointer.network import NUMERIC_INPUTS, PointerNetwork


def slots_of(log_probs: Tensor, slots: int) -> tuple[Tensor, Tensor, Tensor]:
    """Splits (B, A) into keep (B, 1), context (B, P, S) and archive (B, Q, M)."""
    end = 1 + P * slots
    rows = len(log_probs)
    return (
        log_probs[:, :1],
        log_probs[:, 1:end].reshape(rows, P, slots),
        log_probs[:, end:].reshape(rows, Q, -1),
    )


def test_a_permutation_of_slots_permutes_the_output() -> None:
    observation, net = random_observation(used=8), network(sharp=100)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(5))
    archived = torch.tensor([2, 0, 1])
    keep, context, archive = slots_of(observation["action_mask"], 8)
    moved = observation | {
        "segments": observation["segments"][:, order],
        "segment_mask": observation["segment_mask"][:, order],
        "archive": observation["archive"][:, archived],
        "archive_mask": observation["archive_mask"][:, archived],
        "action_mask": torch.cat(
            [keep, context[:, :, order].flatten(1), archive[:, :, archived].flatten(1)], 1
        ),
    }
    before, after = net(observation), net(moved)
    torch.testing.assert_close(after.value, before.value)
    keep, context, archive = slots_of(before.distribution.log_probs, 8)
    expected = keep, context[:, :, order], archive[:, :, archived]
    for one, two in zip(slots_of(after.distribution.log_probs, 8), expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)
    assert len(set(context[1][context[1].isfinite()].tolist())) > 5  # slots do differ


def test_empty_slots_change_nothing() -> None:
    observation, net = random_observation(), network(sharp=100)
    narrow, wide = net(observation), net(padded(observation, 32, 8))
    torch.testing.assert_close(wide.value, narrow.value)
    _, context, archive = slots_of(wide.distribution.log_probs, 32)
    parts = slots_of(narrow.distribution.log_probs, 8)
    torch.testing.assert_close(context[:, :, :8], parts[1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(archive[:, :, :3], parts[2], rtol=1e-4, atol=1e-5)
    assert (context[:, :, 8:] == -math.inf).all()
    torch.testing.assert_close(
        wide.distribution.entropy(), narrow.distribution.entropy(), rtol=1e-4, atol=1e-5
    )


def test_what_stands_in_empty_slots_is_not_read() -> None:
    observation, net = random_observation(), network(sharp=100)
    hole = observation["segment_mask"] == 0
    noise = observation | {"segments": observation["segments"].masked_fill(hole[..., None], 1e6)}
    one, two = net(observation), net(noise)
    assert torch.equal(one.value, two.value)
    assert torch.equal(one.distribution.log_probs, two.distribution.log_probs)


def test_rows_do_not_read_each_other() -> None:
    observation, net = random_observation(rows=70), network(sharp=100)
    together = net(observation)
    for row in (0, 13, 69):
        alone = net({name: array[row : row + 1] for name, array in observation.items()})
        torch.testing.assert_close(alone.value[0], together.value[row], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            alone.distribution.log_probs[0], together.distribution.log_probs[row],
            rtol=1e-4, atol=1e-5,
        )  # fmt: skip


def test_the_start_is_near_uniform_over_legal_operations() -> None:
    output = network(width=64, layers=2, heads=4)(random_observation(rows=64))
    ops = output.distribution.op_log_probs
    legal = ops.isfinite()
    uniform = -legal.sum(1, keepdim=True).float().log().expand_as(ops)
    torch.testing.assert_close(ops[legal], uniform[legal], rtol=0, atol=0.4)
    assert output.value.shape == (64,)


@pytest.mark.parametrize(("slots", "archived"), [(4, 0), (1, 1), (16, 5)])
def test_any_number_of_slots(slots: int, archived: int) -> None:
    observation = random_observation(slots=slots, archived=archived, used=slots)
    log_probs = network()(observation).distribution.log_probs
    assert log_probs.shape == (6, ActionCodec(slots, archived).size)
    torch.testing.assert_close(log_probs.exp().sum(1), torch.ones(6))


def test_an_empty_context() -> None:
    output = network()(random_observation(archived=0, used=0))
    assert output.distribution.mode().tolist() == [0] * 6
    assert output.distribution.entropy().tolist() == [0.0] * 6
    (output.distribution.entropy().sum() + output.value.sum()).backward()


def test_every_parameter_is_trained() -> None:
    observation, net = random_observation(), network()
    output = net(observation)
    actions = output.distribution.sample(torch.Generator().manual_seed(0))
    gain = torch.linspace(-1, 1, 6)
    loss = (gain * output.distribution.log_prob(actions)).sum() + output.distribution.kl(
        network(1)(observation).distribution
    ).sum()
    (loss + output.value.square().sum()).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


class WordCounts(nn.Module):
    """A fake text encoder: how often each of four words occurs, through trained weights."""

    width = 4

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(4))

    def forward(self, observation: Mapping[str, Tensor]) -> EncodedText:
        vectors = [
            (observation[name][..., None] == torch.arange(1, 5)).sum(-2).float() @ self.weight
            for name in TEXT_INPUTS
        ]
        return EncodedText(*vectors)


def with_text(observation: dict[str, Tensor], seed: int = 0) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    rows, slots, _ = observation["segments"].shape
    shapes = (rows, slots, 6), (rows, observation["archive"].shape[1], 6), (rows, 5)
    words = [torch.randint(0, 5, shape, generator=draw, dtype=torch.int16) for shape in shapes]
    return observation | dict(zip(TEXT_INPUTS, words, strict=True))


def test_a_text_encoder_is_read_and_trained() -> None:
    torch.manual_seed(0)
    encoder = WordCounts()
    net = PointerNetwork(PointerConfig(16, 1, 2, backbone="words"), encoder)
    assert net.inputs == (*NUMERIC_INPUTS, *TEXT_INPUTS)
    observation = with_text(random_observation())
    one = net(padded(observation, 12, 5) | with_text(padded(observation, 12, 5)))
    for name in TEXT_INPUTS:
        two = net(observation | {name: observation[name].flip(0)})
        assert not torch.allclose(net(observation).value, two.value), name
    (one.value.sum() + one.distribution.entropy().sum()).backward()
    assert encoder.weight.grad.any()
    assert "encoder.weight" in net.state_dict()


def test_a_backbone_and_its_encoder_belong_together() -> None:
    with pytest.raises(ConfigurationError, match="backbone 'none' and the encoder WordCounts"):
        PointerNetwork(PointerConfig(), WordCounts())
    with pytest.raises(ConfigurationError, match="backbone 'words' and the encoder None"):
        PointerNetwork(PointerConfig(backbone="words"))
    assert segment_encoder("none") is None
    with pytest.raises(ConfigurationError, match="Did you mean 'none'"):
        segment_encoder("non")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"width": 10, "heads": 4}, "Received 10 and 4"),
        ({"layers": 0}, "`layers` must be an integer of at least 1. Received 0"),
        ({"context_slots": "32"}, "`context_slots` .* Received '32'"),
        ({"archive_slots": -1}, "at least 0. Received -1"),
    ],
)
def test_impossible_sizes_are_refused(fields: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        PointerConfig(**fields)
