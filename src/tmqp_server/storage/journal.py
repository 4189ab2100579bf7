"""Owns the journal: what the engine wants kept, gathered into the next batch for the store.

Theory of operation.  Effects come in the order in which the engine made them; each becomes a part
of the batch being gathered.  ``take`` hands that batch out and begins the next; ``finished``
tells how it went.  There is one batch out at a time, so what arrives while it is written is the
next one: many messages share one sync, and nobody waits for more to come.

Every ``Append`` and every topology effect has a ticket, and tickets follow one another, so that one
answer serves a batch.  When a batch fails, its messages are void: their producers are told.  All
else (changes, settled messages, notes) is owed to the store and goes first into the next batch;
but for the settling of an older copy by a newer one, which is void with that one.

A message that is appended and settled within one batch is not written, unless its queue retains
what is settled.

It is pure.  What a message looks like on disk is its door's business (:class:`BodyCodec`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, final

from tmqp.blocks import FLAG_DOOR_SHIFT, FLAG_HIGH, FLAG_TRANSIENT, FLAG_WANTS, StoredMessage
from tmqp_server.engine.commands import Synced
from tmqp_server.engine.effects import Append, Erase
from tmqp_server.engine.message import MARK_HIGH, MARK_WANTS, Message
from tmqp_server.engine.reading_effects import ForgetCursor, StoreCursor
from tmqp_server.engine.storage_commands import KeptMessage
from tmqp_server.engine.storage_effects import (
    ClearStored,
    ForgetChannel,
    ForgetQueue,
    ForgetRouter,
    StoreChannel,
    StoredChange,
    StoreQueue,
    StoreRouter,
)
from tmqp_server.storage.port import (
    HIGH_ONLY,
    REGULAR_ONLY,
    DropChannel,
    DropCursor,
    DropQueue,
    DropRouter,
    KeepChannel,
    KeepCursor,
    KeepQueue,
    KeepRouter,
    Note,
    SettleAll,
    StoreBatch,
    TopologyChange,
)
from tmqp_server.storage.topology import (
    channel_to_bytes,
    queue_to_bytes,
    retention_of,
    router_to_bytes,
)

__all__ = ["BodyCodec", "Journal", "Writing"]

_MAX_COUNT = 65_535
_SECOND_US = 1_000_000


class BodyCodec(Protocol):
    """A door as the journal sees it."""

    name: str
    #: Kept with every message; never given to another door.
    number: int

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """What is kept of a message, and where in it the payload begins and how long it is."""

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """The message again: its wire form, id, source, channel as spelt, and size.

        :raises Exception: when it cannot be read.
        """


class Writing:
    """A batch that is being written, and the tickets that it answers: ``first`` and ``count``."""

    __slots__ = ("batch", "count", "first", "replaced")

    def __init__(
        self, batch: StoreBatch, first: int, count: int, replaced: list[tuple[int, int]]
    ) -> None:
        self.batch = batch
        self.first = first
        self.count = count
        #: Older copies that are settled with their newer ones: key and sequence.
        self.replaced = replaced


@final
class Journal:
    """Gathers what is to be kept.

    :param doors: all protocols whose messages may be kept.
    :param wall_clock_offset_s: seconds to add to the engine's time for Unix time.
    """

    def __init__(self, doors: Sequence[BodyCodec], wall_clock_offset_s: float = 0.0) -> None:
        self._by_name = {door.name: door for door in doors}
        self._by_number = {door.number: door for door in doors}
        self._flags_of = {door.name: door.number << FLAG_DOOR_SHIFT for door in doors}
        self._offset_s = wall_clock_offset_s
        self._retained: dict[int, None] = {}
        self._changes: list[TopologyChange] = []
        self._appended: dict[int, dict[int, StoredMessage]] = {}
        self._settled: dict[int, list[int]] = {}
        self._replaced: list[tuple[int, int]] = []
        self._notes: list[Note] = []
        self._first = 0
        self._count = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write and nobody to answer."""
        return not (self._count or self._settled or self._changes or self._notes)

    @property
    def is_urgent(self) -> bool:
        """Whether there is more to write than messages that are settled."""
        return bool(self._count or self._changes or self._notes)

    def retains(self, key: int, is_so: bool) -> None:
        """Whether a queue keeps settled messages for readers."""
        if is_so:
            self._retained[key] = None
        else:
            self._retained.pop(key, None)

    # -- what the engine says -------------------------------------------------------------------

    def append(self, effect: Append, now: float) -> None:
        """Have a message kept."""
        message = effect.message
        name = message.producer.door
        body, payload_offset, payload_size = self._by_name[name].stored(message)
        marks = message.marks
        flags = self._flags_of[name]
        if marks & MARK_HIGH:
            flags |= FLAG_HIGH
        if marks & MARK_WANTS:
            flags |= FLAG_WANTS
        if effect.transient:
            flags |= FLAG_TRANSIENT
        rare = message.rare
        expires_us = due_us = put_backs = hops = 0
        if rare is not None:
            put_backs = min(rare.put_backs, _MAX_COUNT)
            hops = min(rare.hops, _MAX_COUNT)
            if rare.expires_at > 0.0:
                expires_us = self._unix_us(rare.expires_at)
            if rare.due_at > now:
                due_us = self._unix_us(rare.due_at)
        kept = StoredMessage(
            effect.sequence,
            self._unix_us(now),
            expires_us,
            due_us,
            flags,
            min(message.attempts, _MAX_COUNT),
            put_backs,
            hops,
            payload_offset,
            payload_size,
            body,
        )
        appended = self._appended.get(effect.key)
        if appended is None:
            self._appended[effect.key] = {effect.sequence: kept}
        else:
            appended[effect.sequence] = kept
        if effect.old:
            self._replaced.append((effect.old_key, effect.old))
        self._ticket(effect.ticket)

    def erase(self, effect: Erase) -> None:
        """A message is settled."""
        key = effect.key
        if key not in self._retained:
            appended = self._appended.get(key)
            if appended is not None and appended.pop(effect.sequence, None) is not None:
                return
        settled = self._settled.get(key)
        if settled is None:
            self._settled[key] = [effect.sequence]
        else:
            settled.append(effect.sequence)

    def change(self, effect: StoredChange) -> None:
        """The topology has changed, or a part of a queue is settled."""
        if isinstance(effect, StoreChannel):
            self._changes.append(KeepChannel(effect.channel, channel_to_bytes(effect.options)))
        elif isinstance(effect, ForgetChannel):
            self._changes.append(DropChannel(effect.channel))
        elif isinstance(effect, StoreQueue):
            retention = retention_of(effect.options)
            self.retains(effect.key, effect.options.retains())
            options = queue_to_bytes(effect.options, effect.suspect)
            self._changes.append(
                KeepQueue(effect.key, effect.channel, effect.queue_id, options, retention)
            )
        elif isinstance(effect, ForgetQueue):
            self._appended.pop(effect.key, None)
            self._settled.pop(effect.key, None)
            self.retains(effect.key, False)
            self._changes.append(DropQueue(effect.key))
        elif isinstance(effect, StoreRouter):
            value = router_to_bytes(effect.method, effect.bindings, effect.enabled)
            self._changes.append(KeepRouter(effect.router, value))
        elif isinstance(effect, ForgetRouter):
            self._changes.append(DropRouter(effect.router))
        elif isinstance(effect, StoreCursor):
            self._changes.append(KeepCursor(effect.cursor, effect.key, effect.sequence))
        elif isinstance(effect, ForgetCursor):
            self._changes.append(DropCursor(effect.cursor, effect.key))
        else:
            assert isinstance(effect, ClearStored)
            self._clear(effect)
        if effect.ticket:
            self._ticket(effect.ticket)

    def _clear(self, effect: ClearStored) -> None:
        """Changes are made before messages are appended: those of this batch are taken out here."""
        wanted = FLAG_HIGH if effect.high_priority else 0
        for sequence, kept in list(self._appended.get(effect.key, {}).items()):
            if effect.first <= sequence <= effect.last and kept.flags & FLAG_HIGH == wanted:
                self.erase(Erase(0, effect.key, sequence))
        priority = HIGH_ONLY if effect.high_priority else REGULAR_ONLY
        self._changes.append(SettleAll(effect.key, effect.last, priority, effect.first))

    def notes(self, notes: Iterable[tuple[int, int, int, int]]) -> None:
        """Take down what became of messages: key, sequence, attempts and put-backs of each."""
        for key, sequence, attempts, put_backs in notes:
            appended = self._appended.get(key, {}).get(sequence)
            if appended is not None:
                appended.attempts = min(attempts, _MAX_COUNT)
                appended.put_backs = min(put_backs, _MAX_COUNT)
                continue
            note = Note(key, sequence, min(attempts, _MAX_COUNT), min(put_backs, _MAX_COUNT))
            self._notes.append(note)

    def _ticket(self, ticket: int) -> None:
        if self._count == 0:
            self._first = ticket
        assert ticket == self._first + self._count, "tickets follow one another"
        self._count += 1

    # -- what the store says --------------------------------------------------------------------

    def take(self) -> Writing:
        """The batch gathered so far; the next one begins."""
        batch = StoreBatch()
        batch.changes = self._changes
        for key, appended in self._appended.items():
            if appended:
                batch.appended[key] = list(appended.values())
        batch.settled = self._settled
        for key, sequence in self._replaced:
            batch.settled.setdefault(key, []).append(sequence)
        batch.notes = self._notes
        writing = Writing(batch, self._first, self._count, self._replaced)
        self._changes = []
        self._appended = {}
        self._settled = {}
        self._replaced = []
        self._notes = []
        self._count = 0
        return writing

    def finished(self, writing: Writing, ok: bool) -> Synced | None:
        """A batch has been written, or not; returns the answer to the engine, if it waits."""
        if not ok:
            self._owe(writing)
        if not writing.count:
            return None
        return Synced(writing.first, ok, writing.count)

    def _owe(self, writing: Writing) -> None:
        batch = writing.batch
        self._changes = batch.changes + self._changes
        self._notes = batch.notes + self._notes
        for key, sequence in writing.replaced:
            batch.settled[key].remove(sequence)
        void = {key: {each.sequence for each in batch.appended[key]} for key in batch.appended}
        for key, sequences in batch.settled.items():
            gone = void.get(key)
            owed = [each for each in sequences if gone is None or each not in gone]
            if owed:
                self._settled[key] = owed + self._settled.get(key, [])

    def kept(self, stored: StoredMessage, now: float) -> KeptMessage:
        """A message that comes back.

        :raises Exception: when its door cannot read it.
        """
        flags = stored.flags
        door = self._by_number[(flags >> FLAG_DOOR_SHIFT) & 0xFF]
        wire, message_id, source, channel, size = door.restored(stored.body)
        offset_s = self._offset_s
        return KeptMessage(
            stored.sequence,
            message_id,
            source,
            door.name,
            None if stored.hops else channel,
            size,
            wire,
            flags & FLAG_WANTS != 0,
            flags & FLAG_TRANSIENT != 0,
            stored.attempts,
            stored.put_backs,
            stored.hops,
            stored.expires_us / _SECOND_US - offset_s if stored.expires_us else 0.0,
            stored.due_us / _SECOND_US - offset_s if stored.due_us else 0.0,
        )

    def _unix_us(self, at: float) -> int:
        return int((at + self._offset_s) * _SECOND_US)
