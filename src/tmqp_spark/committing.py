"""Exactly once: tasks stage rows in transactions, and one commit makes them visible.

Theory of operation.  Each task opens its own transaction and pushes into it; the rows are not
visible.  Then a single commit names the transactions of the successful attempts, and the broker
makes all of them visible together, with the mark that this *epoch* of this *application* is
committed.  A repetition, in part or as a whole, after any failure, has the same result: a committed
epoch accepts nothing more, and rows of transactions that were not named are never visible
(docs/protocol.md, "Transactions").
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from typing import Final

from tmqp import Frame, MessageType
from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_BUSY,
    RESULT_CONFLICT,
    RESULT_LIMIT_EXCEEDED,
    RESULT_NOT_FOUND,
    RESULT_NOT_IMPLEMENTED,
    RESULT_UNACCEPTABLE,
    RESULT_UNAUTHORIZED,
)
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
from tmqp.models import ModelError, TransactionInformation
from tmqp_client.errors import code_words
from tmqp_spark.errors import BrokerRefused, ConnectionBroken, DecodeFailed, SparkError
from tmqp_spark.transport import BrokerLink

__all__ = ["Staging", "TaskKey", "abort", "commit"]

_COMMITTED: Final = "committed"


class TaskKey:
    """Identifies the work of a task: the ``application`` and its ``epoch``, the ``part`` of the
    epoch, and the ``attempt`` at this part; all but the name are numbers from 0 on."""

    __slots__ = ("application", "attempt", "epoch", "part")

    def __init__(self, application: str, epoch: int, part: int, attempt: int) -> None:
        self.application = application
        self.epoch = epoch
        self.part = part
        self.attempt = attempt

    def __repr__(self) -> str:
        return f"{self.application} epoch {self.epoch} part {self.part} attempt {self.attempt}"


class Staging:
    """A task's transaction.

    :param link: the connection for it; no other code may use it meanwhile.
    :param places: the targets of the rows, for errors.
    :param window: the most blocks in flight.

    ``number`` is the number of the transaction, 0 if there is none; ``committed`` is true if the
    epoch is already committed, so that nothing needs to be pushed.
    """

    def __init__(self, link: BrokerLink, key: TaskKey, places: str, window: int) -> None:
        self._link = link
        self._key = key
        self._places = places
        self._window = window
        self._under_way: deque[str] = deque()
        self._largest = 0
        self._staged = 0
        self.number = 0
        self.committed = False

    def open(self, timeout_ms: int) -> None:
        """Begin the transaction.

        :param timeout_ms: the broker aborts it after this time without a push.
        :raises BrokerRefused: and :class:`BrokerUnreachable`.
        """
        key = self._key
        headers = [
            (HEADER_EPOCH, str(key.epoch)),
            (HEADER_PART, str(key.part)),
            (HEADER_ATTEMPT, str(key.attempt)),
            (HEADER_TIMEOUT, str(timeout_ms)),
        ]
        what = f"open transaction of {key}"
        try:
            answer = self._link.ask(OP_OPEN_TRANSACTION, what, key.application, headers)
        except BrokerRefused as error:
            raise _explained(error, _OPEN_ADVICE) from None
        found = _information(answer, what)
        self.number = found.id
        self.committed = found.state == _COMMITTED

    def push(self, block: memoryview) -> None:
        """Stage whole messages; does not wait unless the window is full.

        :raises BrokerRefused: if the broker refuses these or earlier ones.
        :raises SparkError: if the connection is lost; the attempt has then failed, because it is
            unknown what arrived.
        """
        self._largest = max(self._largest, len(block))
        try:
            frame = Frame.build(
                int(MessageType.SERVER),
                self._key.application,
                OP_PUSH_TRANSACTION,
                bytes(block),
                message_id=self._link.next_id(),
                headers=((HEADER_TRANSACTION, str(self.number)),),
                pending_response=True,
            )
            self._link.send([frame.raw], [frame.message_id])
            self._under_way.append(frame.message_id)
            while len(self._under_way) >= self._window:
                self._finish_one()
        except ConnectionBroken as error:
            raise self.lost(error) from None

    def finish(self, count: int) -> None:
        """Wait until everything is staged.

        :param count: the expected number of messages.
        :raises SparkError: as :meth:`push`, or if the broker has another number.
        """
        try:
            while self._under_way:
                self._finish_one()
        except ConnectionBroken as error:
            raise self.lost(error) from None
        if self._staged != count:
            raise SparkError(
                f"{self._link.options.url}: {self._key}: the broker staged {self._staged} messages"
                f" of {count}"
            )

    def give_up(self) -> None:
        """Abort the transaction if the connection is open; otherwise its timeout ends it."""
        if self.number and not self.committed and self._link.is_open:
            abort(self._link, self._key.application, [self.number])

    def _finish_one(self) -> None:
        answer = self._link.finish(self._under_way.popleft())
        if answer.content_type != 0:
            code = answer.content_type
            raise BrokerRefused(
                f"{self._link.options.url}: push into {self._places} ({self._key}):"
                f" {code_words(code)}{_PUSH_ADVICE.get(code, '')}",
                code,
                answer.payload,
            )
        self._staged = _information(answer, "push into transaction").count

    def lost(self, error: ConnectionBroken) -> SparkError:
        """Make the error of an attempt that failed because its connection was lost."""
        text = (
            f"{error}; {self._key} is to be tried again as a whole (spark.task.maxFailures);"
            " nothing of it was written"
        )
        if self._largest > _USUAL_PAYLOAD_BYTES:
            text += (
                f". A piece of {self._largest} bytes was sent: does the broker accept this size "
                "(max_payload_bytes)? Lower batchBytes; a single message must fit with its head"
            )
        return SparkError(text)


def commit(link: BrokerLink, application: str, epoch: int, named: Iterable[tuple[int, int]]) -> int:
    """Make the messages of some transactions visible at once, and mark the epoch as committed.

    Repeating it has no effect; after a lost connection it is repeated automatically.

    :param named: number and message count of each transaction.
    :returns: the number of messages pushed; 0 if the epoch was committed before.
    :raises SparkError: if that is impossible; then nothing is pushed.
    """
    listed = [{"Id": number, "Count": count} for number, count in named]
    headers = ((HEADER_EPOCH, str(epoch)),)
    what = f"commit {application} epoch {epoch} ({len(listed)} parts)"
    payload = json.dumps(listed).encode()
    try:
        answer = link.ask(OP_COMMIT_TRANSACTION, what, application, headers, payload)
    except BrokerRefused as error:
        raise _explained(error, _COMMIT_ADVICE) from None
    return _information(answer, what).count


def abort(link: BrokerLink, application: str, numbers: Iterable[int]) -> None:
    """Abort transactions; unknown ones are ignored.

    If the connection is lost, their timeouts end them.
    """
    for number in numbers:
        headers = ((HEADER_TRANSACTION, str(number)),)
        try:
            link.finish(link.start(OP_ABORT_TRANSACTION, application, headers))
        except (ConnectionBroken, SparkError):
            return


def _information(answer: Frame, what: str) -> TransactionInformation:
    try:
        return TransactionInformation.from_json(answer.payload)
    except ModelError as error:
        raise DecodeFailed(f"{what}: the broker's answer is invalid: {error}") from None


def _explained(error: BrokerRefused, advice: dict[int, str]) -> BrokerRefused:
    text = str(error).partition(";")[0]
    return BrokerRefused(f"{text}{advice.get(error.code, '')}", error.code, error.body)


#: The largest payload that a broker accepts by default.
_USUAL_PAYLOAD_BYTES: Final = 1 << 20
_RIGHTS: Final = "; the token lacks the right to push there"
_OPEN_ADVICE: Final = {
    RESULT_UNAUTHORIZED: _RIGHTS,
    RESULT_NOT_IMPLEMENTED: "; exactly once needs a broker with a data directory (tmqp-server"
    " --data DIR) that is in no cluster; else set guarantee=at_least_once",
    RESULT_BAD_REQUEST: "; is txnAppId valid, and does the broker know transactions? Else set"
    " guarantee=at_least_once",
    RESULT_LIMIT_EXCEEDED: "; the broker's max_transactions are open, or txnTimeout is over its"
    " max_transaction_timeout_ms",
}
_PUSH_ADVICE: Final = {
    RESULT_UNAUTHORIZED: _RIGHTS,
    RESULT_NOT_FOUND: "; the queue does not exist (createQueue=true creates it), or the "
    "transaction ended: the broker was restarted, another server of its group leads, or txnTimeout "
    "passed without a push",
    RESULT_UNACCEPTABLE: "; exactly once needs a durable queue that stores what is pushed, and"
    " whose delivery handler has no say in that: createQueue=true makes one,"
    " guarantee=at_least_once does without",
    RESULT_LIMIT_EXCEEDED: "; the queue or the transaction is full (max_transaction_bytes), or a"
    " message too large: let consumers catch up, or write in smaller batches",
    RESULT_BUSY: "; all transactions together hold max_transactions_bytes on disk or"
    " max_transactions_memory_bytes in memory, or the disk is full: write in smaller batches",
}
_COMMIT_ADVICE: Final = {
    RESULT_UNAUTHORIZED: _RIGHTS,
    RESULT_NOT_FOUND: "; the staged messages are lost, because the broker was restarted, another "
    "server of its group leads, or txnTimeout passed. Nothing was written. Restart the query: it "
    "computes this batch again",
    RESULT_CONFLICT: "; a part is being committed or was given up meanwhile: does another run of"
    " the same query still live? Nothing was written",
    RESULT_LIMIT_EXCEEDED: "; a queue cannot take all of it (message_limit, max_queue_bytes)."
    " Nothing was written. Let consumers catch up, or write in smaller batches",
}
