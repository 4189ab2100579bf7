"""The client's methods for transactions (an extension)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from tmqp import models
from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    HEADER_ATTEMPT,
    HEADER_EPOCH,
    HEADER_PART,
    HEADER_TIMEOUT,
    HEADER_TRANSACTION,
    OP_ABORT_TRANSACTION,
    OP_COMMIT_TRANSACTION,
    OP_LIST_TRANSACTIONS,
    OP_OPEN_TRANSACTION,
    OP_PUSH_TRANSACTION,
)
from tmqp.models._json import dump
from tmqp_client._core.arguments import Headers, Payload, payload_bytes, to_pairs
from tmqp_client._core.pending import Pending
from tmqp_client._core.requests import Request, push_frame
from tmqp_client._port import Operations
from tmqp_client.operations.reading import number_text
from tmqp_client.session import Asked

if TYPE_CHECKING:
    from tmqp.models import TransactionInformation

__all__ = ["Transactions"]

#: The most blocks of a push that may be unanswered.
_BLOCKS_AHEAD: Final = 4


class Transactions(Operations):
    """The methods of :class:`tmqp_client.Client` that push messages all together and once, or not
    at all.

    Any number of clients open transactions of an *application* and an *epoch*, a number that
    increases from one commit to the next, and push into them; one client commits the valid ones
    together.  If the epoch is already committed, the server says so and pushes nothing: so a client
    that does not know whether its commit arrived repeats everything under the same epoch::

        transaction = await client.open_transaction("nightly", epoch)
        if transaction.state == "open":
            transaction = await client.push_transaction(transaction, "orders", 1, payloads)
            await client.commit_transaction("nightly", epoch, [transaction])

    The queues must be durable.  A transaction ends with a commit, an abort, a time without a push,
    or when the server stops; it does not end with the connection.  A server without a data
    directory answers 501.
    """

    async def open_transaction(
        self,
        application: str,
        epoch: int,
        *,
        part: int | None = None,
        attempt: int = 0,
        idle_timeout_s: float | None = None,
        timeout_s: float | None = None,
    ) -> TransactionInformation:
        """Begin a transaction; if its state is ``committed``, the epoch was committed before and no
        transaction was begun.

        :param part: the number of this transaction in the epoch: a commit includes one transaction
            of each.  An open transaction with the same part and ``attempt`` is aborted.
        :param idle_timeout_s: it is aborted after this time without a push; the server's own limit
            (ten minutes) if None.
        :raises OperationFailed: when the server refuses: 401, 482 for too many, 501.
        :raises ModelError: when the answer cannot be read.
        """
        headers = [(HEADER_EPOCH, number_text(HEADER_EPOCH, epoch))]
        if part is not None:
            headers.append((HEADER_PART, number_text(HEADER_PART, part)))
            headers.append((HEADER_ATTEMPT, number_text(HEADER_ATTEMPT, attempt)))
        if idle_timeout_s is not None:
            idle_timeout_ms = max(1, int(idle_timeout_s * 1000))
            headers.append((HEADER_TIMEOUT, number_text(HEADER_TIMEOUT, idle_timeout_ms)))
        request = Request(
            OP_OPEN_TRANSACTION, "open transaction of", _application(application), tuple(headers)
        )
        pending = await self._session.ask(request, timeout_s, repeat=part is not None)
        return _information(pending)

    async def push_transaction(
        self,
        transaction: TransactionInformation,
        channel: str,
        queue_id: int,
        payloads: Iterable[Payload],
        *,
        headers: Headers = (),
        high_priority: bool = False,
        block_bytes: int = 524_288,
        timeout_s: float | None = None,
    ) -> TransactionInformation:
        """Push messages into an open transaction, many in one block; they are invisible until the
        commit.

        :param block_bytes: the size of a block, unless one message alone is larger; at most the
            server's limit for a payload.
        :returns: the transaction, with its current numbers.
        :raises OperationFailed: when the server refuses: 401, 404 if the transaction does not exist
            (any more), 406 for a queue that is not durable, 409 for a failed transaction, 482, 503.
            The transaction has then failed, and can only be aborted.
        :raises LocalProtocolError: when a message cannot be encoded; earlier ones are in the
            transaction.
        :raises ModelError: when an answer cannot be read.
        """
        session = self._session
        pairs = tuple(to_pairs(headers))
        sent: deque[Asked] = deque()
        pieces: list[bytes] = []
        size = 0
        try:
            for payload in payloads:
                frame = push_frame(
                    channel,
                    queue_id,
                    payload_bytes(payload),
                    session.new_message_id(),
                    session.client_id,
                    pairs,
                    high_priority,
                    False,
                )
                if pieces and size + len(frame.raw) > block_bytes:
                    if len(sent) >= _BLOCKS_AHEAD:
                        transaction = _information(await session.answer_to(sent.popleft()))
                    sent.append(await session.ask_ahead(_block(transaction, pieces), timeout_s))
                    pieces = []
                    size = 0
                pieces.append(frame.raw)
                size += len(frame.raw)
            if pieces:
                sent.append(await session.ask_ahead(_block(transaction, pieces), timeout_s))
            while sent:
                transaction = _information(await session.answer_to(sent.popleft()))
        finally:
            for asked in sent:
                session.abandon(asked.pending)
        return transaction

    async def commit_transaction(
        self,
        application: str,
        epoch: int,
        transactions: Sequence[TransactionInformation | int] = (),
        *,
        timeout_s: float | None = None,
    ) -> TransactionInformation:
        """Commit these transactions together; when this returns, their messages are on disk.

        If they are given as :meth:`push_transaction` returned them, their numbers of messages must
        not have changed.  For an epoch that is not newer than the last committed one, the answer is
        committed with a count of 0, and nothing is pushed.  The request is repeated automatically
        when the connection is lost.

        :returns: with the state ``committed``, and the number of messages pushed.
        :raises OperationFailed: when the server refuses, with nothing pushed: 401, 404 for a
            transaction that does not exist (any more), 406, 409 for one that cannot be part of
            this, 482 when a queue has no room for all messages, 503 when they cannot be saved now.
        :raises ModelError: when the answer cannot be read.
        """
        named: list[object] = []
        for each in transactions:
            if isinstance(each, models.TransactionInformation):
                named.append({"Id": each.id, "Count": each.count})
            else:
                named.append(each)
        headers = ((HEADER_EPOCH, number_text(HEADER_EPOCH, epoch)),)
        request = Request(
            OP_COMMIT_TRANSACTION,
            "commit transactions of",
            _application(application),
            headers,
            dump(named),
        )
        return _information(await self._session.ask(request, timeout_s, repeat=True))

    async def abort_transaction(
        self,
        application: str,
        epoch: int | None = None,
        *,
        transaction: TransactionInformation | int | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Give up one transaction, or all those of an epoch.

        :raises LocalProtocolError: if neither an epoch nor a transaction is given, or both.
        :raises OperationFailed: when the server refuses: 401, 404, 409 while it is committed.
        """
        if (epoch is None) == (transaction is None):
            raise LocalProtocolError("either an epoch or a transaction is aborted")
        if transaction is not None:
            number = (
                transaction.id
                if isinstance(transaction, models.TransactionInformation)
                else transaction
            )
            headers = ((HEADER_TRANSACTION, number_text(HEADER_TRANSACTION, number)),)
        else:
            assert epoch is not None, "one of both"
            headers = ((HEADER_EPOCH, number_text(HEADER_EPOCH, epoch)),)
        request = Request(
            OP_ABORT_TRANSACTION, "abort transaction of", _application(application), headers
        )
        await self._session.ask(request, timeout_s)

    async def list_transactions(
        self, application_filter: str = "*", *, timeout_s: float | None = None
    ) -> list[TransactionInformation]:
        """Return the open transactions, and the last committed epoch of each application.

        :param application_filter: ``*``, a name, ``x*``, ``*x`` or ``*x*`` (F53).
        :raises OperationFailed: when the server refuses: 401.
        :raises ModelError: when the answer cannot be read.
        """
        request = Request(OP_LIST_TRANSACTIONS, "list transactions", application_filter)
        return await self._list(models.TransactionInformation, request, timeout_s)


def _block(transaction: TransactionInformation, pieces: list[bytes]) -> Request:
    headers = ((HEADER_TRANSACTION, str(transaction.id)),)
    return Request(
        OP_PUSH_TRANSACTION,
        "push into transaction of",
        transaction.application,
        headers,
        b"".join(pieces),
    )


def _information(pending: Pending) -> TransactionInformation:
    assert pending.answer is not None, "an operation is settled by an answer"
    return models.TransactionInformation.from_json(pending.answer.payload)


def _application(name: str) -> str:
    if not name:
        raise LocalProtocolError("the application name is empty")
    return name
