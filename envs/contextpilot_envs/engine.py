"""B episodes played side by side on one set of arrays; both environments are thin faces of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.context import Context
from contextpilot.core.edit import Op
from contextpilot.edits.codec import ActionCodec, to_edit
from contextpilot.errors import ConfigurationError
from contextpilot.observations.batch import ColumnBatch
from contextpilot.observations.encoder import ObservationEncoder
from contextpilot.rewards.terms import TERMS, raw_terms
from contextpilot.rewards.weights import RewardWeights
from contextpilot.summarizers import StructureSummarizer
from contextpilot.summarizers.base import Summarizer
from contextpilot.tokenizers import EstimateTokenizer
from contextpilot.tokenizers.base import Tokenizer
from contextpilot_envs.accounting import send_request, step_facts
from contextpilot_envs.hindsight import PlayedStep, Trace, hindsight
from contextpilot_envs.potentials import PotentialTracker
from contextpilot_envs.row import RowSnapshot, RowState
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.simulator.prepared import PreparedTask
from contextpilot_envs.tasks.base import TaskSource

_KEEP = Op.KEEP
_CACHED_TASKS = 2048
"""More than the training split of the generated families has."""

DEFAULT_REWARD = RewardWeights()
_NO_SHAPING = (0.0, 0.0, 0.0)


class Engine:
    """Episodes, their columns and their observations, by row.

    Args:
        rows: how many episodes are played side by side.
        source: where tasks come from.
        simulator: prices, window, notice preset, reader.
        context_slots, archive_slots: the action layout's size.
        tokenizer, summarizer: None for the script-aware estimate and the structure summarizer.
        reward: what the terms weigh. The potentials are followed only where `key_info`, `reload`,
            `rent` or `half_kept` has a weight; these terms stay 0 otherwise.
        hindsight: whether steps are kept, so that `hindsight` can be asked.

    Attributes:
        terms: (B, N) float64, the raw reward terms of each row's latest step, in the order of
            `contextpilot.rewards.terms.TERMS`; 0 for rows that did not play.
    """

    def __init__(
        self,
        rows: int,
        source: TaskSource,
        simulator: SimulatorConfig,
        *,
        context_slots: int = 128,
        archive_slots: int = 32,
        tokenizer: Tokenizer | None = None,
        summarizer: Summarizer | None = None,
        reward: RewardWeights = DEFAULT_REWARD,
        hindsight: bool = False,
    ) -> None:
        self.source, self.simulator = source, simulator
        self.reward, self._keeps_traces = reward, hindsight
        weights: list[float] = reward.vector().tolist()
        self._weights = [(place, weight) for place, weight in enumerate(weights) if weight]
        self._follows_facts = bool(
            reward.key_info or reward.reload or reward.rent or reward.half_kept
        )
        self.terms = np.zeros((rows, len(TERMS)))
        self.codec = ActionCodec(context_slots, archive_slots)
        self.tokenizer = tokenizer or EstimateTokenizer()
        self.summarizer = summarizer or StructureSummarizer(self.tokenizer)
        self.batch = ColumnBatch(rows)
        self.encoder = ObservationEncoder(
            self.batch, self.codec, max_edits=simulator.max_edits, prices=simulator.price_table,
            reload_output_tokens=simulator.reload_output_tokens,
        )  # fmt: skip
        self._prepared: OrderedDict[str, PreparedTask] = OrderedDict()
        self.episodes: list[Episode] = []
        self.states = [RowState() for _ in range(rows)]

    def prepare(self, task_id: str) -> PreparedTask:
        """Returns a task ready to play; the latest ones are kept.

        Raises:
            UnknownTaskError: when the source has no such task.
        """
        prepared = self._prepared.get(task_id)
        if prepared is None:
            task = self.source.load(task_id)
            prepared = PreparedTask(task, self.simulator, self.tokenizer, self.summarizer)
            self._prepared[task_id] = prepared
            if len(self._prepared) > _CACHED_TASKS:
                self._prepared.popitem(last=False)
        else:
            self._prepared.move_to_end(task_id)
        return prepared

    def begin(self, row: int, task_id: str, noise_seed: int) -> None:
        """Starts a task in a row. Rows are begun in order the first time."""
        prepared = self.prepare(task_id)
        self.batch.reserve(len(prepared.entries) + 16)
        episode = Episode(prepared, noise_seed, self.batch.columns(row))
        if row == len(self.episodes):
            self.episodes.append(episode)
        else:
            self.episodes[row] = episode
        self.states[row] = self._row_state(episode)
        self.terms[row] = 0.0
        self.encoder.start(row, prepared.statics, prepared.task.goal)

    def _row_state(self, episode: Episode, step: int = 0, invalid: int = 0) -> RowState:
        follows, past = self._follows_facts, bool(self.reward.half_kept)
        tracker = PotentialTracker(episode, past=past) if follows else None
        return RowState(step, invalid, tracker, Trace() if self._keeps_traces else None)

    @property
    def contexts(self) -> list[Context]:
        """All rows' contexts."""
        return [episode.context for episode in self.episodes]

    def observe(self, refreshed: Sequence[int] = ()) -> None:
        """Brings the encoder's arrays up to date; `refreshed` rows get their slots anew."""
        for row in refreshed:
            self.encoder.refresh(row, self.episodes[row].context)
        self.encoder.finish(
            self.contexts, [e.log for e in self.episodes], [s.step for s in self.states]
        )  # fmt: skip

    def step(self, actions: Sequence[int], active: Sequence[int]) -> NDArray[np.float64]:
        """Plays one action in each active row, then brings the arrays up to date.

        Args:
            actions: (B,) integers; those of rows that are not active are ignored.
            active: the rows whose episodes go on.

        Returns:
            (B,) rewards, each the weighted sum of its row of `terms`; 0 for rows that are not
            active. With the default weights they sum to J + 1 over an episode without masked
            actions, where J is its objective.
        """
        self.terms[:] = 0.0
        if active:
            self.terms[active] = [self._play(row, int(actions[row])) for row in active]
        rewards = np.zeros(len(self.episodes))
        # Added in a fixed order, so that a row earns the same whatever is played beside it.
        for place, weight in self._weights:
            rewards += weight * self.terms[:, place]
        self.observe()
        return rewards

    def _play(self, row: int, number: int) -> tuple[float, ...]:
        """Plays one action in a row; returns its raw reward terms."""
        episode, state = self.episodes[row], self.states[row]
        action, logged = self.codec.decode(number), len(episode.log)
        masked = not self.encoder.action_mask[row, number]
        record = result = None
        index, half_kept = -1, False
        if masked:
            state.invalid += 1
        elif action.op != _KEEP:
            slots = self.encoder.archive_index if action.archived else self.encoder.slot_index
            index = int(slots[row, action.slot])
            edit = to_edit(episode.context, action, index)
            if state.trace is not None:
                state.trace.before_edit(episode)
            record = episode.commit(edit)
            self.encoder.update(row, [change[0] for change in record.rows])
        state.step += 1
        if action.op == _KEEP or state.step >= self.simulator.max_edits:
            result, half_kept = send_request(episode, state.tracker)
            state.step = 0
            self.encoder.refresh(row, episode.context)
        facts = step_facts(
            episode, logged, record, result, masked=masked, half_kept=half_kept,
            shaping=state.tracker.update() if state.tracker is not None else _NO_SHAPING,
        )  # fmt: skip
        terms = raw_terms(facts)
        if state.trace is not None:
            made = action if record is not None else None
            step = PlayedStep(logged, made, index, result is not None, masked, terms)
            state.trace.steps.append(step)
        return terms

    def hindsight(self, row: int) -> NDArray[np.float64]:
        """Returns what each edit of a row's episode was worth, (L,) float64, once it has ended.

        Raises:
            ConfigurationError: where the engine was made without `hindsight=True`.
        """
        trace = self.states[row].trace
        if trace is None:
            raise ConfigurationError(
                "this engine keeps no steps to look back on. Make it with hindsight=True."
            )
        return hindsight(trace, self.episodes[row], self.reward)

    def snapshot(self, row: int) -> RowSnapshot:
        """Returns a row's whole state."""
        state, encoder = self.states[row], self.encoder
        return RowSnapshot(
            self.episodes[row].snapshot(), self.episodes[row].prepared.task.id, state.step,
            state.invalid, encoder.slot_index[row].copy(), encoder.archive_index[row].copy(),
            state.trace.fork() if state.trace is not None else None,
        )  # fmt: skip

    def restore(self, row: int, snapshot: RowSnapshot) -> None:
        """Returns a row to a snapshot, whatever it was playing; call `observe` afterwards."""
        if self.episodes[row].prepared.task.id != snapshot.task_id:
            self.begin(row, snapshot.task_id, snapshot.episode.noise_seed)
        self.episodes[row].restore(snapshot.episode)
        self.states[row] = self._row_state(self.episodes[row], snapshot.step, snapshot.invalid)
        self.terms[row] = 0.0
        if self._keeps_traces and snapshot.trace is not None:
            self.states[row].trace = snapshot.trace.fork()
        self.encoder.reassign(row, self.episodes[row].context, snapshot.slots, snapshot.archived)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Returns the observation arrays themselves, (B, ...); they change with the next step."""
        encoder = self.encoder
        return {
            "segments": encoder.segments,
            "segment_tokens": encoder.segment_tokens,
            "segment_mask": encoder.segment_mask,
            "archive": encoder.archive,
            "archive_tokens": encoder.archive_tokens,
            "archive_mask": encoder.archive_mask,
            "goal_tokens": encoder.goal_tokens,
            "state": encoder.state,
            "action_mask": encoder.action_mask,
        }
