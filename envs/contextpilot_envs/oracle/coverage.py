"""Whether a plan leaves every demanded fact readable, whichever segment shows it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.segment import Form
from contextpilot_envs.oracle.needs import Needs
from contextpilot_envs.simulator.prepared import PreparedTask

Ints = NDArray[np.int64]


class Coverage:
    """For every need, who may serve it, and in which forms.

    Attributes:
        groups, holders, requests: (P,) one entry per need and possible holder.
        shown: (F, P) whether the holder's form shows the fact.
        needs: how many there are.
    """

    def __init__(self, prepared: PreparedTask, needs: Needs, forms: tuple[Form, ...]) -> None:
        numbers: dict[tuple[int, int], int] = {}
        groups, holders, requests, shown = [], [], [], []
        for i, pairs in enumerate(needs.may):
            texts = {form: prepared.entries[i].text(form) for form in forms} if pairs else {}
            for request, fact_id in pairs:
                value = prepared.task.facts[fact_id].value
                groups.append(numbers.setdefault((request, fact_id), len(numbers)))
                holders.append(i)
                requests.append(request)
                shown.append([value in texts[form] for form in forms])
        self.groups = np.array(groups, np.int64)
        self.holders = np.array(holders, np.int64)
        self.requests = np.array(requests, np.int64)
        self.shown = np.array(shown, bool).reshape(-1, len(forms)).T
        self.needs = len(numbers)
        self._each = np.arange(len(groups))

    def unmet(self, leave: Ints, form: Ints, drop: Ints, copy: Ints, copy_leave: Ints) -> int:
        """Returns how many needs nothing serves.

        The arguments are (N,) as in a plan; `leave` is the horizon where a segment never leaves
        its full form before it is dropped.
        """
        if not self.needs:
            return 0
        i, t = self.holders, self.requests
        there = t < drop[i]
        there &= (t < leave[i]) | self.shown[form[i], self._each]
        there |= (copy[i] <= t) & (t < copy_leave[i])
        served = np.zeros(self.needs, bool)
        served[self.groups[there]] = True
        return int(self.needs - served.sum())
