"""The door of the WebSocket subprotocol ``tmqp.json.v1``, inside the door of HTTP."""

from __future__ import annotations

from typing import final

from tmqp.frames import Frame
from tmqp_server.doors.facts import model_of_event
from tmqp_server.doors.http.bodies import HttpBodies
from tmqp_server.doors.http.contents import item_of
from tmqp_server.doors.http.json_requests import JSON_V1
from tmqp_server.doors.http.json_session import JsonSession, line
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.port import IdSource, QueuesOnly
from tmqp_server.doors.rewriting import frame_for_node, without_exact_name
from tmqp_server.engine.commands import Command, Push
from tmqp_server.engine.effects import Deliver, Inform
from tmqp_server.engine.events import event_name

__all__ = ["JsonDoor", "push_for_node"]


def push_for_node(command: Command, letters: Letters, door: str) -> bytes | None:
    """A published message for another server of the cluster, with one hop less to live; None for
    other commands, which are not forwarded.

    :param door: the name of the message's door.
    """
    if not isinstance(command, Push):
        return None
    wire = command.wire
    if isinstance(wire, Frame):
        frame = without_exact_name(wire)
    else:
        frame = frame_for_node(letters.of_wire(wire, door), command)
    return frame.forwarded(frame.first_acquirer, frame.pending_acknowledge, frame.ttl - 1)


@final
class JsonDoor(QueuesOnly):
    """Messages as JSON.  The client has logged in before its session begins.

    :param door_name: the name of the door to which the messages of its clients belong.
    """

    def __init__(
        self, new_id: IdSource, limits: HttpLimits, letters: Letters, door_name: str
    ) -> None:
        super().__init__(HttpBodies())
        self.name = JSON_V1
        self._new_id = new_id
        self._limits = limits
        self._letters = letters
        self._door_name = door_name

    def open_for(self, session: int, client_id: str) -> JsonSession:
        """Open the session of a client that has logged in."""
        return JsonSession(self._limits, self._new_id, self._letters, session, client_id)

    def open(self, session: int, now: float) -> JsonSession:
        """Never called: a WebSocket begins with an HTTP request; see :meth:`open_for`."""
        raise AssertionError(f"session {session} has not logged in")

    def encode_delivery(self, effect: Deliver) -> bytes:
        """A message with what its consumer needs to acknowledge it: channel, queue and id."""
        message = effect.message
        item = item_of(
            message, self._letters, hides_source=effect.hide_source, attempt=effect.attempt
        )
        return line(
            "message",
            channel=effect.channel,
            queue=message.queue_id,
            ack=effect.wants_acknowledge,
            **item,
        )

    def encode_event(self, effect: Inform) -> bytes:
        """An event: its name and its body."""
        model = model_of_event(effect.fact, effect.event)
        return line("event", event=event_name(effect.event), about=model.to_object())

    def encode_for_node(self, command: Command) -> bytes | None:
        """A published message; other commands are not forwarded."""
        return push_for_node(command, self._letters, self._door_name)
