import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_checks import RUN, check_exchanges, check_labels

from contextpilot.core.segment import Kind
from contextpilot.errors import ConfigurationError
from contextpilot_envs.tasks.augment import Augmentation, augment
from contextpilot_envs.tasks.demands import find_statements
from contextpilot_envs.tasks.replay import replay_task
from contextpilot_envs.tasks.sample import sample_transcript


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_variants_are_valid_tasks(seed: int) -> None:
    whole, *others = (replay_task(sample_transcript(n)) for n in range(3))
    variant = augment(whole, np.random.default_rng(seed), others)
    check_labels(variant)
    check_exchanges(variant)
    assert 40 <= variant.requests <= 80
    assert variant.cluster == whole.cluster
    assert len(variant.demands) > 5
    assert variant == augment(whole, np.random.default_rng(seed), others)


def test_renaming_changes_names_consistently_and_keeps_demands() -> None:
    whole = replay_task(sample_transcript(1))
    only_names = Augmentation(whole.requests, whole.requests, 0.0, 0.0)
    variant = augment(whole, np.random.default_rng(0), (), only_names)
    assert [d.request for d in variant.demands] == [d.request for d in whole.demands]
    before, after = ([fact.value for fact in task.facts] for task in (whole, variant))
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert len(changed) > 0.9 * len(before)
    assert all(len(a) == len(b) for a, b in changed)
    assert [f.segments for f in variant.facts] == [f.segments for f in whole.facts]
    places = find_statements(variant.segments, (a for a, _ in changed if len(a) > 12))
    assert places
    assert not any(places.values())
    assert [s.name for s in variant.segments] == [s.name for s in whole.segments]
    for segment in variant.segments:  # calls are still calls
        for part in segment.parts:
            if part.type == "call":
                assert set(json.loads(part.text)) <= {
                    "pattern", "path", "file_path", "command", "description", "offset", "limit",
                    "old_string", "new_string",
                }  # fmt: skip


def test_distractors_are_whole_exchanges_of_other_runs() -> None:
    whole, other = replay_task(sample_transcript(1)), replay_task(RUN)
    spliced = Augmentation(whole.requests, whole.requests, 1.0, 0.0, rename=False)
    sizes = set()
    for seed in range(5):
        variant = augment(whole, np.random.default_rng(seed), [other], spliced)
        check_exchanges(variant)
        check_labels(variant)
        sizes.add(len(variant.segments) - len(whole.segments))
        own = [s.text for s in whole.segments]
        assert [s.text for s in variant.segments if s.text in set(own)] == own
    assert max(sizes) > 10
    assert all(size % 2 == 0 for size in sizes)


def test_hidden_texts_keep_their_length_and_lose_their_facts() -> None:
    whole = replay_task(sample_transcript(1))
    hiding = Augmentation(whole.requests, whole.requests, 0.0, 1.0, rename=False)
    variant = augment(whole, np.random.default_rng(1), (), hiding)
    check_labels(variant)
    pairs = list(zip(whole.segments, variant.segments, strict=True))
    hidden = [b for a, b in pairs if a.text != b.text]
    assert hidden
    assert all(segment.kind == Kind.RESULT for segment in hidden)
    assert all(len(a.text) == len(b.text) for a, b in pairs)
    assert len(variant.facts) < len(whole.facts)


def test_a_run_shorter_than_a_window_is_taken_whole() -> None:
    variant = augment(replay_task(RUN), np.random.default_rng(0))
    assert variant.requests == 4
    check_labels(variant)


@pytest.mark.parametrize(
    "fields", [{"min_requests": 9, "max_requests": 8}, {"max_hidden_share": 1.5}]
)
def test_impossible_augmentations_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="Received"):
        Augmentation(**fields)
