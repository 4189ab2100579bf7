"""The bugs that are planted in what operators see and do by HTTP; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp_server.admin.api.views import View
from tmqp_server.engine.commands import DescribeClient, DisconnectClient
from tmqp_server.engine.effects import CloseSession
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.walks import ChannelWalk, ClientWalk
from tmqp_server.engine.operations.surveying import Surveying

__all__ = ["API_BUGS"]


def _hides_a_queue(original: Any) -> Any:
    def take(self: ChannelWalk, pattern: str, *, queues: bool) -> int:
        names: int = original(self, pattern, queues=queues)
        del self.queues[-1:]
        return names

    return take


def _shows_a_client_again(original: Any) -> Any:
    def take(self: ClientWalk) -> list[Session]:
        found: list[Session] = original(self)
        return found + found[:1]

    return take


def _repeats_a_row(original: Any) -> Any:
    def keys(self: View[Any], start: int, end: int) -> list[Any]:
        found: list[Any] = original(self, max(start - 1, 0), end)
        return found

    return keys


def _describes_who_asks(original: Any) -> Any:
    def describe(self: Surveying, command: DescribeClient, session: Session) -> None:
        command.client_id = session.client_id
        original(self, command, session)

    return describe


def _says_it_is_disconnected(_original: Any) -> Callable[..., None]:
    def disconnect(self: Surveying, command: DisconnectClient, session: Session) -> None:
        there = self._core.clients.get(command.client_id) is not None
        self._core.reply(session, command.request, 0 if there else 404)

    return disconnect


def _leaves_the_connection(original: Any) -> Any:
    def disconnect(self: Surveying, command: DisconnectClient, session: Session) -> None:
        original(self, command, session)
        out = self._core.out
        out[:] = [each for each in out if not isinstance(each, CloseSession)]

    return disconnect


API_BUGS: Final = (
    (
        "survey-hides-one", "the last queue of each portion of a survey is left out",
        ChannelWalk, "take", _hides_a_queue,
    ),
    (
        "survey-shows-again", "a client is in a portion of a survey twice",
        ClientWalk, "take", _shows_a_client_again,
    ),
    (
        "view-repeats", "a page of a list begins with the last row of the page before",
        View, "keys", _repeats_a_row,
    ),
    (
        "describes-who-asks", "who asks about a client is shown himself",
        Surveying, "describe_client", _describes_who_asks,
    ),
    (
        "disconnects-nobody", "a client that an operator disconnects stays",
        Surveying, "disconnect_client", _says_it_is_disconnected,
    ),
    (
        "disconnects-in-part", "the connection of a client that is disconnected stays open",
        Surveying, "disconnect_client", _leaves_the_connection,
    ),
)  # fmt: skip
