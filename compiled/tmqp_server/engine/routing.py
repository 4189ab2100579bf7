"""Owns routers and their bindings: keeping them, and what becomes of a message for one.

Theory of operation.  A router is a list of bindings, the highest priority first.  Its method says
how many get a message: all of them (distribute), one in turn (round robin), or the first one that
works.  A binding *works* when somebody took the message: a queue that exists and has room, a client
that is there and reads.  Round robin passes over bindings that do not work, and the next message's
turn begins behind the one that did (F122).

Everything happens in the step that brings the message; nothing is kept here.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_LIMIT_EXCEEDED,
    RESULT_NOT_FOUND,
    RESULT_OK,
)
from tmqp_server.engine.channels import ChannelTable, is_channel_name, matches
from tmqp_server.engine.commands import Command
from tmqp_server.engine.core import Core
from tmqp_server.engine.direct import Direct
from tmqp_server.engine.effects import Forward, Reply
from tmqp_server.engine.intake import Intake
from tmqp_server.engine.queues import Queue
from tmqp_server.engine.router_commands import (
    ASKS_NOTHING,
    TO_CLIENTS,
    TO_QUEUE,
    AddBinding,
    BindingOptions,
    CreateRouter,
    Envelope,
    ListBindings,
    ListRouters,
    Publish,
    RemoveBinding,
    RemoveRouter,
)
from tmqp_server.engine.sessions import Session
from tmqp_server.engine.snapshots import RouterSnapshot

__all__ = ["Binding", "Router", "Routing"]

_ROUND_ROBIN: Final = 1
_ONLY_FIRST: Final = 2


class Binding:
    """One binding.

    ``turn`` counts what a direct one with the method round robin has sent; ``queues`` is what a tag
    binding found when the channels were at ``generation``.
    """

    __slots__ = ("generation", "options", "queues", "turn")

    def __init__(self, options: BindingOptions) -> None:
        self.options = options
        self.turn = 0
        self.generation = -1
        self.queues: list[Queue] = []


class Router:
    """One router; ``turn`` is the place in ``bindings`` where round robin goes on."""

    __slots__ = ("bindings", "method", "name", "turn")

    def __init__(self, name: str, method: int) -> None:
        self.name = name
        self.method = method
        self.bindings: list[Binding] = []
        self.turn = 0

    def find(self, name: str) -> int:
        """The place of a binding; -1 when there is none of that name."""
        for place, binding in enumerate(self.bindings):
            if binding.options.name == name:
                return place
        return -1

    def add(self, binding: Binding) -> None:
        """Put a binding behind all of its priority or a higher one."""
        place = 0
        for other in self.bindings:
            if other.options.priority < binding.options.priority:
                break
            place += 1
        self.bindings.insert(place, binding)
        self.turn = 0

    def remove(self, place: int) -> None:
        """Take a binding out."""
        del self.bindings[place]
        self.turn = 0


class Routing:
    """The routers of one broker."""

    __slots__ = ("_core", "_direct", "_intake", "_routers")

    def __init__(self, core: Core, direct: Direct, intake: Intake) -> None:
        self._core = core
        self._direct = direct
        self._intake = intake
        #: By name, in the order of creation; the case counts (F46).
        self._routers: dict[str, Router] = {}

    def _reply(self, session: Session, request: object, code: int, body: object = None) -> None:
        if request is not None:
            self._core.out.append(Reply(session.number, request, code, body))

    # --- Operations ------------------------------------------------------------------------------

    def create_router(self, command: Command, session: Session) -> None:
        """Create a router (F60)."""
        assert isinstance(command, CreateRouter)
        limits = self._core.limits
        code = RESULT_OK
        if command.router in self._routers:
            pass
        elif not is_channel_name(command.router, limits.max_name_bytes):
            code = RESULT_BAD_REQUEST
        elif len(self._routers) >= limits.max_routers:
            code = RESULT_LIMIT_EXCEEDED
        else:
            self._routers[command.router] = Router(command.router, command.method)
        self._reply(session, command.request, code)

    def remove_router(self, command: Command, session: Session) -> None:
        """Remove a router (F60)."""
        assert isinstance(command, RemoveRouter)
        self._routers.pop(command.router, None)
        self._reply(session, command.request, RESULT_OK)

    def list_routers(self, command: Command, session: Session) -> None:
        """All routers (F60)."""
        assert isinstance(command, ListRouters)
        body: list[RouterSnapshot] = []
        for router in self._routers.values():
            body.append(RouterSnapshot(router.name, router.method))
        self._reply(session, command.request, RESULT_OK, body)

    def add_binding(self, command: Command, session: Session) -> None:
        """Add a binding (F60, F61)."""
        assert isinstance(command, AddBinding)
        self._reply(session, command.request, self._add_binding(command))

    def _add_binding(self, command: AddBinding) -> int:
        limits = self._core.limits
        router = self._routers.get(command.router)
        options = command.binding
        if router is None:
            return RESULT_NOT_FOUND
        if not is_channel_name(options.name, limits.max_name_bytes) or not options.target:
            return RESULT_BAD_REQUEST
        if options.kind == TO_QUEUE and not is_channel_name(options.target, limits.max_name_bytes):
            return RESULT_BAD_REQUEST
        if len(options.target.encode("utf-8", "surrogatepass")) > limits.max_name_bytes:
            return RESULT_BAD_REQUEST
        if router.find(options.name) >= 0:
            return RESULT_OK
        if len(router.bindings) >= limits.max_bindings_per_router:
            return RESULT_LIMIT_EXCEEDED
        router.add(Binding(options))
        return RESULT_OK

    def remove_binding(self, command: Command, session: Session) -> None:
        """Remove a binding (F60)."""
        assert isinstance(command, RemoveBinding)
        router = self._routers.get(command.router)
        place = -1 if router is None else router.find(command.binding)
        code = RESULT_NOT_FOUND
        if router is not None and place >= 0:
            router.remove(place)
            code = RESULT_OK
        self._reply(session, command.request, code)

    def list_bindings(self, command: Command, session: Session) -> None:
        """The bindings of a router (F60)."""
        assert isinstance(command, ListBindings)
        router = self._routers.get(command.router)
        if router is None:
            self._reply(session, command.request, RESULT_NOT_FOUND)
            return
        body: list[BindingOptions] = []
        for binding in router.bindings:
            body.append(binding.options)
        self._reply(session, command.request, RESULT_OK, body)

    # --- Messages --------------------------------------------------------------------------------

    def publish(self, command: Command, session: Session) -> None:
        """Give a message to a router, and say what came of it (F123)."""
        assert isinstance(command, Publish)
        if command.size > self._core.limits.max_message_bytes:
            self._reply(session, command.request, RESULT_LIMIT_EXCEEDED)
            return
        router = self._routers.get(command.router)
        took: list[Binding] = []
        if router is not None:
            took = self._route(router, command.envelope, session)
        if not took:
            self._reply(session, command.request, RESULT_NOT_FOUND)
            return
        for binding in took:
            if binding.options.interaction != ASKS_NOTHING:
                return
        self._reply(session, command.request, RESULT_OK)

    def _route(self, router: Router, envelope: Envelope, session: Session) -> list[Binding]:
        """Offer a message to the bindings as the method says; those that took it."""
        took: list[Binding] = []
        count = len(router.bindings)
        start = router.turn if router.method == _ROUND_ROBIN else 0
        for step in range(count):
            place = (start + step) % count
            binding = router.bindings[place]
            if not self._offer(binding, envelope, session):
                continue
            took.append(binding)
            if router.method == _ROUND_ROBIN:
                router.turn = (place + 1) % count
                break
            if router.method == _ONLY_FIRST:
                break
        return took

    def _offer(self, binding: Binding, envelope: Envelope, session: Session) -> bool:
        options = binding.options
        if options.kind == TO_CLIENTS:
            return self._to_clients(binding, envelope)
        if options.kind == TO_QUEUE:
            push = envelope.as_push(options.target, options.content_type, options.interaction)
            return self._intake.route(push, session)
        return self._to_tag(binding, envelope, session)

    def _to_clients(self, binding: Binding, envelope: Envelope) -> bool:
        """Send to all clients that fit, to the first, or to one in turn (F125)."""
        options = binding.options
        direct = envelope.as_direct(options.target, options.content_type, options.interaction)
        receivers = self._direct.receivers(direct.by, direct.who)
        if not receivers:
            return False
        if options.method == _ROUND_ROBIN:
            receivers = [receivers[binding.turn % len(receivers)]]
            binding.turn += 1
        elif options.method == _ONLY_FIRST:
            receivers = receivers[:1]
        self._core.out.append(Forward(receivers, direct.wire))
        return True

    def _to_tag(self, binding: Binding, envelope: Envelope, session: Session) -> bool:
        """Push into every queue whose tag fits, in the order of creation (F126)."""
        options = binding.options
        channels = self._core.channels
        if binding.generation != channels.generation:
            binding.generation = channels.generation
            binding.queues = _tagged(channels, options.target)
        took = False
        for queue in binding.queues:
            push = envelope.as_push(queue.channel_name, queue.queue_id, options.interaction)
            if self._intake.route(push, session):
                took = True
        return took


def _tagged(channels: ChannelTable, filter: str) -> list[Queue]:
    """The queues whose tag passes the filter (F53); one without a tag passes none."""
    found: list[Queue] = []
    for channel in channels.by_key.values():
        for queue in channel.queues.values():
            tag = queue.options.tag
            if tag and matches(tag, filter):
                found.append(queue)
    return found
