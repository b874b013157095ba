"""A session to which things happen that must change nothing, beside one that only grows."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from manager.histories import FORMATS, Messages
from manager.schedules import Host, archive_for, at_once, budget_for, conversation, records
from messages.message_lists import wire


class Neutral:
    """A host whose session goes through neutral steps, beside one that just grows."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = Random(f"neutral/{seed}")
        self.format = FORMATS[seed % 3]
        budget = budget_for(self.rng)
        self.straight = Host(self.format, budget)
        self.host = Host(self.format, budget, archive_for(self.rng, folder))
        self.way = self.rng.choice(["passes", "passes", "appends", "goes on with ours"])
        self.lists = conversation(self.format, self.rng, self.rng.randint(3, 5))
        self.extra: Messages = []
        self.done = Counter[str]()
        self.manual = False

    def run(self) -> Counter[str]:
        given, appended = 0, 0
        for number, messages in enumerate(self.lists):
            self.manual = False
            whole = [*messages, *self.extra] if number + 1 == len(self.lists) else messages
            expected = self.straight.prepare(whole)
            if self.way == "appends":
                for message in whole[appended:]:
                    self.host.session.append(message)
                appended = len(whole)
                sent = self.host.session.prepare()
            elif self.way == "goes on with ours" and self.host.sent is not None:
                sent = self.host.prepare([*self.host.sent.messages, *whole[given:]], fed=True)
            else:
                sent = self.host.prepare(whole)
            given = len(whole)
            self.host.sent = sent
            self.same(sent, expected)
            for _ in range(self.rng.randint(1, 2)):
                self.step(whole, number)
        self.done["edited"] += self.host.sent is not None and wire(self.host.sent.messages) != wire(
            self.lists[-1]
        )
        return self.done

    def same(self, sent: Any, expected: Any) -> None:
        assert wire(sent.messages) == wire(expected.messages)
        assert (sent.status, sent.report.request) == (expected.status, expected.report.request)
        assert records(self.host.session) == records(self.straight.session)

    def step(self, whole: Messages, number: int) -> None:
        steps = ["undo", "by hand"]
        if self.way != "appends":
            steps += ["retry", "copy", "fed back", "restart", "threads", "dry run"]
            steps += [] if self.manual else ["older"]  # what was undone may leave again then
        name = self.rng.choice(steps)
        self.done[name] += 1
        getattr(self, name.replace(" ", "_"))(whole, number)

    def retry(self, whole: Messages, number: int) -> None:
        self.same(self.host.prepare(whole), self.straight.sent)

    def copy(self, whole: Messages, number: int) -> None:
        self.same(self.host.prepare(copy.deepcopy(whole)), self.straight.sent)

    def fed_back(self, whole: Messages, number: int) -> None:
        assert self.host.sent is not None
        again = copy.deepcopy(self.host.sent.messages)
        self.same(self.host.prepare(again, fed=True), self.straight.sent)

    def restart(self, whole: Messages, number: int) -> None:
        self.host.restart()
        self.rng.choice([self.retry, self.fed_back, self.copy])(whole, number)

    def dry_run(self, whole: Messages, number: int) -> None:
        self.same(self.host.session.dry_run(whole), self.straight.sent)

    def older(self, whole: Messages, number: int) -> None:
        self.host.quietly(self.lists[self.rng.randint(0, number)])
        self.same(self.host.quietly(whole), self.straight.sent)

    def threads(self, whole: Messages, number: int) -> None:
        """Two of one session, and another session of the same manager beside them."""
        one, two, other = at_once(
            lambda: self.host.session.prepare(whole),
            lambda: self.host.session.prepare(copy.deepcopy(whole)),
            lambda: self.host.manager.session("b").prepare(whole),
        )
        self.same(one, self.straight.sent)
        self.same(two, self.straight.sent)
        assert other.report.session == "b"

    def undo(self, whole: Messages, number: int) -> None:
        """The same undo in both; what it brings back may be edited again from then on."""
        log = self.straight.session.log
        live = [record.id for record in log if log.is_live(record)]
        if live:
            chosen = self.rng.choice(live)
            assert self.straight.session.undo(chosen) == self.host.session.undo(chosen)
            self.quiet_both(whole)

    def by_hand(self, whole: Messages, number: int) -> None:
        """The same manual edit in both."""
        self.quiet_both(whole)  # slots are given anew by a request
        seen = self.straight.session.observe()
        legal = [int(a) for a in seen.arrays["action_mask"].nonzero()[0] if a]
        if legal:
            action = self.rng.choice(legal)
            self.straight.session.execute(action)
            self.host.session.execute(action)
            self.quiet_both(whole)

    def quiet_both(self, whole: Messages) -> None:
        self.manual = True
        expected = self.straight.quietly(whole)
        if self.way == "appends":
            self.host.policy.quiet = True
            self.host.sent = self.host.session.prepare()
            self.host.policy.quiet = False
        else:
            self.host.quietly(whole)
        assert self.host.sent is not None
        self.same(self.host.sent, expected)
