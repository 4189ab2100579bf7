"""Walks over all channels and clients, in portions.

Theory of operation.  A walk copies the list of channels, or clients, at its beginning.  Each
portion examines the next ones.  Those that were removed meanwhile are skipped, and new ones are not
included.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from tmqp_server.engine.model.channel_names import matches
from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.records import Record

__all__ = ["ChannelWalk", "ClientWalk"]

#: Names that are compared with a filter, and items that are shown, in one portion.
_MOST_NAMES: Final = 500
_MOST_SHOWN: Final = 64


@final
class ChannelWalk(Record):
    """A walk over channels and their queues.

    ``channels`` and ``queues`` are those of this portion; ``at`` is the number of finished
    channels.
    """

    __slots__ = ("at", "channels", "done", "queues", "_all", "_queues", "_offset")

    def __init__(self, channels: Iterable[Channel]) -> None:
        self.at = 0
        self.channels: list[Channel] = []
        self.queues: list[Queue] = []
        self.done = False
        self._all = list(channels)
        #: The queues of the current channel, as listed when the walk reached it.
        self._queues: list[Queue] | None = None
        self._offset = 0

    def __repr__(self) -> str:
        return f"ChannelWalk(at={self.at}, done={self.done})"

    def take(self, pattern: str, *, queues: bool) -> int:
        """Take the next portion: channels, and with *queues* also their queues.  Return how many
        names were examined."""
        self.channels = []
        self.queues = []
        names = 0
        shown = 0
        while self.at < len(self._all):
            if names >= _MOST_NAMES or shown >= _MOST_SHOWN:
                return names
            channel = self._all[self.at]
            if self._queues is None:
                names += 1
                if not matches(channel.name, pattern):
                    self.at += 1
                    continue
                self._queues = list(channel.queues.values()) if queues else []
                self._offset = 0
            end = self._offset + _MOST_SHOWN - shown
            part = self._queues[self._offset : end]
            self.channels.append(channel)
            self.queues += part
            shown += len(part) or 1
            self._offset = end
            if end >= len(self._queues):
                self._queues = None
                self.at += 1
        self.done = True
        return names


@final
class ClientWalk(Record):
    """A walk over clients; ``at`` is the number of finished ones."""

    __slots__ = ("at", "done", "_all")

    def __init__(self, sessions: Iterable[Session]) -> None:
        self.at = 0
        self.done = False
        self._all = list(sessions)

    def __repr__(self) -> str:
        return f"ClientWalk(at={self.at}, done={self.done})"

    def take(self) -> list[Session]:
        """The next portion, without ended sessions, branches, and nodes of the cluster."""
        end = self.at + _MOST_SHOWN
        part = self._all[self.at : end]
        self.at = min(end, len(self._all))
        self.done = end >= len(self._all)
        return [each for each in part if each.alive and each.parent is None and not each.node]
