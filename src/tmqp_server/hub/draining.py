"""The commands that a draining server refuses: new clients and pushes.

Acknowledgements, requests for information and the rest of earlier work are carried out as usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp.constants import RESULT_BUSY
from tmqp_server.engine.commands import (
    Batch,
    Command,
    Connect,
    MoveMessage,
    OpenTransaction,
    Publish,
    Push,
    PushTransaction,
    SendDirect,
)
from tmqp_server.engine.delivery.intake import refused_push
from tmqp_server.engine.effects import Effect, Refuse, Reply

__all__ = ["DRAINING", "refused_by_drain"]

#: The reason of the negative confirm of a push.
DRAINING: Final = "draining"


def refused_by_drain(command: Command) -> Sequence[Effect] | None:
    """Return the answer to a command that a draining server refuses; None for one that it carries
    out.  Runs are passed in one push at a time."""
    if isinstance(command, Push):
        if _cannot_notify_producer(command):
            return None
        return refused_push(command, RESULT_BUSY, DRAINING)
    if isinstance(command, Connect):
        return [Refuse(command.session, command.request, RESULT_BUSY, command.client_id)]
    if isinstance(command, Batch) and any(isinstance(each, Push) for each in command.commands):
        return [Reply(command.session, command.request, RESULT_BUSY)]
    if isinstance(command, (MoveMessage, OpenTransaction, Publish, PushTransaction, SendDirect)):
        return [Reply(command.session, command.request, RESULT_BUSY)]
    return None


def _cannot_notify_producer(push: Push) -> bool:
    """Return whether the producer cannot be notified of a refusal: messages of a PUSH socket of
    ZeroMQ would be lost (seed 14921)."""
    extras = push.extras
    return not push.wants_confirm and extras is not None and extras.wait_ms < 0
