"""One thread that runs one call at a time, and may be left behind when a call takes too long."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeAlias


class Job:
    """A call that is to be made.

    Attributes:
        done: set once there is an answer or an error.
        answer: what it returned.
        error: what it raised; None where it returned.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self.done = threading.Event()
        self.answer: Any = None
        self.error: BaseException | None = None
        self._call: Callable[[], Any] | None = call

    def run(self) -> None:
        """Makes the call, once; whatever it raises is kept."""
        call, self._call = self._call, None
        try:
            self.answer = call() if call is not None else None
        except BaseException as error:  # also SystemExit: it would end the thread without a word
            self.error = error
        self.done.set()


_Jobs: TypeAlias = SimpleQueue[Job | None]


class Worker:
    """A daemon thread that begins with the first call and ends with its owner.

    It is a daemon because Python waits at exit for every other thread, and a call that hangs would
    hang the program. It knows the queue alone, so that the owner can be collected while it waits.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: _Jobs = SimpleQueue()
        self._job: Job | None = None
        self._end: weakref.finalize[[None], Worker] | None = None

    @property
    def is_busy(self) -> bool:
        """True while a call that was given up has not returned."""
        return self._job is not None and not self._job.done.is_set()

    def run(self, call: Callable[[], Any], timeout: float) -> Job | None:
        """Makes a call in the thread, and waits for it.

        Args:
            call: takes nothing; only while the worker is not busy.
            timeout: seconds to wait.

        Returns:
            The finished job, or None where it took too long; its answer is then never read.
        """
        if self._end is None:
            self._begin()
        job = self._job = Job(call)
        self._jobs.put(job)
        return job if job.done.wait(timeout) else None

    def close(self) -> None:
        """Ends the thread once its present call returns; a further call begins another."""
        if self._end is not None:
            self._end()
            self._end = None

    def _begin(self) -> None:
        jobs: _Jobs = SimpleQueue()
        self._jobs, self._end = jobs, weakref.finalize(self, jobs.put, None)
        threading.Thread(target=_work, args=(jobs,), name=self._name, daemon=True).start()


def _work(jobs: _Jobs) -> None:
    while (job := jobs.get()) is not None:
        job.run()
        del job  # or the last call's arguments would live as long as the thread
