"""The port through which operations and iterators reach their client's session."""

from __future__ import annotations

from typing import Protocol, TypeVar

from tmqp.models import Model, parse_list
from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.requests import Request
from tmqp_client.binding import Converter
from tmqp_client.errors import ClientClosed
from tmqp_client.session import Session

__all__ = ["OpenIterator", "Operations", "Port"]

_M = TypeVar("_M", bound=Model)


class OpenIterator(Protocol):
    """An iterator that takes messages until it is closed."""

    def _shut(self, error: BaseException | None) -> bool:
        """Stop; ``error`` is the exception that ended the client's block, if any."""


class Port:
    """The part of the client that operations and iterators use.

    Attributes: ``machine``; ``joined``, the channels that the program joined by itself (closing a
    consumer does not leave them); ``iterators``, those that are open; ``opened``, whether the first
    connection was made; ``converter``, None for the default.
    """

    __slots__ = ("_session", "converter", "iterators", "joined", "machine", "opened")

    def __init__(
        self, machine: ClientMachine, session: Session, converter: Converter | None
    ) -> None:
        self.machine = machine
        self.joined: set[str] = set()
        self.iterators: dict[OpenIterator, None] = {}
        self.converter = converter
        self.opened = False
        self._session = session

    @property
    def session(self) -> Session:
        """The session.

        :raises ClientClosed: if the client has not connected yet.
        """
        if not self.opened:
            raise ClientClosed("the client is not connected: use it in 'async with'")
        return self._session

    def shut(self, error: BaseException | None) -> None:
        """Close every iterator; ``error`` is the exception that ended the client's block, if
        any."""
        for iterator in list(self.iterators):
            iterator._shut(error)


class Operations:
    """Base class of the operations of one subject; :class:`tmqp_client.Client` inherits from all of
    them."""

    def __init__(self, port: Port) -> None:
        self._port = port

    @property
    def _session(self) -> Session:
        return self._port.session

    async def _list(self, model: type[_M], request: Request, timeout_s: float | None) -> list[_M]:
        return parse_list(model, await self._answer(request, timeout_s))

    async def _answer(self, request: Request, timeout_s: float | None) -> bytes:
        answer = (await self._session.ask(request, timeout_s)).answer
        assert answer is not None, "an operation is settled by an answer"
        return answer.payload
