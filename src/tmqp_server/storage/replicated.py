"""The use of the log by a replicated store, independent of where it keeps messages.

Theory of operation.  A follower applies the writes of others (:meth:`ReplicatedWrites.take`); a
leader writes (:meth:`prepare`, then each entry is appended, then :meth:`commit`). A batch is kept
here only when its last entry is in the log: so if it cannot be kept locally after that point, this
is not a failed write but the end of this server's role.

All changes come in the order of the log, with the time at which the leader wrote them, and from the
same bytes.  So all stores of a group are the same at the same number, except for transient
messages, which only their leader has.
"""

from __future__ import annotations

from collections.abc import Iterable

from tmqp_server.storage.log import MOST_ENTRY_BYTES, LogEntry
from tmqp_server.storage.logged import (
    BEGIN,
    END,
    Logged,
    LogReader,
    encode_begin,
    encode_end,
    encode_logged,
    payload_of,
)
from tmqp_server.storage.port import StoreBatch, StoreError

__all__ = ["GroupError", "Keeping", "ReplicatedWrites"]


class GroupError(StoreError):
    """The log belongs to another group of servers than this store."""


class Keeping:
    """Keeps what a replicated store gets from the log."""

    def identity(self) -> str:
        """The id of the store."""
        raise NotImplementedError

    def adopt(self, identity: str) -> None:
        """Take over the group's id; only when the store is empty."""
        raise NotImplementedError

    def keep(self, batch: StoreBatch, used: dict[int, int], now_us: int) -> None:
        """Keep a batch that is in the log.

        :param used: for some queues, the last used sequence; sequences are never reused.
        """
        raise NotImplementedError


class ReplicatedWrites:
    """The position of a store in its log.

    :param keeping: keeps the content of the log.
    :param number: the last entry of the log that is kept already.
    :param epoch: the epoch of this entry.
    :param most_entry_bytes: the largest size of an entry.

    Attributes: ``ended``, whether the last leader stopped cleanly and nobody leads since;
    ``clean``, whether that was so when the newest leader began; ``now_us``, the newest time in the
    log.
    """

    def __init__(
        self,
        keeping: Keeping,
        number: int,
        epoch: int,
        most_entry_bytes: int = MOST_ENTRY_BYTES,
    ) -> None:
        self.clean = False
        self.ended = number == 0
        self._most_bytes = most_entry_bytes
        self._prepared_us = 0
        self.now_us = 0
        self._keeping = keeping
        self._reader = LogReader(number, epoch)

    @property
    def number(self) -> int:
        """The last entry that was read or written."""
        return self._reader.number

    @property
    def applied(self) -> int:
        """The last entry that is kept, as are all entries before it."""
        return self._reader.applied

    @property
    def epoch(self) -> int:
        """The newest epoch."""
        return self._reader.epoch

    # -- following ------------------------------------------------------------------------------

    def take(self, entries: Iterable[LogEntry]) -> None:
        """Take entries of the log, in order.

        :raises DamageError: when an entry is damaged, or not the next one.
        :raises GroupError: when the entries are of another group.
        :raises StoreError: when they cannot be kept.
        """
        for entry in entries:
            is_first = self._reader.number == 0
            logged = self._reader.read(entry)
            if logged is not None:
                self._take(logged, is_first)

    def _take(self, logged: Logged, is_first: bool) -> None:
        self.now_us = max(self.now_us, logged.now_us)
        if logged.kind == BEGIN:
            self._belong(logged.store, is_first)
            self.clean, self.ended = self.ended, False
        elif logged.kind == END:
            self.ended = True
        else:
            self._keeping.keep(logged.batch, logged.used, self.now_us)

    def _belong(self, identity: str, is_first: bool) -> None:
        own = self._keeping.identity()
        if is_first:
            self._keeping.adopt(identity)
        elif own != identity:
            raise GroupError(f"the log is that of the store {identity}, and {own} is kept here")

    # -- leading --------------------------------------------------------------------------------

    def begin(self, epoch: int, node: str, address: str, now_us: int) -> LogEntry:
        """The entry with which this server begins to lead; after it is in the log, take it like any
        other.
        """
        number = self._reader.number + 1
        identity = self._keeping.identity()
        return encode_begin(number, epoch, self._time(now_us), node, address, identity)

    def prepare(self, batch: StoreBatch, now_us: int) -> list[LogEntry]:
        """Encode the entries of a batch, to be appended in order; nothing is kept yet.

        :raises StoreError: when the batch can never be appended.
        """
        try:
            payload = payload_of(batch)
        except (ValueError, OverflowError) as error:
            raise StoreError(f"a message cannot be kept: {error}") from error
        reader = self._reader
        self._prepared_us = self._time(now_us)
        return encode_logged(
            reader.number + 1, reader.epoch, self._prepared_us, payload, self._most_bytes
        )

    def commit(self, batch: StoreBatch, entries: list[LogEntry]) -> None:
        """Keep the batch that was prepared last, whose entries are all in the log.

        :raises StoreError: when that fails: this server cannot continue.
        """
        self._reader.wrote(entries[-1].number)
        self.now_us = self._prepared_us
        self._keeping.keep(batch, {}, self.now_us)

    def end(self, now_us: int) -> LogEntry:
        """The entry with which this server stops cleanly."""
        return encode_end(self._reader.number + 1, self._reader.epoch, self._time(now_us))

    def _time(self, now_us: int) -> int:
        """The time of a write; it never decreases, whatever the clocks of leaders show.

        ``now_us`` becomes this time only when the write is in the log: until then, other servers
        may never see it.
        """
        return max(self.now_us, now_us)
