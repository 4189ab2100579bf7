"""How the model passes on what clients say to each other, and routes (F113-F126)."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.tmqp_server.engine.model.looking import Looking
from tests.tmqp_server.engine.model.things import Client, Letter, Line, Question
from tmqp_server.engine import commands
from tmqp_server.engine.books import binding_bytes, question_bytes, router_bytes
from tmqp_server.engine.options import (
    ASKS_RESPONSE,
    TO_QUEUE,
    TO_TAG,
    BindingOptions,
)

__all__ = ["Router", "Routers"]

DISTRIBUTE, IN_TURN, ONLY_FIRST = range(3)


@dataclass(eq=False)
class Bound:
    """One binding; ``turn`` counts what it has sent in turn."""

    options: BindingOptions
    turn: int = 0


@dataclass(eq=False)
class Router:
    """One router; ``turn`` is whose turn it is."""

    method: int
    bindings: list[Bound] = field(default_factory=list)
    turn: int = 0


class Routers(Looking):
    """Passes on; routes."""

    routers: dict[str, Router]

    def letter_of(self, client: Client, command: commands.Push, line: Line | None) -> Letter:
        """The message of a push."""
        raise NotImplementedError

    # --- Client to client ------------------------------------------------------------------------

    def named(self, command: commands.SendDirect) -> list[Client]:
        """The clients a direct message is for, in the order they connected (F113, F114)."""
        by_id, by_name = commands.BY_ID, commands.BY_NAME
        found = []
        for client in self.clients.values():
            name = client.client_id if command.by == by_id else client.kind
            if command.by == by_name:
                name = client.name
            if name == command.who:
                found.append(client)
        return found

    def send_direct(self, client: Client, command: commands.SendDirect) -> None:
        """F113-F115, C68."""
        named = self.named(command)
        able = [each for each in named if not each.blocked]
        if command.size > self.settings.message_bytes:
            self.reply(client, command.request, 482)
        elif not able:
            self.reply(client, command.request, 503 if named else 404)
        else:
            brought = self.bring(client, command, able[:1] if command.first_only else able)
            if not brought:
                self.reply(client, command.request, 503)

    def bring(self, client: Client, command: commands.SendDirect, able: list[Client]) -> bool:
        """Bring it, and expect answers to what asks for them, for ten minutes; whether there was
        memory for that."""
        numbers = {each.number for each in able}
        if command.asks and not self.has_room(question_bytes(command.message_id, len(able))):
            return False
        for each in able:
            self.say("forward", each.number, command.wire)
        if not command.asks or not able:
            return True
        asks_response = bool(command.asks & ASKS_RESPONSE)
        for other in client.questions:
            if other.message_id == command.message_id and other.until > self.now:
                other.acknowledges = numbers | (other.acknowledges - numbers)
                responses = numbers if asks_response else set()
                other.responses = responses | (other.responses - numbers)
                other.asks_response = asks_response
                other.until = self.now + 600.0
                other.asked = len(other.acknowledges | other.responses)
                return True
        question = Question(
            command.message_id,
            self.now + 600.0,
            asks_response,
            set(numbers),
            set(numbers) if asks_response else set(),
            len(numbers),
        )
        client.questions.append(question)
        return True

    def pass_answer(
        self, client_id: str, message_id: str, by: int, kind: int, wire: object
    ) -> bool:
        """F116, F117: to whoever asked, from whoever was asked, each answer once."""
        client = self.by_id(client_id)
        for question in [] if client is None else client.questions:
            if question.message_id != message_id or question.until <= self.now:
                continue
            is_response = kind == ASKS_RESPONSE
            allowed = question.responses if is_response else question.acknowledges
            if by not in allowed:
                return False
            allowed.discard(by)
            if is_response or not question.asks_response:
                question.acknowledges.discard(by)
                question.responses.discard(by)
            assert client is not None
            if not question.acknowledges and not question.responses:
                client.questions.remove(question)
            self.say("forward", client.number, wire)
            return True
        return False

    # --- Operations ------------------------------------------------------------------------------

    def operate_on_routers(self, command: commands.SessionCommand, client: Client) -> bool:
        """F60, F61; whether it was one of these."""
        if isinstance(command, commands.CreateRouter):
            missing = command.router not in self.routers
            code = 0
            if missing and not self.has_room(router_bytes(command.router)):
                code = 503
            if missing and not code:
                self.routers[command.router] = Router(command.method)
            self.reply(client, command.request, code)
        elif isinstance(command, commands.RemoveRouter):
            self.routers.pop(command.router, None)
            self.reply(client, command.request, 0)
        elif isinstance(command, commands.AddBinding):
            router = self.routers.get(command.router)
            code = 404 if router is None else self.bind(router, command.binding)
            self.reply(client, command.request, code)
        elif isinstance(command, commands.RemoveBinding):
            router = self.routers.get(command.router)
            gone = router is not None and self.unbind(router, command.binding)
            self.reply(client, command.request, 0 if gone else 404)
        elif isinstance(command, commands.ListBindings):
            router = self.routers.get(command.router)
            names = [] if router is None else [bound.options.name for bound in router.bindings]
            code, body = (404, None) if router is None else (0, names)
            self.reply(client, command.request, code, body)
        else:
            return False
        return True

    def router_state(self) -> int:
        """What routers and bindings take (F64)."""
        total = 0
        for name, router in self.routers.items():
            total += router_bytes(name)
            total += sum([binding_bytes(bound.options) for bound in router.bindings])
        return total

    def bind(self, router: Router, options: BindingOptions) -> int:
        """The highest priority comes first, then the oldest (F122); 503 without memory for it."""
        if all(bound.options.name != options.name for bound in router.bindings):
            if not self.has_room(binding_bytes(options)):
                return 503
            router.bindings.append(Bound(options))
            router.bindings.sort(key=lambda bound: -bound.options.priority)
            router.turn = 0
        return 0

    def unbind(self, router: Router, name: str) -> bool:
        """Take a binding out; whether it was there."""
        kept = [bound for bound in router.bindings if bound.options.name != name]
        gone = len(kept) < len(router.bindings)
        if gone:
            router.bindings = kept
            router.turn = 0
        return gone

    # --- Publishing ------------------------------------------------------------------------------

    def publish(self, client: Client, command: commands.Publish) -> None:
        """F123."""
        router = self.routers.get(command.router)
        if command.size > self.settings.message_bytes:
            self.reply(client, command.request, 482)
            return
        took = [] if router is None else self.route(router, client, command.envelope)
        if not took:
            self.reply(client, command.request, 404)
        elif all(bound.options.interaction == 0 for bound in took):
            self.reply(client, command.request, 0)

    def route(self, router: Router, client: Client, envelope: commands.Envelope) -> list[Bound]:
        """Offer a message to bindings by the router's method; those that took it."""
        if router.method == DISTRIBUTE:
            return [each for each in router.bindings if self.offer(each, client, envelope)]
        count = len(router.bindings)
        start = router.turn if router.method == IN_TURN else 0
        for step in range(count):
            place = (start + step) % count
            if self.offer(router.bindings[place], client, envelope):
                router.turn = (place + 1) % count
                return [router.bindings[place]]
        return []

    def offer(self, bound: Bound, client: Client, envelope: commands.Envelope) -> bool:
        """Whether somebody behind a binding takes the message (F124-F126)."""
        options = bound.options
        asks = options.interaction
        if options.kind == TO_QUEUE:
            return self.copy(envelope.as_push(options.target, options.content_type, asks), client)
        if options.kind == TO_TAG:
            tagged = [line for line in self.lines() if line.options["tag"] == options.target]
            pushes = [
                envelope.as_push(line.channel.name, line.queue_id, asks)
                for line in sorted(tagged, key=lambda line: line.place)
            ]
            return any([self.copy(push, client) for push in pushes])
        direct = envelope.as_direct(options.target, options.content_type, asks)
        able = [each for each in self.named(direct) if not each.blocked]
        if able and options.method == IN_TURN:
            able = [able[bound.turn % len(able)]]
            bound.turn += 1
        elif options.method == ONLY_FIRST:
            able = able[:1]
        return bool(able) and self.bring(client, direct, able)

    def copy(self, push: commands.Push, client: Client) -> bool:
        """Push a copy into a queue that is there and has room."""
        line = self.line(push.channel, push.queue_id)
        if line is None:
            return False
        if self.make_room(line, push.size, later=False):
            line.counts["refused"] += 1
            return False
        self.take_in(line, self.letter_of(client, push, line), 0.0)
        return True
