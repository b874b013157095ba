"""B episodes played side by side on one set of arrays; both environments are thin faces of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.context import Context
from contextpilot.core.edit import Op
from contextpilot.edits.codec import ActionCodec, to_edit
from contextpilot.observations.batch import ColumnBatch
from contextpilot.observations.encoder import ObservationEncoder
from contextpilot.summarizers import CachedSummarizer, StructureSummarizer
from contextpilot.summarizers.base import Summarizer
from contextpilot.tokenizers import EstimateTokenizer
from contextpilot.tokenizers.base import Tokenizer
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.simulator.episode import Episode, EpisodeSnapshot
from contextpilot_envs.simulator.prepared import PreparedTask
from contextpilot_envs.tasks.base import TaskSource

_KEEP = Op.KEEP
_CACHED_TASKS = 2048
"""More than the training split of the generated families has."""

INVALID_PRICE = 0.01
"""What a masked action costs; it changes nothing else."""


@dataclass(slots=True)
class RowState:
    """What a row knows besides its episode."""

    step: int = 0
    invalid: int = 0


@dataclass(frozen=True, slots=True)
class RowSnapshot:
    """One row, ready to be restored."""

    episode: EpisodeSnapshot
    task_id: str
    step: int
    invalid: int
    slots: NDArray[np.integer]
    archived: NDArray[np.integer]


class Engine:
    """Episodes, their columns and their observations, by row.

    Args:
        rows: how many episodes are played side by side.
        source: where tasks come from.
        simulator: prices, window, notice preset, reader.
        context_slots, archive_slots: the action layout's size.
        tokenizer, summarizer: None for the script-aware estimate and the structure summarizer.
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
    ) -> None:
        self.source, self.simulator = source, simulator
        self.codec = ActionCodec(context_slots, archive_slots)
        self.tokenizer = tokenizer or EstimateTokenizer()
        self.summarizer = summarizer or CachedSummarizer(StructureSummarizer(self.tokenizer))
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
        self.states[row] = RowState()
        self.encoder.start(row, prepared.statics, prepared.task.goal)

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
            (B,) rewards; 0 for rows that are not active. Summed over an episode without masked
            actions they are its objective J.
        """
        rewards = np.zeros(len(self.episodes))
        for row in active:
            rewards[row] = self._play(row, int(actions[row]))
        self.observe()
        return rewards

    def _play(self, row: int, number: int) -> float:
        episode, state = self.episodes[row], self.states[row]
        action = self.codec.decode(number)
        reward = 0.0
        if not self.encoder.action_mask[row, number]:
            state.invalid += 1
            reward -= INVALID_PRICE
        elif action.op != _KEEP:
            slots = self.encoder.archive_index if action.archived else self.encoder.slot_index
            edit = to_edit(episode.context, action, int(slots[row, action.slot]))
            record = episode.commit(edit)
            self.encoder.update(row, [change.index for change in record.changes])
        state.step += 1
        if action.op == _KEEP or state.step >= self.simulator.max_edits:
            reward += self.send(row)
            self.encoder.refresh(row, episode.context)
        return reward

    def send(self, row: int) -> float:
        """Sends a row's request; returns the reward of what came of it."""
        episode, config = self.episodes[row], self.simulator
        result = episode.send()
        self.states[row].step = 0
        cost = result.bill + config.miss_price_requests * result.miss_cost
        reward = -cost / episode.prepared.raw.total
        if result.ended and episode.failed:
            reward -= config.task_weight
        return reward

    def snapshot(self, row: int) -> RowSnapshot:
        """Returns a row's whole state."""
        state, encoder = self.states[row], self.encoder
        return RowSnapshot(
            self.episodes[row].snapshot(), self.episodes[row].prepared.task.id, state.step,
            state.invalid, encoder.slot_index[row].copy(), encoder.archive_index[row].copy(),
        )  # fmt: skip

    def restore(self, row: int, snapshot: RowSnapshot) -> None:
        """Returns a row to a snapshot, whatever it was playing; call `observe` afterwards."""
        if self.episodes[row].prepared.task.id != snapshot.task_id:
            self.begin(row, snapshot.task_id, snapshot.episode.noise_seed)
        self.episodes[row].restore(snapshot.episode)
        self.states[row] = RowState(snapshot.step, snapshot.invalid)
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
