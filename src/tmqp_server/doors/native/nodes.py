"""Messages between servers of a cluster: forwarded messages, decisions (F63, F133)."""

from __future__ import annotations

from tmqp import models
from tmqp.constants import OP_DECISION_OVER_NODE, TYPE_SERVER
from tmqp.frames import Frame
from tmqp.models import ModelError
from tmqp.names import EXACT_MARK
from tmqp_server.doors.native.answers import forwarded
from tmqp_server.doors.native.clients import RouterEnvelope
from tmqp_server.doors.native.parameters import BadRequestError
from tmqp_server.doors.rewriting import exact_headers, exact_target, without_exact_name
from tmqp_server.engine.commands import (
    Acknowledge,
    ApplyDecision,
    Command,
    PassAnswer,
    Publish,
    Push,
    SendDirect,
)
from tmqp_server.engine.effects import TellNodes

__all__ = ["decision_frame", "decision_of", "passed_on"]


def passed_on(command: Command) -> bytes | None:
    """A client's message for another node: the received bytes with one hop less to live (F11,
    F133).

    None when it has no hop left, and for commands that are not forwarded.
    """
    if isinstance(command, Push):
        frame = command.wire
        if isinstance(frame, Frame):
            frame = without_exact_name(frame)
    elif isinstance(command, (SendDirect, PassAnswer, Acknowledge)):
        frame = command.wire
    elif isinstance(command, Publish) and isinstance(command.envelope, RouterEnvelope):
        frame = command.envelope.frame
    else:
        return None
    if not isinstance(frame, Frame) or frame.ttl <= 1:
        return None
    return forwarded(frame)


def decision_frame(effect: TellNodes) -> Frame:
    """The message that tells another node about a decision."""
    channel = effect.channel.removeprefix(EXACT_MARK)
    body = models.NodeDecision(
        channel=channel,
        queue=effect.queue_id,
        message_id=effect.message_id,
        acknowledged=effect.positive,
    )
    headers = exact_headers(effect.channel)
    return Frame.build(TYPE_SERVER, channel, OP_DECISION_OVER_NODE, body.to_json(), headers=headers)


def decision_of(frame: Frame) -> Command:
    """The decision in another node's message.

    :raises BadRequestError: when the body cannot be read.
    """
    try:
        body = models.NodeDecision.from_json(frame.payload)
    except ModelError as error:
        raise BadRequestError(str(error)) from error
    # The body names the channel; the target may be another spelling, and only shares its mark.
    mark = EXACT_MARK if exact_target(frame).startswith(EXACT_MARK) else ""
    return ApplyDecision(mark + body.channel, body.queue, body.message_id, body.acknowledged)
