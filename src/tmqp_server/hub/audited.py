"""The hub's part of the audit: it knows the client of each request, and the answer."""

from __future__ import annotations

from collections.abc import Sequence

from tmqp.constants import RESULT_BUSY
from tmqp_server.access.auditing import ACTIONS, Auditor, Was
from tmqp_server.access.gate import Gate, Verdict
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    Command,
    Connect,
    Manage,
    RemoveBinding,
    RemoveFeed,
    RemoveRouter,
    SetRouterEnabled,
    UpdateChannel,
    UpdateQueue,
)
from tmqp_server.engine.effects import Effect, Reply
from tmqp_server.hub.looks import Looks
from tmqp_server.hub.outlets import Outlets

__all__ = ["Audited"]


class Audited(Looks):
    """The sessions of a hub, with the audit of their requests; ``Hub`` completes it.

    Attributes: ``auditor``, None without an audit.
    """

    def __init__(self, broker: Broker, outlets: Outlets) -> None:
        super().__init__(broker, outlets)
        self.gate: Gate | None = None
        self.auditor: Auditor | None = None

    def _is_audited(self, command: Command) -> bool:
        return self.auditor is not None and type(command) in ACTIONS

    def _audit(self, number: int, command: Command, now: float) -> Sequence[Effect] | None:
        """Record that a client requests a change; return the answer if that is impossible."""
        auditor = self.auditor
        if auditor is None:
            return None
        client_id = self.broker.surveying.client_id_of(number)
        if auditor.begin(command, self._place(number), now, client_id, self._was(command)):
            return None
        request: object = getattr(command, "request", None)
        session: int = getattr(command, "session")  # noqa: B009 - of one of several classes
        return [] if request is None else [Reply(session, request, RESULT_BUSY)]

    def _was(self, command: Command) -> Was | None:
        """Return the current state of what a command changes or removes; None if it does not
        exist."""
        surveying = self.broker.surveying
        if isinstance(command, UpdateQueue):
            return surveying.options_of(command.channel, command.queue_id)
        if isinstance(command, UpdateChannel):
            return surveying.options_of(command.channel, -1)
        if isinstance(command, (SetRouterEnabled, RemoveRouter)):
            return self.broker.router_of(command.router)
        if isinstance(command, RemoveBinding):
            router = self.broker.router_of(command.router)
            place = -1 if router is None else router.find(command.binding)
            return None if router is None or place < 0 else router.bindings[place].options
        if isinstance(command, RemoveFeed):
            source = command.channel, command.queue_id
            return surveying.feed_of(source, (command.target, command.target_queue))
        return None

    def carried_out(self, command: Manage, code: int) -> None:
        """Record the result of an action on the server."""
        if self.auditor is not None:
            self.auditor.carried_out(command, code)

    def _audit_log_in(self, number: int, connect: Connect, verdict: Verdict, now: float) -> None:
        """Record who logs in."""
        if self.auditor is not None:
            self.auditor.logs_in(connect, verdict.known_as, self._place(number), now)

    def _refuse(self, number: int, command: Command, now: float) -> Sequence[Effect]:
        """Refuse a client's command because of a missing right."""
        gate = self.gate
        assert gate is not None, "nobody else says no"
        if self.auditor is not None:
            self.auditor.refused(command, self._place(number), now)
        return gate.refusal(command)

    def _place(self, number: int) -> tuple[str, str, int]:
        session = self._sessions.get(number)
        door = self._outlets.doors.get(number)
        return ("" if session is None else session.peer, "" if door is None else door.name, number)
