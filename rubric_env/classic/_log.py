"""Figures of a scored group for wandb, trackio or any `log(figures, step)`."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from functools import cache
from itertools import count
from math import fsum
from pkgutil import resolve_name
from queue import Full, Queue
from typing import Any

from rubric_env.classic._tally import PARTS, Tally
from rubric_env.scoring import Outcome

Log = Callable[[dict[str, float], int], Any]

KEPT = 1000
"""Groups that wait for a slow log; what comes on top of them is dropped."""

PATIENCE = 5.0
"""Seconds that the end of a run waits for what is still to be logged: verifiers kills a worker that takes 10."""


class Curves:
    """A rubric's log, called in a thread of its own: whatever it does or fails to do, the run goes on.

    `log` is a function, or "module:function" for arguments that are JSON. Raises ValueError when it cannot be called.
    `logger` is told what goes wrong.
    """

    def __init__(self, log: Log | str, logger: logging.Logger) -> None:
        self._log = log
        self._logger = logger
        self._find()
        self._lock = threading.Lock()
        self._waiting = 0
        self._raised = 0
        self._dropped = 0
        self._said = ""
        self._given_up = False

    def _find(self) -> Log:
        # A text is looked up for every call: `wandb.log` becomes another function when wandb.init is called.
        found: Any = self._log
        if isinstance(found, str):
            if ":" not in found:
                raise ValueError(f'log = {found!r}: "module:function" is expected')
            try:
                found = resolve_name(found)
            except (ImportError, AttributeError, ValueError) as error:
                raise ValueError(f"log = {self._log!r}: {error}") from None
        if not callable(found) or inspect.iscoroutinefunction(found):
            raise ValueError(f"log = {self._log!r}: a plain function of (figures, step) is expected")
        return found  # type: ignore[no-any-return]

    def write(self, figures: dict[str, float]) -> None:
        """Have `figures` logged as soon as what came before is."""
        with self._lock:
            self._waiting += 1
        try:
            _writer(os.getpid()).take(self, figures)
        except (Full, RuntimeError) as error:  # the latter when no thread can be had
            with self._lock:
                self._waiting -= 1
                self._dropped += 1
            if self._dropped == 1:
                self._logger.warning("figures are dropped: %s", str(error) or "log is too slow")

    def call(self, figures: dict[str, float], step: int) -> None:
        try:
            self._find()(figures, step)
        except BaseException:
            self._raised += 1
            if self._raised == 1:
                self._logger.exception("log raised, which is shown this once")
        finally:
            with self._lock:
                self._waiting -= 1

    async def close(self) -> str:
        """Wait a while for what is still to be logged; a line on what never was, "" when nothing new is to be said."""
        until = time.monotonic() + PATIENCE
        # Neither a thread nor an executor can be had at the end of the interpreter, where this runs too.
        while self._waiting and not self._given_up and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        self._given_up = self._waiting > 0
        lost = {"raised": self._raised, "was too slow": self._dropped + self._waiting}
        before, self._said = self._said, ", ".join(f"{how} for {n} groups" for how, n in lost.items() if n)
        return f"log {self._said}" if self._said not in ("", before) else ""


class _Writer:
    """Calls the logs of this process one after the other, under steps that rise: wandb drops what comes under a lower
    step than before."""

    def __init__(self) -> None:
        self._steps = count()
        self._lock = threading.Lock()
        self._queue: Queue[tuple[Context, Curves, dict[str, float], int]] = Queue(KEPT)
        threading.Thread(target=self._work, name="rubric-env-log", daemon=True).start()

    def take(self, curves: Curves, figures: dict[str, float]) -> None:
        """Raises Full."""
        with self._lock:
            # trackio knows its run by a context variable.
            self._queue.put_nowait((copy_context(), curves, figures, next(self._steps)))

    def _work(self) -> None:
        while True:
            context, curves, figures, step = self._queue.get()
            context.run(curves.call, figures, step)


@cache
def _writer(pid: int) -> _Writer:
    """Of the process `pid`: a fork has none of the threads of its parent."""
    return _Writer()


def group_figures(outcomes: Sequence[Outcome], prefix: str) -> dict[str, float]:
    """What is worth a curve, all finite: means over the rollouts of every numeric field; over the scored ones the mean
    reward, and by tag, type and necessity of the rows the weight earned of that possible; rows lost by kind of fault.

    A share is there only where rows with a positive weight name its tag.
    """
    figures = {"rollouts": float(len(outcomes))}
    rows = [outcome.metrics() for outcome in outcomes]
    for field in rows[0] if rows else ():
        figures[field] = fsum(row[field] for row in rows) / len(rows)
    tally = Tally()
    for outcome in outcomes:
        tally.add(outcome)
    if tally.scored:
        figures["reward"] = tally.total / tally.scored
    for part in PARTS:
        figures.update({f"{part}/{value}": share for value, share in tally.shares(part).items()})
    figures.update({f"fault/{kind}": float(rows_lost) for kind, rows_lost in tally.faults.items()})
    return {f"{prefix}/{name}": value for name, value in figures.items()}
