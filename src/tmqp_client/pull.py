"""Pulling: the messages of one pull request as an async iterator."""

from __future__ import annotations

import anyio

from tmqp_client._core.pulls import PullUnderWay
from tmqp_client._core.requests import PullRequest
from tmqp_client._port import Port
from tmqp_client.errors import OperationTimeout
from tmqp_client.message import Message

__all__ = ["Pull"]


class _Bell:
    """The listener of a pull's inbox: wakes the task that waits for a message."""

    __slots__ = ("event",)

    def __init__(self) -> None:
        self.event = anyio.Event()

    def arrived(self) -> None:
        self.event.set()

    def ended(self) -> None:
        self.event.set()


class Pull:
    """The messages of one pull request.

    Made by :meth:`tmqp_client.Client.pull`::

        pull = client.pull("orders", 1, count=10)
        async for message in pull:
            async with message:
                ...
        print(pull.reason)

    The request is sent when the loop begins, and only one task may loop.  The program must answer
    each message.  If you leave the loop early, call :meth:`close`: the remaining messages stay
    unanswered, and the queue's delivery handler decides about them as after a timeout.
    """

    def __init__(self, port: Port, request: PullRequest, timeout_s: float) -> None:
        self._port = port
        self._request = request
        self._timeout_s = timeout_s
        self._bell = _Bell()
        self._pull: PullUnderWay | None = None
        self._closed = False
        #: Messages returned.
        self.received = 0

    @property
    def reason(self) -> str:
        """How the pull ended, in the server's word: ``End``, or ``Empty`` if there were no
        messages; an empty string until it ends."""
        return "" if self._pull is None else self._pull.reason

    def close(self) -> None:
        """Stop waiting for messages; messages that arrived and were not read are dropped and
        counted."""
        self._closed = True
        self._bell.event.set()
        if self._pull is not None:
            self._port.machine.abandon_pull(self._pull)
            self._port.session.read_on()

    def __aiter__(self) -> Pull:
        return self

    async def __anext__(self) -> Message:
        """Return the next message.

        :raises PullRefused: if the server refuses the pull; ``reason`` is its word.
        :raises OperationFailed: if the server answers with a result code (404 of the original).
        :raises OperationTimeout: if no message arrived in time (``timeout_s``).
        :raises ConnectionLost: if the connection ended before the pull.
        """
        session = self._port.session
        if self._closed:
            raise StopAsyncIteration
        if self._pull is None:
            self._pull = await session.pull(self._request)
            self._pull.inbox.listener = self._bell
        pull = self._pull
        while not len(pull.inbox):
            if pull.over or self._closed:
                if pull.error is not None:
                    raise pull.error
                raise StopAsyncIteration
            self._bell.event = anyio.Event()
            with anyio.move_on_after(self._timeout_s) as scope:
                await self._bell.event.wait()
            if scope.cancelled_caught and not len(pull.inbox) and not pull.over:
                self.close()
                raise OperationTimeout(pull.asked, pull.request_id, self._timeout_s)
        crowded = pull.inbox.congested
        frame = pull.inbox.take()
        if crowded:
            session.read_on()
        self.received += 1
        return Message(frame, session, session.epoch)
