"""The writer of epochs: a client that pushes in transactions, and what must be on the disk.

Theory of operation.  The writer does one epoch after the other, as a pipeline's sink does: it opens
a transaction for each part, pushes into it, and commits them all.  What it pushes for an epoch is
always the same.  It remembers, as a checkpoint does, only which epoch it is at; so when it does not
know what happened to something, or has crashed, it repeats the commit or does the whole epoch
again, under the same number.  Now and then it commits twice on purpose, or leaves an attempt
behind.

Nobody consumes the queue, so the disk tells the truth: of each epoch all messages are there, each
once, or none; and of those whose commit was answered, all.  It is examined when a life of the
server begins, and at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tmqp.codec import FrameDecoder
from tmqp.constants import TYPE_QUEUE_MESSAGE
from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    HEADER_ATTEMPT,
    HEADER_EPOCH,
    HEADER_PART,
    HEADER_TIMEOUT,
    HEADER_TRANSACTION,
    OP_ABORT_TRANSACTION,
    OP_COMMIT_TRANSACTION,
    OP_OPEN_TRANSACTION,
    OP_PUSH_TRANSACTION,
)
from tmqp.frames import Frame
from tmqp.models import QueueOptions, TransactionInformation
from tmqp.models._json import dump
from tmqp_client._core.pending import Pending
from tmqp_client._core.requests import Request, create_queue
from tmqp_client.config import ClientLimits
from tmqp_client.errors import ClientError
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import ANY_PRIORITY
from tmqp_sim.clients import SimClient
from tmqp_sim.foreign import MARK
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["CHANNEL", "EpochWriter", "complaints", "found_on", "messages_of"]

CHANNEL: Final = "epochs-channel"
_QUEUE_ID: Final = 1
_APPLICATION: Final = "sink"
#: Pause before something is tried again, in seconds.
_RETRY_S: Final = 0.3
#: More than the queue ever has.
_ALL: Final = 1 << 40


def messages_of(epoch: int) -> list[list[str]]:
    """The ids of an epoch's messages, by part."""
    return [
        [f"e{epoch}.{part}.{number}" for number in range((epoch + part) % 4)]
        for part in range(1 + epoch % 3)
    ]


def found_on(store: MemoryStore, key: int) -> list[str]:
    """The ids of what a store has of a queue."""
    ids: list[str] = []
    for stored in store.fetch(key, 0, _ALL, _ALL, _ALL, ANY_PRIORITY):
        (frame,) = FrameDecoder().feed(stored.body.removeprefix(MARK))
        ids.append(frame.message_id)
    return ids


def complaints(ids: Iterable[str], answered: int) -> Iterator[str]:
    """What is wrong with what is there; every epoch up to ``answered`` was told to be there."""
    there: dict[int, list[str]] = {}
    for each in ids:
        there.setdefault(int(each[1:].partition(".")[0]), []).append(each)
    for epoch in range(answered + 1):
        there.setdefault(epoch, [])
    for epoch, got in sorted(there.items()):
        wanted = [each for part in messages_of(epoch) for each in part]
        if sorted(got) == sorted(wanted):
            continue
        if not got and epoch > answered:
            continue
        twice = len(got) - len({*got})
        missing = sorted({*wanted} - {*got})
        yield f"epoch {epoch}: {twice} messages twice, missing {missing}, answered {answered}"


