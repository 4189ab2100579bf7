"""The look over the broker's shoulder: every step is judged before its effects go out.

The watched broker is the broker, each of whose ways in is examined.  Beside the ledger's model it
checks the broker's own books after every step: that they balance (accepted = waiting + deferred +
in flight + settled), that every deadline is known, and that nobody holds more than allowed.

Runs are carried out as the broker does it, together where it can; then the ledger is notified of
each message and of each effect by itself.  In a share of the worlds they are divided before the
broker sees them, so that these histories are the ones of single messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.broker import _MOST_EFFECTS, _MOST_STEPS, _MOST_WORK, Broker
from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    Block,
    Browse,
    ClientRun,
    Command,
    Connect,
    Disconnect,
    ListChannels,
    PassAnswer,
    Push,
    PushRun,
    SessionCommand,
    Unblock,
    connection_of,
)
from tmqp_server.engine.delivery.feed_commits import Commit
from tmqp_server.engine.delivery.shelving import PendingShelf
from tmqp_server.engine.effects import (
    AppendRun,
    ConfirmRun,
    Deliver,
    DeliverRun,
    Effect,
    EraseRun,
    Fetch,
    ForgetQueue,
    Reply,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.delivery import HandlerRegistry
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.questions import Questions
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.snapshots import (
    BROWSED_DEFERRED,
    BROWSED_IN_FLIGHT,
    BROWSED_WAITING,
    BrowseSnapshot,
)
from tmqp_server.engine.model.times import NEVER
from tmqp_server.engine.options import ASKS_ACKNOWLEDGE, BrokerOptions
from tmqp_server.hub.hub import Hub
from tmqp_server.shell.datagrams import Datagrams
from tmqp_sim.audit import Audit
from tmqp_sim.books import (
    Ballast,
    audience_problem,
    connections_of,
    disk_bytes_of,
    has_waiting_run,
    state_of,
    unrefused_of,
)
from tmqp_sim.copies import Copies
from tmqp_sim.cursed import Cursed
from tmqp_sim.ledger import Ledger
from tmqp_sim.outside import Outside
from tmqp_sim.recorded import Notebook
from tmqp_sim.side_books import SideBooks
from tmqp_sim.singles import run_marks, said_in_turn, single_effects, told_in_turn
from tmqp_sim.wishes import is_wanted
from tmqp_sim.world import Violation, World

__all__ = ["WatchedBroker"]

#: The dearest checks are made once in so many steps.
_SELDOM: Final = 16
_EPSILON_S: Final = 1e-9
#: What costs no work of its own, or what no client asks for.
_NO_OPERATIONS: Final = (Acknowledge, Block, Disconnect, Push, Unblock)
#: What nobody has in flight.
_NOTHING: Final[dict[str, Message]] = {}


class WatchedBroker(Broker):
    """A broker with somebody beside it.

    A subclass, as a hub that is compiled takes no other; then this module has to be in its unit
    (``tools/compile_simulator.py``).

    :param take_over: clients that come back take over what is left of their older connection.
    :param divides: every run is divided before the broker sees it.
    """

    def __init__(
        self,
        limits: EngineLimits,
        options: BrokerOptions,
        handlers: HandlerRegistry | None,
        ledger: Ledger,
        audit: Audit,
        world: World,
        take_over: bool,
        divides: bool,
        outside: Outside,
        fails: bool,
    ) -> None:
        super().__init__(limits, options, handlers)
        self.ledger = ledger
        ledger.has_spilled = self._has_spilled
        self._outside = outside
        #: It has a bug at its deadlines.
        self._fails = world.child("broker") if fails else None
        self._audit = audit
        self._world = world
        self._take_over = take_over
        self._divides = divides
        #: Whose connections are charged too.
        self.hub: Hub | None = None
        #: What is charged so that messages always have the same room.
        self.ballast: Ballast | None = None
        self.datagrams: Datagrams | None = None
        #: What goes through feeds, if anything does.
        self.copies: Copies | None = None
        #: What clients of foreign protocols have.
        self.sides: list[SideBooks] = []
        #: The judge of the server's audit, where it has one.
        self.notebook: Notebook | None = None
        #: Units of work in this portion.
        self._work = 0
        self._timeouts: dict[int, int] = {}
        self._expired: dict[int, int] = {}

    # -- as the hub sees it ---------------------------------------------------------------------

    def step(self, command: Command, now: float) -> list[Effect]:
        """One step of the broker, judged."""
        if self._take_over and isinstance(command, Connect):
            command.take_over = True
        self._before(command)
        effects = super().step(command, now)
        self._note_held(command)
        return self._judge(command, effects, now)

    def begin_portion(self) -> None:
        """The world could send; commands are processed."""
        self._work = 0

    def _before(self, command: Command) -> None:
        """A command is carried out: note it, and see whether it may be."""
        self._count_work(command)
        self._outside.check(command)
        self.ledger.before(command)
        if self.copies is not None and isinstance(command, Acknowledge):
            self.copies.answered(command)
        for books in self.sides:
            books.asked(command)
        if self.notebook is not None:
            self.notebook.asked(command)
        if self.ledger.trusting:
            self._pretend(command)

    def _count_work(self, command: Command) -> None:
        """Count operations, and the items of lists, whether or not anything is sent for them.

        :raises Violation: when a session has had its portion already.
        """
        if not isinstance(command, SessionCommand) or isinstance(command, _NO_OPERATIONS):
            return
        if self._work >= _MOST_WORK:
            text = f"session {command.session} had {self._work} units of work done in one portion"
            raise Violation("bound", text)
        self._work += 1
        if isinstance(command, ListChannels) and not command.filter:
            self._work += len(self._core.channels.by_key)

    def _pretend(self, command: Command) -> None:
        """Let every answer be one to a question, so that it is passed on."""
        if isinstance(command, PassAnswer):
            who, message_id, kind = command.client_id, command.message_id, command.kind
        elif isinstance(command, Acknowledge):
            who, message_id, kind = command.channel, command.message_id, ASKS_ACKNOWLEDGE
        else:
            return
        core = self._core
        client = core.clients.get(who)
        if client is None:
            return
        if client.asked is None:
            client.asked = Questions(core.limits.max_questions_per_session, core)
        until = core.now + core.limits.max_answer_wait_ms / 1000
        client.asked.ask(message_id, [command.session], kind, False, until)
        self._world.mark("forged answer passed on")

    def steps(
        self, commands: Sequence[Command], at: int, now: float, most_bytes: int
    ) -> tuple[int, list[Effect]]:
        """Several commands, as the broker bounds them, each of them judged."""
        portion = most_bytes
        out: list[Effect] = []
        steps = _MOST_STEPS
        while True:
            command = commands[at]
            at += 1
            steps -= 1
            if isinstance(command, PushRun):
                effects, size = self._push_of(command, now, portion)
                out += effects
                most_bytes -= size
                at -= 0 if command.is_over() else 1
            elif isinstance(command, AcknowledgeRun):
                out += self._answers_of(command, now)
                at -= 0 if command.is_over() else 1
            elif isinstance(command, ClientRun):
                effects, size = self._said(command, now, portion)
                out += effects
                most_bytes -= size
                at -= 0 if command.is_over() else 1
            else:
                if self._take_over and isinstance(command, Connect):
                    command.take_over = True
                out += self._single(command, now, portion)
                if isinstance(command, Push):
                    most_bytes -= command.size
                elif not isinstance(command, Acknowledge):
                    steps = 0
            is_full = len(out) >= _MOST_EFFECTS or self._core.work >= _MOST_WORK
            if at >= len(commands) or steps <= 0 or most_bytes <= 0 or is_full:
                return at, out

    def _single(self, command: Command, now: float, portion: int) -> list[Effect]:
        self._before(command)
        core = self._core
        before, messages = core.total_bytes, core.total_bytes - core.state_bytes
        _, effects = super().steps([command], 0, now, portion)
        if isinstance(command, Push):
            self._check_memory(command, command.size, before, messages)
        self._note_held(command)
        return self._judge(command, effects, now)

    def _note_held(self, command: Command) -> None:
        """A push may wait for room, also one that was asked about first (seed 41313)."""
        if isinstance(command, Push) and self.holds(connection_of(command.session)):
            self.ledger.wishes.hold(command)

    def _push_of(self, run: PushRun, now: float, portion: int) -> tuple[list[Effect], int]:
        """A run together, as :meth:`Broker.steps` does it, or the next of its pushes; the effects,
        and how many bytes that was."""
        if not run.left:
            effects = self._push_whole(run, now, portion)
            if effects is not None:
                return effects, run.size
            run.divide()
        push = run.left.pop()
        return self._single(push, now, portion), push.size

    def _push_whole(self, run: PushRun, now: float, portion: int) -> list[Effect] | None:
        """None, with nothing done, if it must be divided."""
        if self._divides:
            self._world.mark("run divided on purpose")
            return None
        core = self._core
        before, messages = core.total_bytes, core.total_bytes - core.state_bytes
        out = self._begin_step(now)
        if run.size > portion or not self._runs.push(run, now):
            self._world.mark("run divided: pushes")
            return None
        queue = core.channels.by_spelling[run.channel].queues[run.queue_id]
        if has_waiting_run(queue):
            self._world.mark("run taken whole: waits")
        self._end_step(now)
        self._world.mark("run taken whole: pushes")
        # Asked of the door itself: the run would be noted as divided.
        if not run.is_mixed:
            for push in run.wire.pushes(run):
                self._before(push)
        self._check_memory(run, run.size, before, messages)
        return self._judge(run, out, now)

    def _answers_of(self, run: AcknowledgeRun, now: float) -> list[Effect]:
        """Answers of a run together, up to one that something follows, or the next of it."""
        if self._divides and not run.left:
            self._world.mark("run divided on purpose")
            run.divide()
        if run.left:
            return self._single(run.left.pop(), now, 0)
        begun = run.at
        out = self._begin_step(now)
        # Not beyond what one of them sets going, or an answer to what is sent only then would seem
        # to have come before it (seed 1037200).
        if not self._runs.acknowledge(run, now, self._work_per_step, 1):
            run.divide()
            self._intake.acknowledge(run.left.pop(), now)
        self._end_step(now)
        singles = run.wire.acknowledges(run)
        if run.left:
            self._world.mark("run divided: answers")
            taken = singles[begun : begun + 1]
        else:
            self._world.mark("run taken whole: answers")
            if run.queues:
                self._world.mark("run taken whole: answers to several queues")
            taken = singles[begun:] if run.is_over() else singles[begun : run.at]
        for each in taken:
            self._before(each)
        return self._judge(run, out, now)

    def _said(self, run: ClientRun, now: float, portion: int) -> tuple[list[Effect], int]:
        """A run of what a client says to others, together or the next of it, as with pushes."""
        session = self._core.sessions.get(run.session)
        # Where any answer passes, each is made one to a question before it is carried out.
        if self._divides or self.ledger.trusting or run.size > portion or session is None:
            run.left = run.left or run.singles()[::-1]
        elif not run.left:
            out = self._begin_step(now)
            if self._direct.take_whole(run, session):
                self._world.mark("run taken whole: said to a client")
                return self._judge(run, out, now), run.size
            self._world.mark("run divided: said to a client")
            run.divide()
        single = run.left.pop()
        return self._single(single, now, portion), single.size

    def _begin_step(self, now: float) -> list[Effect]:
        """What the broker does at the beginning of each step."""
        core = self._core
        out: list[Effect] = []
        core.out = out
        core.now = now
        core.budget = self._work_per_step
        return out

    def _end_step(self, now: float) -> None:
        """What the broker does at the end of each step (seed 232274: emptied queues stayed)."""
        core = self._core
        if core.awake:
            self._pump.wake_waiting(now)
        if core.emptied:
            self._administration.destroy_emptied()

    def on_deadline(self, now: float) -> list[Effect]:
        """What is due, judged.

        :raises Cursed: now and then, in a world where the broker has a bug.
        """
        if self._fails is not None and self._fails.randrange(40) == 0:
            raise Cursed("a bug of the broker")
        self.ledger.steps += 1
        effects = self._judge(None, super().on_deadline(now), now)
        due = self.next_deadline()
        if due is None or due > now:
            self.ledger.all_served()
            for queue in self.queues():
                due = NEVER if queue.timed is None else queue.timed.next_due()
                if queue.overdue(now - _EPSILON_S, 1) or due < now - _EPSILON_S:
                    raise Violation("deadline", f"{queue!r} has overdue messages in flight")
        else:
            self._world.mark("work left for another step")
        return effects

    # -- the look -------------------------------------------------------------------------------

    def _judge(self, command: Command | None, effects: list[Effect], now: float) -> list[Effect]:
        ledger = self.ledger
        singles = effects
        for effect in effects:
            if isinstance(effect, (AppendRun, ConfirmRun, DeliverRun, EraseRun)):
                for mark in run_marks(effect, command):
                    self._world.mark(mark)
                singles = single_effects(effects, self._flights)
        if isinstance(command, PushRun) and command.is_mixed:
            for push, its in told_in_turn(command, singles):
                self._before(push)
                ledger.after(push, its)
        elif isinstance(command, ClientRun):
            for said, passed in said_in_turn(command, effects):
                self._before(said)
                ledger.after(said, passed)
        else:
            ledger.after(command, singles)
        if isinstance(command, Browse):
            self._check_look(command, effects)
        if self.copies is not None:
            for effect in singles:
                if isinstance(effect, Deliver):
                    self.copies.sent(effect.channel, effect.message, effect.sessions)
        for books in self.sides:
            for effect in singles:
                books.see(effect)
        self._audit.see(singles)
        for effect in singles:
            if isinstance(effect, Fetch):
                self._mark_fetch(effect)
            if isinstance(effect, ForgetQueue):
                self._world.mark("emptied queue destroyed")
        queues = self.queues()
        earliest = self.next_deadline()
        for queue in queues:
            self._check_books(queue, now, earliest)
        if ledger.steps % _SELDOM == 0:
            if self.notebook is not None:
                self.notebook.check()
            self._check_sessions(queues)
            behind = self._batches.has_work() or self._feeder.has_work()
            if not (self._core.trash or self._core.tickets or behind):
                self._audit.check_bytes(queues)
                self._check_disk(queues)
        return effects

    def _check_disk(self, queues: list[Queue]) -> None:
        """What is on the disk belongs to a message that is not settled."""
        for queue in queues:
            size = disk_bytes_of(self, queue)
            if queue.disk_bytes != size:
                text = f"{queue!r} counts {queue.disk_bytes} bytes on the disk for {size} bytes"
                raise Violation("quota", text)

    def _mark_fetch(self, effect: Fetch) -> None:
        if isinstance(self._core.fetches.get(effect.number), PendingShelf):
            self._world.mark("deferred message read ahead")

    def _check_look(self, command: Browse, effects: list[Effect]) -> None:
        """Who looks into a queue changes nothing, and sees all that is there from where he wants to
        see it; where some of it is on the disk he is answered when that has been read."""
        for effect in effects:
            if not isinstance(effect, (Fetch, Reply)):
                raise Violation("look", f"{command!r} leads to {effect!r}")
            body = effect.body if isinstance(effect, Reply) else None
            channel = self._core.channels.find(command.channel)
            queue = None if channel is None else channel.queues.get(command.queue_id)
            if not isinstance(body, BrowseSnapshot) or queue is None:
                continue
            if queue.spilled or queue.deferred.on_disk():
                continue
            there = [(each, BROWSED_WAITING) for each in queue.high.messages()]
            there += [(each, BROWSED_WAITING) for each in queue.regular.messages()]
            there += [(each, BROWSED_IN_FLIGHT) for each in queue.all_flights().values()]
            there += [(each, BROWSED_DEFERRED) for each in queue.deferred.messages()]
            if (chosen := command.filter) is not None:
                there = [pair for pair in there if is_wanted(chosen, pair[0])]
            states = {each.sequence: state for each, state in there}
            wanted = sorted([each for each in states.items() if each[0] >= command.first])
            shown = [(item.sequence, item.state) for item in body.items]
            if shown != wanted[: command.limit or None]:
                raise Violation("look", f"{queue!r} has {wanted}, {shown} are shown")

    def _flights(self, channel: str, queue_id: int) -> Mapping[str, Message]:
        found = self._core.channels.find(channel)
        queue = None if found is None else found.queues.get(queue_id)
        return _NOTHING if queue is None else queue.all_flights()

    def _check_books(self, queue: Queue, now: float, earliest: float | None) -> None:
        lost = queue.imbalance()
        if lost:
            raise Violation("conservation", f"{queue!r}: {lost} messages are nowhere")
        most = queue.options.disk_limit_bytes
        if most and queue.disk_bytes > most and queue.saves:
            raise Violation("quota", f"{queue!r}: {queue.disk_bytes} bytes on the disk of {most}")
        if queue.fleeting and queue.counters.accepted and not queue.audience.subscriptions:
            self._check_fleeting(queue)
        key = (queue.channel_name, queue.queue_id)
        timeouts = queue.counters.ack_timeouts
        before = self._timeouts.get(queue.key, 0)
        if timeouts != before:
            self._timeouts[queue.key] = timeouts
            self._world.mark("acknowledge timed out")
            if key in self.ledger.places:
                self.ledger.timed_out(key, timeouts - before, queue.all_flights().values())
        elif self.ledger.overtaken:
            self._check_overtaken(key)
        place = self.ledger.places.get(key)
        if (
            place is not None
            and place.expiry_s
            and queue.counters.expired != self._expired.get(queue.key, 0)
        ):
            self._expired[queue.key] = queue.counters.expired
            self._world.mark("message expired")
            old = self.ledger.lifetimes.too_old(key)
            if queue.counters.expired > old:
                raise Violation(
                    "deadline", f"{queue!r}: {queue.counters.expired} expired, {old} may"
                )
        due = queue.next_due()
        if due != float("inf") and (earliest is None or earliest > max(due, now) + _EPSILON_S):
            raise Violation("deadline", f"{queue!r} is due at {due:.4f} and nobody wakes it")

    def _check_fleeting(self, queue: Queue) -> None:
        """A queue that had messages goes with the last of them when nobody is there (F101)."""
        core = self._core
        if queue.live() or queue.count or queue.claims or core.removals:
            return
        raise Violation("stuck", f"{queue!r} is empty, nobody is there, and it stays")

    def _check_memory(self, push: Command, size: int, before: int, messages: int) -> None:
        """A push is taken in only while there is memory for it (F2 of the cases)."""
        core = self._core
        most = self.limits.max_total_bytes
        if core.total_bytes - core.state_bytes <= messages:
            most = core.total_bytes  # it was refused, but may have created its queue (seed 635)
        if any(queue.feeds for queue in self.queues()):
            most = max(most, core._most_to_move)  # with its copies
        # What is never refused comes on top.
        if core.total_bytes > max(before, most) and (
            core.total_bytes - unrefused_of(self) > max(before, most)
        ):
            raise Violation("memory", f"{push!r}: {core.total_bytes} bytes, {most} allowed")
        if before + size + MESSAGE_OVERHEAD_BYTES > most:
            self._world.mark("memory full")

    def _has_spilled(self, key: tuple[str, int]) -> bool:
        there = [each for each in self.queues() if (each.channel_name, each.queue_id) == key]
        return any(each.spilled for each in there)

    def _check_overtaken(self, key: tuple[str, int]) -> None:
        count = self.ledger.overtaken.pop(key, 0)
        if count:
            raise Violation(
                "exclusivity", f"{key}: sent again without a timeout: {count} still have it"
            )

    def _check_sessions(self, queues: list[Queue]) -> None:
        """What sessions hold, counted from the messages' side."""
        core = self._core
        if core.trash:
            return
        holding: dict[int, int] = {}
        size = 0
        for queue in queues:
            problem = audience_problem(queue.audience)
            if problem:
                raise Violation("audience", problem)
            size += queue.bytes + queue.count * MESSAGE_OVERHEAD_BYTES
            for message in queue.all_flights().values():
                if message.holder is not None:
                    number = message.holder.number
                    holding[number] = holding.get(number, 0) + 1
                elif message.holders is not None:
                    for number in message.holders:
                        holding[number] = holding.get(number, 0) + 1
        # What is being spilled stays in memory until it is written, and what a feed copies until
        # that is, even if the queue has gone meanwhile (seeds 301380, 11371).
        written = [getattr(each, "queue", None) for each in core.tickets.values()]
        for each in core.tickets.values():
            if isinstance(each, Commit):
                written += [copy.target for item in each.items for copy in item.copies]
        gone = {each.key: each for each in written if each is not None and each.closed}
        size += sum(each.bytes + each.count * MESSAGE_OVERHEAD_BYTES for each in gone.values())
        for session in core.sessions.values():
            count = holding.get(session.number, 0)
            if session.in_flight != count:
                raise Violation(
                    "credit", f"{session!r} has {count} in hand, its books say {session.in_flight}"
                )
            if count > self.ledger.max_in_flight:
                raise Violation("credit", f"{session!r} has {count} in hand")
            client = session.parent or session
            if session.blocked != client.blocked:
                raise Violation("audience", f"{session!r} is not held back as {client!r} is")
        if size + core.state_bytes != core.total_bytes:
            raise Violation(
                "conservation",
                f"{core.total_bytes} bytes in all, {size} in queues, {core.state_bytes} besides",
            )
        state = state_of(self)
        if self.hub is not None:
            state += connections_of(self.hub)
        if self.ballast is not None:
            state += self.ballast.held
        if self.datagrams is not None:
            state += self.datagrams.held_bytes
        if state != core.state_bytes:
            raise Violation(
                "conservation", f"{core.state_bytes} bytes besides messages, {state} are there"
            )
