"""A log in memory that threads share, and ways to it which can be cut."""

from __future__ import annotations

import threading
import time
from collections import Counter

from tmqp_server.storage.log import AppendEntry, LogAnswer, LogRequest, UnansweredError, WatchLog
from tmqp_sim.replicas.log_server import LogServer

__all__ = ["Shared", "Way"]


class Shared:
    """A log for threads, which may be away; ``asked`` counts the requests of each kind."""

    def __init__(self) -> None:
        self.asked: Counter[type[LogRequest]] = Counter()
        self.server = LogServer(time.monotonic)
        self._changed = threading.Condition()

    def ask(self, request: LogRequest) -> LogAnswer:
        with self._changed:
            self.asked[type(request)] += 1
            if isinstance(request, WatchLog):
                self._changed.wait_for(lambda: self.server.changed(request), request.wait_s)
            answer = self.server.ask(request)
            self._changed.notify_all()
            return answer

    def close(self) -> None:
        """Nothing is held."""


class Way:
    """A member's way to the log."""

    def __init__(self, log: Shared) -> None:
        self.log = log
        self.is_cut = False
        self.is_full = False
        self.loses_answers = 0

    def ask(self, request: LogRequest) -> LogAnswer:
        if self.is_cut:
            time.sleep(0.01)
            raise UnansweredError("cut")
        if self.is_full and isinstance(request, AppendEntry):
            raise UnansweredError("no space")
        answer = self.log.ask(request)
        if self.loses_answers and not isinstance(request, WatchLog):
            self.loses_answers -= 1
            raise UnansweredError("lost")
        return answer

    def close(self) -> None:
        """Nothing is held."""
