"""The broker against an independent model: every word and every book, after every command.

The model (``model/``) is written from the rules, in plain lists; ``model/duel.py`` tells how the
two are compared.  ``make soak`` runs the same machine for longer.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.tmqp_server.engine.model.draws import (
    BITS,
    DEFAULTS,
    GRAVES,
    PLACES,
    ROUTERS,
    SETTINGS,
    RoutedEnvelope,
    bindings,
    changes,
    channel_changes,
    channels,
    clients,
    direct_ids,
    extras,
    queue_ids,
    statuses,
    terms,
)
from tests.tmqp_server.engine.model.duel import Duel
from tests.tmqp_server.engine.model.look_rules import LookRules
from tests.tmqp_server.engine.model.things import BROADCAST, CACHE, PULL, PUSH, ROUND_ROBIN
from tmqp.constants import PUT_BACK_END, PUT_BACK_START
from tmqp_server.engine.commands import (
    BY_ID,
    BY_NAME,
    BY_TYPE,
    Acknowledge,
    AddBinding,
    Block,
    CancelMessage,
    ClearMessages,
    Command,
    Connect,
    CreateChannel,
    CreateQueue,
    CreateRouter,
    DescribeChannel,
    DescribeQueue,
    Disconnect,
    Extend,
    Grant,
    Join,
    Leave,
    ListBindings,
    PassAnswer,
    Publish,
    Pull,
    Push,
    PushExtras,
    Release,
    RemoveBinding,
    RemoveChannel,
    RemoveMessage,
    RemoveQueue,
    RemoveRouter,
    SendDirect,
    SetTerms,
    SubscribeEvent,
    Unblock,
    UpdateQueue,
)
from tmqp_server.engine.model.terms import Terms
from tmqp_server.engine.options import (
    ASKS_ACKNOWLEDGE,
    ASKS_RESPONSE,
    NOWHERE,
    BindingOptions,
    ChannelChanges,
    QueueChanges,
)


class Machine(LookRules):
    """Arbitrary commands of a few clients, with time passing."""

    def __init__(self) -> None:
        super().__init__()
        self.duel = Duel(SETTINGS, DEFAULTS)
        self.sessions: dict[int, int] = {}
        self.last_session = 0
        self.count = 0

    @initialize(
        given=st.tuples(changes, changes, changes, changes),
        joins=st.integers(0, 4),
        both=st.booleans(),
        buries=st.booleans(),
        pulled=st.sampled_from([None, PULL, PULL, CACHE]),
    )
    def start(
        self,
        given: tuple[QueueChanges, ...],
        joins: int,
        both: bool,
        buries: bool,
        pulled: int | None,
    ) -> None:
        self.duel = Duel(SETTINGS, DEFAULTS)
        alone = ChannelChanges(allow_multiple_queues=False)
        self.duel.do(CreateChannel(self.session(1), "r", "Solo", alone))
        for (name, queue_id), options, grave in zip(PLACES, given, GRAVES, strict=True):
            if name == "Two" and options.status is None:
                options.status = pulled
            if buries:
                options.dead_letter = (grave, 1)
            self.duel.do(CreateQueue(self.session(1), "r", name, queue_id, options))
        for client in range(1, 1 + joins):
            self.duel.do(Join(self.session(client), "r", "one"))
            if client % 2 or both:
                self.duel.do(Join(self.session(client), "r", "two"))
                self.duel.do(Join(self.session(client), "r", "solo", client))

    # --- Connections -----------------------------------------------------------------------------

    def session(self, client: int, take_over: bool = False) -> int:
        """The client's connection, made now if it has none; a refused one has a number too."""
        if client not in self.sessions or take_over:
            self.last_session += 1
            number = self.last_session
            names = (f"c{client}", f"name{client % 2}", f"kind{client % 3}")
            said = self.duel.do(
                Connect(number, "hello", *names, take_over=take_over, hears_lapses=client % 3 == 0),
            )
            if any(word[0] == "refuse" for word in said):
                return number
            self.sessions[client] = number
        return self.sessions[client]

    @rule(
        what=st.sampled_from(
            ["block", "block", "unblock", "unblock", "disconnect", "take over", "same id"]
        ),
        client=clients,
    )
    def connection(self, what: str, client: int) -> None:
        if what == "take over":
            self.session(client, take_over=True)
        elif what == "disconnect":
            self.duel.do(Disconnect(self.sessions.pop(client, 0)))
        elif what == "block":
            self.duel.do(Block(self.session(client)))
        elif what == "unblock":
            self.duel.do(Unblock(self.session(client)))
        else:
            self.session(client)
            self.last_session += 1
            self.duel.do(Connect(self.last_session, "hello", f"c{client}", "", ""))

    # --- Channels and queues ---------------------------------------------------------------------

    @rule(
        client=clients,
        name=channels | st.sampled_from(GRAVES),
        credit=st.sampled_from([-1, -1, -1, -1, 0, 2]),
        terms=st.none() | terms,
        hears=st.booleans(),
    )
    def join(self, client: int, name: str, credit: int, terms: Terms | None, hears: bool) -> None:
        credit = self.credit(name, credit)
        terms = self.terms(name, terms)
        number = self.session(client)
        self.duel.do(Join(number, "r", name, credit, None, terms, hears_lapses=hears))

    @rule(client=clients, name=channels, terms=terms)
    def set_terms(self, client: int, name: str, terms: Terms) -> None:
        found = self.terms(name, terms)
        assert found is not None
        self.duel.do(SetTerms(self.session(client), "r", name, found))

    def terms(self, name: str, wanted: Terms | None) -> Terms | None:
        """As for credit; a window is one, too."""
        if wanted is None or name.lower() == "solo" or not wanted.window or wanted.window < 0:
            return wanted
        said = (wanted.ack_timeout_ms, wanted.returns, wanted.priority)
        return Terms(None, *said, exclusive=wanted.exclusive)

    @rule(
        data=st.data(),
        timeout_ms=st.sampled_from([0, 250, 750, 1_250, 2_000, 10**9]),
        other=st.sampled_from([0, 0, 0, 1]),
    )
    def extend(self, data: st.DataObject, timeout_ms: int, other: int) -> None:
        held = [
            (client.number, letter.message_id, line.channel.name, line.queue_id)
            for line in self.duel.model.lines()
            for letter in line.flights
            for client in letter.holders
            if client.alive
        ]
        if held:
            number, message_id, name, queue_id = data.draw(st.sampled_from(held))
            if other:
                number = self.session(other)
            self.duel.do(Extend(number, "more", message_id, name, queue_id, timeout_ms))

    @rule(client=clients, name=channels, credit=st.sampled_from([None, -1, 0, 1, 3]))
    def grant_or_leave(self, client: int, name: str, credit: int | None) -> None:
        number = self.session(client)
        if credit is None:
            self.duel.do(Leave(number, "r", name))
        else:
            self.duel.do(Grant(number, name, self.credit(name, credit)))

    def credit(self, name: str, wanted: int) -> int:
        """Queues of one channel share a credit as it comes: what can be foretold is one queue's."""
        return wanted if name.lower() == "solo" else min(wanted, 0)

    @rule(client=clients, data=st.data(), given=changes)
    def update_queue(self, client: int, data: st.DataObject, given: QueueChanges) -> None:
        name, queue_id = self.place(data)
        self.duel.do(UpdateQueue(self.session(client), "r", name, queue_id, given))

    @rule(client=clients, data=st.data(), status=statuses)
    def change_status(self, client: int, data: st.DataObject, status: int) -> None:
        name, queue_id = self.place(data)
        given = QueueChanges(status=status)
        self.duel.do(UpdateQueue(self.session(client), "r", name, queue_id, given))

    @rule(
        client=clients,
        place=st.integers(0, 3),
        has_grave=st.sampled_from([True, True, False]),
        room=st.sampled_from([0, 0, 15, 30]),
        given=changes,
    )
    def bury(
        self, client: int, place: int, has_grave: bool, room: int, given: QueueChanges
    ) -> None:
        """Change where dead letters go, and how many of them may be on disk."""
        name, queue_id = PLACES[place]
        grave = (GRAVES[place], 1)
        given.dead_letter = grave if has_grave else NOWHERE
        limit = QueueChanges(disk_limit_bytes=room)
        # Made before: where memory is short, it matters what else ends at that moment.
        self.duel.do(CreateQueue(self.session(client), "r", *grave, limit))
        self.duel.do(UpdateQueue(self.session(client), "r", *grave, limit))
        self.duel.do(UpdateQueue(self.session(client), "r", name, queue_id, given))

    @rule(
        what=st.sampled_from(
            ["create", "create", "channel", "clear", "clear", "ask", "remove", "remove channel"]
        ),
        client=clients,
        name=channels,
        queue_id=queue_ids,
        given=changes,
        rules=st.none() | channel_changes,
    )
    def administer(
        self,
        what: str,
        client: int,
        name: str,
        queue_id: int,
        given: QueueChanges,
        rules: ChannelChanges | None,
    ) -> None:
        number = self.session(client)
        if what == "create":
            self.duel.do(CreateQueue(number, "r", name, queue_id, given))
        elif what == "channel":
            self.duel.do(CreateChannel(number, "r", name, rules))
        elif what == "clear":
            which = (
                given.request_acknowledge is None,
                given.wait_for_acknowledge is None,
                given.delivery_handler is not None,
            )
            self.duel.do(ClearMessages(number, "r", name, queue_id, *which))
        elif what == "ask":
            self.duel.do(DescribeQueue(number, "r", name, queue_id))
            self.duel.do(DescribeChannel(number, "r", name))
        elif what == "remove":
            self.duel.do(RemoveQueue(number, "r", name, queue_id))
        else:
            self.duel.do(RemoveChannel(number, "r", name))

    def place(self, data: st.DataObject, *statuses: int) -> tuple[str, int]:
        """Most often a queue that is there, of these statuses if there is one."""
        lines = [line for line in self.duel.model.lines() if line.channel.name not in GRAVES]
        fitting = [line for line in lines if line.options["status"] in statuses]
        usual: int = data.draw(st.integers(0, 7))
        if lines and usual:
            return data.draw(st.sampled_from([line.place for line in fitting or lines]))
        return data.draw(channels), data.draw(queue_ids)

    # --- Messages --------------------------------------------------------------------------------

    @rule(
        client=clients,
        data=st.data(),
        high=st.booleans(),
        wants=st.booleans(),
        size=st.sampled_from([10, 10, 10, 10, 30, 41]),
        extras=st.none() | extras,
        times=st.sampled_from([1, 2, 5]),
    )
    def push(
        self,
        client: int,
        data: st.DataObject,
        high: bool,
        wants: bool,
        size: int,
        extras: PushExtras | None,
        times: int,
    ) -> None:
        name, queue_id = self.place(data)
        for _ in range(times):
            self.push_one(
                client, name.upper() if times == 2 else name, queue_id, high, wants, size, extras
            )

    @rule(client=clients, data=st.data(), kinds=st.lists(st.booleans(), min_size=1, max_size=6))
    def push_plainly(self, client: int, data: st.DataObject, kinds: list[bool]) -> None:
        """In a row: the broker may take several at once."""
        name, queue_id = self.place(data)
        number = self.session(client)
        commands: list[Command] = []
        for high in kinds:
            self.count += 1
            what = (f"m{self.count}", name, queue_id, high, high, 10, f"wire{self.count}")
            commands.append(Push(number, *what))
        self.duel.do_all(commands)

    @rule(client=clients, data=st.data(), name=channels, queue_id=queue_ids, other=st.booleans())
    def remove_message(
        self, client: int, data: st.DataObject, name: str, queue_id: int, other: bool
    ) -> None:
        """Most often one that waits, if there is one; else one that may be anywhere."""
        waiting = [
            (line.channel.name, line.queue_id, letter.message_id)
            for line in self.duel.model.lines()
            for letter in (line.live() if other else line.waiting())
        ]
        place = (name, queue_id, f"m{self.count}")
        usual: int = data.draw(st.integers(0, 4))
        if waiting and usual:
            place = data.draw(st.sampled_from(waiting))
        self.duel.do(RemoveMessage(self.session(client), "r", *place))

    @rule(client=clients, data=st.data(), name=channels, queue_id=queue_ids, twice=st.booleans())
    def cancel(
        self, client: int, data: st.DataObject, name: str, queue_id: int, twice: bool
    ) -> None:
        """Most often something that is deferred, if there is anything."""
        deferred = [
            (line.channel.name, line.queue_id, letter.message_id)
            for line in self.duel.model.lines()
            for _, letter in line.deferred
        ]
        place = (name, queue_id, f"m{self.count}")
        usual: int = data.draw(st.integers(0, 4))
        if deferred and usual:
            place = data.draw(st.sampled_from(deferred))
        for _ in range(1 + twice):
            self.duel.do(CancelMessage(self.session(client), "r", *place))

    def push_one(
        self,
        client: int,
        name: str,
        queue_id: int,
        high: bool,
        wants: bool,
        size: int,
        extras: PushExtras | None,
    ) -> None:
        self.count += 1
        number = self.session(client)
        what = (f"m{self.count}", name, queue_id, high, wants, size, f"wire{self.count}")
        self.duel.do(Push(number, *what, extras))

    @rule(data=st.data(), positive=st.sampled_from([True, True, False]), times=st.integers(1, 4))
    def acknowledge(self, data: st.DataObject, positive: bool, times: int) -> None:
        for _ in range(times):
            held = [
                (client.number, letter.message_id, line.channel.name, line.queue_id)
                for line in self.duel.model.lines()
                for letter in line.flights
                for client in letter.holders
                if client.alive
            ]
            if not held:
                return
            number, message_id, name, queue_id = data.draw(st.sampled_from(held))
            place = (message_id, name.upper(), queue_id)
            reason = "" if positive else "no"
            self.duel.do(Acknowledge(number, *place, positive, reason, "answer", 5))

    @rule(
        data=st.data(),
        put_back=st.sampled_from([PUT_BACK_START, PUT_BACK_END]),
        # Moments of sending again are not those of timeouts.
        delay_ms=st.sampled_from([0, 0, 300, 800]),
        counted=st.booleans(),
        other=st.sampled_from([0, 0, 0, 1]),
        times=st.integers(1, 3),
    )
    def release(
        self,
        data: st.DataObject,
        put_back: int,
        delay_ms: int,
        counted: bool,
        other: int,
        times: int,
    ) -> None:
        """What a client has, or, now and then, what another one has."""
        for _ in range(times):
            held = [
                (client.number, letter.message_id, line.channel.name, line.queue_id)
                for line in self.duel.model.lines()
                for letter in line.flights
                for client in letter.holders
                if client.alive
            ]
            if not held:
                return
            number, message_id, name, queue_id = data.draw(st.sampled_from(held))
            if other:
                number = self.session(other)
            place = (message_id, name, queue_id, put_back, delay_ms, counted)
            self.duel.do(Release(number, "back", *place))

    @rule(client=clients, name=channels, queue_id=queue_ids, back=st.integers(0, 6))
    def acknowledge_what_it_may_not_have(
        self, client: int, name: str, queue_id: int, back: int
    ) -> None:
        self.duel.do(
            Acknowledge(self.session(client), f"m{self.count - back}", name, queue_id, back < 4)
        )

    @rule(
        client=clients,
        data=st.data(),
        count=st.sampled_from([0, 1, 1, 2, 5, 9, 9, 10]),
        newest_first=st.booleans(),
        clear=st.sampled_from([0, 0, 0, 1, 2, 3]),
        info=st.booleans(),
    )
    def pull(
        self,
        client: int,
        data: st.DataObject,
        count: int,
        newest_first: bool,
        clear: int,
        info: bool,
    ) -> None:
        name, queue_id = self.place(data, PULL, CACHE)
        channel = self.duel.model.channel(name)
        members = [] if channel is None else [each.client.number for each in channel.members]
        number = self.session(client)
        usual: int = data.draw(st.integers(0, 5))
        if members and usual:
            number = data.draw(st.sampled_from(members))
        self.count += 1
        how = (count, newest_first, clear & 1 == 1, clear & 2 == 2, info)
        self.duel.do(Pull(number, f"pull{self.count}", name, queue_id, *how))

    @precondition(lambda self: self.duel.translator.open)
    @rule(data=st.data(), ok=st.sampled_from([True, True, False]))
    def sync(self, data: st.DataObject, ok: bool) -> None:
        tickets = sorted(self.duel.translator.open)
        self.duel.sync(data.draw(st.sampled_from(tickets)), ok)

    # --- Clients, events, routers ----------------------------------------------------------------

    @rule(
        client=clients,
        way=st.sampled_from([(BY_ID, "c"), (BY_NAME, "name"), (BY_TYPE, "kind")]),
        whom=st.integers(0, 6),
        first_only=st.booleans(),
        size=st.sampled_from([10, 41]),
        message_id=direct_ids,
        asks=st.integers(0, 3),
    )
    def send_direct(
        self,
        client: int,
        way: tuple[int, str],
        whom: int,
        first_only: bool,
        size: int,
        message_id: str,
        asks: int,
    ) -> None:
        who = f"{way[1]}{whom}"
        number = self.session(client)
        what = (size, "direct", "request", message_id, asks)
        self.duel.do(SendDirect(number, way[0], who, first_only, *what))

    @rule(
        client=clients,
        whom=st.integers(0, 6),
        kind=st.sampled_from([ASKS_ACKNOWLEDGE, ASKS_RESPONSE]),
        marked=st.booleans(),
        message_id=direct_ids,
    )
    def answer_directly(
        self, client: int, whom: int, kind: int, marked: bool, message_id: str
    ) -> None:
        number = self.session(client)
        if kind == ASKS_ACKNOWLEDGE and not marked:
            self.duel.do(Acknowledge(number, message_id, f"c{whom}", 1, True, "", "an ack", 5))
        else:
            self.duel.do(PassAnswer(number, f"c{whom}", 5, "an answer", message_id, kind))

    @rule(
        client=clients,
        event=st.sampled_from(BITS),
        name=channels,
        queue_id=queue_ids,
        wanted=st.sampled_from([True, True, True, False]),
    )
    def listen(self, client: int, event: int, name: str, queue_id: int, wanted: bool) -> None:
        number = self.session(client)
        self.duel.do(SubscribeEvent(number, "r", event, name, queue_id, wanted))

    @rule(
        what=st.sampled_from(["create", "bind", "bind", "bind", "unbind", "remove"]),
        client=clients,
        router=st.sampled_from(ROUTERS),
        options=bindings,
    )
    def organise(self, what: str, client: int, router: str, options: BindingOptions) -> None:
        number = self.session(client)
        if what == "create" or (what == "bind" and router not in self.duel.model.routers):
            self.duel.do(CreateRouter(number, "r", router, options.method))
        if what == "bind":
            self.duel.do(AddBinding(number, "r", router, options))
            self.duel.do(ListBindings(number, "r", router))
        elif what == "unbind":
            self.duel.do(RemoveBinding(number, "r", router, options.name))
        elif what == "remove":
            self.duel.do(RemoveRouter(number, "r", router))

    @rule(
        client=clients,
        router=st.sampled_from(ROUTERS),
        size=st.sampled_from([10, 10, 10, 41]),
        times=st.integers(1, 3),
    )
    def publish(self, client: int, router: str, size: int, times: int) -> None:
        for _ in range(times):
            self.count += 1
            number = self.session(client)
            envelope = RoutedEnvelope(number, f"p{self.count}", size)
            self.duel.do(Publish(number, "published", router, size, envelope))

    # --- Time ------------------------------------------------------------------------------------

    @rule(quarters=st.sampled_from([1, 2, 4, 12]))
    def wait(self, quarters: int) -> None:
        self.duel.wait(quarters * 0.25)

    # --- The end ---------------------------------------------------------------------------------

    def teardown(self) -> None:
        """When nobody is slow any more, what is owed arrives."""
        for number in list(self.duel.model.clients):
            self.duel.do(Unblock(number))
        self.duel.wait(4.0)


class CountingMachine(Machine):
    """The same, where producers often ask to how many a message goes."""

    @rule(client=clients, data=st.data(), wants=st.booleans())
    def push_counted(self, client: int, data: st.DataObject, wants: bool) -> None:
        """To who is there: the producer asks to how many it goes."""
        name, queue_id = self.place(data, BROADCAST, PUSH, ROUND_ROBIN)
        extras = PushExtras(counts_receivers=True)
        self.push_one(client, name, queue_id, False, wants, 10, extras)


CountingMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=50)
TestModel = pytest.mark.timeout(300)(CountingMachine.TestCase)