class EpochWriter(SimClient):
    """Writes so many epochs, each exactly once."""

    def __init__(self, simulation: Stage, name: str, limits: ClientLimits, count: int) -> None:
        super().__init__(simulation, name, limits)
        self.count = count
        self.epoch = 0
        #: The last one whose commit was answered.
        self.answered = -1
        self._attempt = 0
        #: What is asked and not answered: the step it belongs to, and the part.
        self._asked: dict[str, tuple[int, str, int]] = {}
        self._transactions: dict[int, TransactionInformation] = {}
        self._left = 0
        #: Raised when it begins again, so that older answers are known.
        self._step = 0

    @property
    def owes(self) -> int:
        """Epochs that are not committed."""
        return self.count - self.epoch

    def begin(self) -> None:
        """Go on where the last connection ended."""
        self._anew()

    def forgets(self) -> None:
        """The checkpoint says which epoch it is at."""
        self._asked.clear()
        self._transactions.clear()

    def lost(self) -> None:
        """Nothing is awaited any more."""
        self._step += 1

    # -- an epoch -------------------------------------------------------------------------------

    def _anew(self) -> None:
        """Do the epoch, from its beginning."""
        self._step += 1
        if not self.usable or not self.owes:
            return
        self._attempt += 1
        self._transactions.clear()
        # Nobody consumes them: they must not fill a small memory for ever.
        options = QueueOptions(durable=True, memory_limit=2)
        request = create_queue(CHANNEL, _QUEUE_ID, options, "push", None, None, None, ())
        self._left = 1
        self._ask("create", 0, request)

    def _open(self) -> None:
        parts = messages_of(self.epoch)
        self._left = len(parts)
        for part in range(len(parts)):
            headers = [
                (HEADER_EPOCH, str(self.epoch)),
                (HEADER_PART, str(part)),
                (HEADER_ATTEMPT, str(self._attempt)),
                (HEADER_TIMEOUT, "5000"),
            ]
            request = Request(OP_OPEN_TRANSACTION, "open", _APPLICATION, tuple(headers))
            self._ask("open", part, request)

    def _push(self) -> None:
        self._left = len(self._transactions)
        for part, ids in enumerate(messages_of(self.epoch)):
            frames = [
                Frame.build(
                    TYPE_QUEUE_MESSAGE, CHANNEL, _QUEUE_ID, b"x", message_id=each, source=self.name
                )
                for each in ids
            ]
            headers = ((HEADER_TRANSACTION, str(self._transactions[part].id)),)
            block = b"".join([frame.raw for frame in frames])
            request = Request(OP_PUSH_TRANSACTION, "push", _APPLICATION, headers, block)
            self._ask("push", part, request)

    def _commit(self) -> None:
        self._left = 1
        self._ask("commit", 0, self._commitment())
        if self.random.random() < 0.25:
            self.world.mark("epoch committed twice at once")
            self._ask("again", 0, self._commitment())

    def _commitment(self) -> Request:
        named: list[object] = [
            {"Id": each.id, "Count": each.count} for each in self._transactions.values()
        ]
        headers = ((HEADER_EPOCH, str(self.epoch)),)
        return Request(OP_COMMIT_TRANSACTION, "commit", _APPLICATION, headers, dump(named))

    def _abort(self) -> None:
        headers = ((HEADER_EPOCH, str(self.epoch)),)
        request = Request(OP_ABORT_TRANSACTION, "abort", _APPLICATION, headers)
        self._ask("abort", 0, request)

    def _ask(self, what: str, part: int, request: Request) -> None:
        if not self.usable:
            return
        try:
            pending = self.machine.request(request, self.world.now)
        except (ClientError, LocalProtocolError):
            self.later(_RETRY_S, self._anew)
            return
        self._asked[pending.message_id] = (self._step, what, part)
        self.flush()

    # -- answers --------------------------------------------------------------------------------

    def settled(self, pending: Pending) -> None:
        """An answer, or none."""
        step, what, part = self._asked.pop(pending.message_id, (-1, "", 0))
        if step != self._step or what in ("", "again", "abort"):
            return
        error = pending.error
        if error is not None and what != "create":
            self._failed(what, str(error))
            return
        if what in ("open", "push") and not self._take(what, part, pending):
            return
        self._left -= 1
        if self._left:
            return
        if what == "create":
            self._open()
        elif what == "open":
            self._push()
        elif what == "push":
            self._commit()
        else:
            self._done()

    def _take(self, what: str, part: int, pending: Pending) -> bool:
        """Note a transaction; False when the epoch is committed."""
        assert pending.answer is not None, "it was answered"
        information = TransactionInformation.from_json(pending.answer.payload)
        if information.state == "committed":
            self.world.mark("epoch was committed before")
            self._done()
            return False
        if what == "push" and information.count != len(messages_of(self.epoch)[part]):
            raise Violation("epochs", f"{information!r} holds another number than was pushed")
        self._transactions[part] = information
        return True

    def _failed(self, what: str, why: str) -> None:
        self.world.note("epoch", self.epoch, what, why)
        self.world.mark("transaction refused or lost")
        self._step += 1
        if what == "commit" and self.random.random() < 0.5:
            self.later(_RETRY_S, self._commit)
            return
        if self.random.random() < 0.3:
            self._abort()
        self.later(_RETRY_S, self._anew)

    def _done(self) -> None:
        self.world.note("epoch", self.epoch, "is committed")
        self.world.mark("epoch committed")
        self._step += 1
        self.answered = self.epoch
        self.epoch += 1
        self.later(self.random.random(), self._anew)
