"""A session whose host branches, changes and trims, beside a new one with its log."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path
from random import Random

from manager.histories import FORMATS, ROOMY, Messages
from manager.schedules import Host, archive_for, budget_for, conversation, records, reload_exchange
from messages.message_lists import wire

from contextpilot.core.edit import Op
from contextpilot.errors import IllegalEditError
from contextpilot.manager import Status


class Disturbed:
    """A host that branches, changes and trims its list, and makes edits all the time."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = Random(f"disturbed/{seed}")
        self.format = FORMATS[seed % 3]
        self.host = Host(self.format, budget_for(self.rng), archive_for(self.rng, folder))
        self.lists = conversation(self.format, self.rng, self.rng.randint(4, 6))
        self.reached, self.asked = 1, 0
        self.now: Messages = list(self.lists[1])
        self.done = Counter[str]()

    def run(self) -> Counter[str]:
        self.host.prepare(self.lists[0])
        self.host.prepare(self.now)
        for _ in range(self.rng.randint(3, 5)):
            name = self.rng.choice(
                ["grow", "grow", "grow", "branch", "change", "trim_front", "trim_back", "restart",
                 "undo", "reload_call", "fed_back"]
            )  # fmt: skip
            self.done[name] += 1
            getattr(self, name)()
        self.compare(self.now)
        self.compare(self.lists[self.reached])
        self.done.update(f"op {record.op.name.lower()}" for record in self.host.session.log)
        return self.done

    def grow(self) -> None:
        """The list goes on as the conversation did, whatever became of its beginning."""
        if self.reached + 1 < len(self.lists):
            known = len(self.lists[self.reached])
            self.reached += 1
            self.now = [*self.now, *self.lists[self.reached][known:]]
        self.host.prepare(self.now)

    def branch(self) -> None:
        """Another conversation from an earlier point, and back or not."""
        start = self.lists[self.rng.randint(0, self.reached)]
        said = {"role": "user", "content": f"Or else: {self.rng.random()} " + "word " * 30}
        answer = {"role": "assistant", "content": f"Then {self.rng.random()}."}
        branch = [*start, answer, said] if start[-1].get("role") != "assistant" else [*start, said]
        self.host.prepare(branch)
        if self.rng.random() < 0.3:
            self.now = branch

    def change(self) -> None:
        """A text is changed in place, without telling anyone."""
        texts = [m for m in self.now[1:] if isinstance(m.get("content"), str)]
        outputs = [m for m in self.now if isinstance(m.get("output"), str)]
        message = self.rng.choice([*texts, *outputs] or [{}])
        key = "output" if "output" in message else "content"
        at = next((i for i, m in enumerate(self.now) if m is message), -1)
        if at >= 0:
            self.now[at] = {**message, key: f"changed {self.rng.random()} " + "word " * 40}
            if self.rng.random() < 0.5:  # in the very object that was passed before
                self.now[at] = message
                message[key] = f"changed {self.rng.random()} " + "word " * 40
        self.host.prepare(self.now)

    def trim_front(self) -> None:
        """What stands behind the goal leaves, up to the beginning of a turn."""
        keep = 1 if self.format == "anthropic" else 2
        begins = [len(each) for each in self.lists if len(each) < len(self.now)]
        starts = [at for at in begins if self.now[at : at + 1] and at > keep and self._turn(at)]
        if starts:
            self.now = [*self.now[:keep], *self.now[self.rng.choice(starts) :]]
        self.host.prepare(self.now)

    def _turn(self, at: int) -> bool:
        message = self.now[at]
        before = self.now[at - 1]
        calls = message.get("role") == "assistant" or message.get("type") == "function_call"
        return calls and before.get("role") != "assistant" and before.get("type") not in (
            "function_call", "reasoning",
        )  # fmt: skip

    def trim_back(self) -> None:
        """The host goes back to an earlier request."""
        self.reached = self.rng.randint(1, self.reached)
        self.now = list(self.lists[self.reached])
        self.host.prepare(self.now)

    def restart(self) -> None:
        self.host.restart()
        if self.rng.random() < 0.5:
            self.host.prepare(self.now)

    def undo(self) -> None:
        log = self.host.session.log
        live = [record.id for record in log if log.is_live(record)]
        if live:
            try:
                self.host.session.undo(self.rng.choice(live))
            except IllegalEditError:  # it sleeps
                self.done["undo of a sleeping edit"] += 1

    def reload_call(self) -> None:
        """The model asks for something that it does not see whole, or for nothing that there is."""
        self.host.prepare(self.now)
        folded = [r.targets[0] for r in self.host.session.log if r.op in (Op.FOLD, Op.DROP)]
        asked = self.rng.choice(folded or ["s999"])
        self.asked += 1
        exchange = reload_exchange(self.format, self.asked, asked, self.host.session)
        self.now = [*self.now, *exchange]
        self.host.prepare(self.now)

    def fed_back(self) -> None:
        sent = self.host.prepare(self.now)
        log = records(self.host.session)
        again = self.host.prepare(copy.deepcopy(sent.messages), fed=True)
        assert wire(again.messages) == wire(sent.messages)
        assert records(self.host.session) == log

    def compare(self, messages: Messages) -> None:
        """The oracle: a new session with this log, which has seen this history grow."""
        self.host.prepare(messages)
        twin = self.host.twin(ROOMY)
        sent = self.host.quietly(messages)
        for end in range(1, len(messages) + 1):
            if end == len(messages) or (end > 2 and self.rng.random() < 0.3):
                expected = twin.session.prepare(messages[:end])
        assert records(twin.session) == records(self.host.session)
        desk, other = (each.session._conversation.desk for each in (self.host, twin))
        if desk.present.indices != other.present.indices:
            # it equals the latest request to the letter, so it is read as that, hiding more
            assert set(desk.present.indices) > set(other.present.indices)
            self.done["read as a request"] += 1
            return
        assert wire(sent.messages) == wire(expected.messages)
        assert sent.report.asleep == expected.report.asleep
        there = set(desk.present.indices)
        natives = {i for i, key in enumerate(desk.entries.keys) if key is not None}
        for record in desk.log.live_since(-1):
            targets = {row[0] for row in record.rows} & natives
            assert targets <= there or record.id in sent.report.asleep
        self.done["asleep"] += len(sent.report.asleep)
        self.done["compared edited"] += sent.status == Status.EDITED
