"""An event loop whose clock jumps to the next timer: hours of waiting pass in no time, and always in the same order."""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Knows no sockets and no threads: what is sent to one runs at once, so that no time passes beside the clock."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Clock(self))

    def time(self) -> float:
        return self._now

    def pass_time(self, seconds: float) -> None:
        self._now += seconds

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


class _Clock(selectors.SelectSelector):
    """Instead of waiting for as long as it is told, puts the clock forward by that much."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everything waits for what never comes"
        self._loop.pass_time(max(0.0, timeout))
        return super().select(0)


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that runs so."""

    @functools.wraps(test)
    def outside(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs))

    return outside
