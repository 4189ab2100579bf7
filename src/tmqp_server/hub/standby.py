"""The commands that a standby carries out: it refuses clients, and shows operators its state.

Another server of its group leads, or none does yet; a client that connects gets the leader's
address.  Operators may connect, to see the server's state and to stop it; their commands about
queues are refused, because the server has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp.constants import RESULT_MISDIRECTED_REQUEST
from tmqp_server.engine.commands import (
    AskRight,
    Command,
    Configure,
    Connect,
    DescribeServer,
    Disconnect,
    Drain,
    ListNodes,
    Manage,
    Push,
    SeeAudit,
    SeeMetrics,
    SeeServer,
)
from tmqp_server.engine.delivery.intake import refused_push
from tmqp_server.engine.effects import Effect, Refuse, Reply

__all__ = ["STANDING_BY", "refused_by_standby"]

#: The reason of the negative confirm of a push.
STANDING_BY: Final = "standby"

_OF_OPERATORS: Final[frozenset[type[Command]]] = frozenset(
    {
        AskRight,
        Configure,
        Connect,
        DescribeServer,
        Disconnect,
        ListNodes,
        Manage,
        SeeAudit,
        SeeMetrics,
        SeeServer,
    }
)


def refused_by_standby(command: Command, operator: bool, address: str) -> Sequence[Effect] | None:
    """Return the answer to a command that a standby refuses; None for one that it carries out.
    Runs are passed in one push at a time.

    :param operator: whether the client is an operator.
    :param address: the leader's address for clients; empty without a leader.
    """
    if operator and type(command) in _OF_OPERATORS:
        return None
    if operator and isinstance(command, Drain) and command.stops:
        return None
    if isinstance(command, Connect):
        return [
            Refuse(
                command.session,
                command.request,
                RESULT_MISDIRECTED_REQUEST,
                command.client_id,
                address,
            )
        ]
    if isinstance(command, Push):
        return refused_push(command, RESULT_MISDIRECTED_REQUEST, STANDING_BY)
    request: object = getattr(command, "request", None)
    if request is None:
        return []
    session: int = getattr(command, "session")  # noqa: B009 - of one of several classes
    return [Reply(session, request, RESULT_MISDIRECTED_REQUEST)]
