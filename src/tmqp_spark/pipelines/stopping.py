"""Stops a pipeline on request: on SIGTERM and Ctrl-C, the work in flight is finished."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Final, Self

from tmqp_spark.pipelines.reporting import Reporter

__all__ = ["Stop"]

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """The request to end a pipeline after its current work.

    As a context manager it handles SIGTERM and SIGINT: the first one sets :attr:`wanted`, the
    second one raises KeyboardInterrupt immediately.  Only the main thread gets signals, so in other
    threads it handles none.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._event = threading.Event()
        self._before: dict[signal.Signals, Any] = {}

    @property
    def wanted(self) -> bool:
        """Whether a stop was requested."""
        return self._event.is_set()

    def want(self) -> None:
        """Request a stop."""
        self._event.set()

    def sleep(self, seconds: float) -> None:
        """Wait, or return when a stop is requested."""
        if seconds > 0:
            self._event.wait(seconds)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._event.is_set():
            raise KeyboardInterrupt
        self._event.set()
        name = signal.Signals(number).name
        self._reporter.say(
            "stopping", f"{name}: ending after what is being done (again: at once)", signal=name
        )

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            # Spark's own handler of SIGINT cancels all jobs; ours is set after it.
            for each in _SIGNALS:
                self._before[each] = signal.signal(each, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each, before in self._before.items():
            signal.signal(each, before)
        self._before.clear()
