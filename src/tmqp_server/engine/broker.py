"""``Broker``: you pass in commands and the time; it returns effects.

Theory of operation.  The broker is a state machine without I/O, clock, ids of its own or random
numbers, so the same commands at the same times give the same effects, in every run and in both
builds (rule 2).  The world drives it like this::

    for effect in broker.step(command, now): carry it out
    deadline = broker.next_deadline()          # None: nothing to wait for
    for effect in broker.on_deadline(now): carry it out

A step does a bounded amount of work (``EngineLimits.max_work_per_step``).  If there is more to do,
the next deadline is immediate (not later than the ``now`` of the last step) and ``on_deadline``
continues; a world with many waiting commands may execute some of them in between.

The parts are modules, each with one subject, named in its first line; docs/architecture.md lists
them.  This module passes every command to its part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    ApplyDecision,
    Batch,
    CancelMessage,
    ClientRun,
    Command,
    Connect,
    Extend,
    GroupCommand,
    HttpAnswered,
    Miss,
    PassAnswer,
    Publish,
    Pull,
    Push,
    PushRun,
    Release,
    ReportMaster,
    ReportMembers,
    SendDirect,
    SessionCommand,
    SubscribeEvent,
)
from tmqp_server.engine.core import Core, Performers
from tmqp_server.engine.delivery.debts import DebtTimer
from tmqp_server.engine.delivery.deferring import Deferring
from tmqp_server.engine.delivery.direct import Direct
from tmqp_server.engine.delivery.feeding import Feeder
from tmqp_server.engine.delivery.feeds import Feeds
from tmqp_server.engine.delivery.intake import Intake
from tmqp_server.engine.delivery.moving import Moves
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.pulls import Puller
from tmqp_server.engine.delivery.pump import Pump
from tmqp_server.engine.delivery.push_runs import RunIntake
from tmqp_server.engine.delivery.sending import Sender
from tmqp_server.engine.delivery.workflow import Workflow
from tmqp_server.engine.directory import Directory
from tmqp_server.engine.effects import Effect
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.keeping import Keeper, notes_of
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.cells import CellTimer
from tmqp_server.engine.model.channels import IdleTimer
from tmqp_server.engine.model.delivery import HandlerRegistry
from tmqp_server.engine.model.feeds import FeedTimer
from tmqp_server.engine.model.handlers import built_in_handlers
from tmqp_server.engine.model.message import Wires
from tmqp_server.engine.model.queues import Queue, QueueTimer
from tmqp_server.engine.model.snapshots import BrokerStatistics
from tmqp_server.engine.model.timers import HoldTimer
from tmqp_server.engine.model.times import NEVER
from tmqp_server.engine.operations.administration import Administration
from tmqp_server.engine.operations.branches import with_branches
from tmqp_server.engine.operations.cells import Cells
from tmqp_server.engine.operations.checking import check_broker, check_options
from tmqp_server.engine.operations.clients import Clients
from tmqp_server.engine.operations.information import Information
from tmqp_server.engine.operations.nodes import Nodes
from tmqp_server.engine.operations.subscribing import Subscribing
from tmqp_server.engine.operations.survey import QueueChoice, Survey
from tmqp_server.engine.operations.surveying import Surveying
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.engine.reading.asking import StorageQuestions
from tmqp_server.engine.reading.browsing import Browsing
from tmqp_server.engine.reading.cursors import Cursors
from tmqp_server.engine.reading.groups import Groups
from tmqp_server.engine.reading.readers import Readers
from tmqp_server.engine.reading.watching import Watching
from tmqp_server.engine.routing.custom import CustomRouter
from tmqp_server.engine.routing.publishing import Publishing
from tmqp_server.engine.routing.routers import Router, Routing
from tmqp_server.engine.transactions.transactions import Transactions, TransactionTimer

__all__ = ["Broker"]

#: The most commands of one call of ``steps``; effects, and units of work, that end it.
_MOST_STEPS: Final = 64
_MOST_EFFECTS: Final = 256
_MOST_WORK: Final = 1_000
#: In a short queue packing saves little, and making the messages again takes processor time.
_PACKS_BEHIND: Final = 1_024


class Broker:
    """The broker; not thread-safe.

    *handlers* are the delivery handlers that queues may name, the built-in ones if None; *options*
    are the protocol's defaults if None; *routers* are custom routers by name.

    :raises ValueError: if the options exceed the limits or name a delivery handler that is not
        registered, or if the name of a custom router is invalid or taken.
    """

    __slots__ = (
        "limits",
        "_administration",
        "_batches",
        "_browsing",
        "_cells",
        "_clients",
        "_core",
        "_deferring",
        "_direct",
        "_events",
        "_feeder",
        "_feeds",
        "_groups",
        "_information",
        "_intake",
        "_keeper",
        "_nodes",
        "_outcomes",
        "_performers",
        "_publishing",
        "_puller",
        "_pump",
        "_readers",
        "_routing",
        "_runs",
        "_sender",
        "surveying",
        "_transactions",
        "_watching",
        "_work_per_step",
        "_workflow",
    )

    def __init__(
        self,
        limits: EngineLimits | None = None,
        options: BrokerOptions | None = None,
        handlers: HandlerRegistry | None = None,
        routers: dict[str, CustomRouter] | None = None,
    ) -> None:
        limits = EngineLimits() if limits is None else limits
        options = BrokerOptions() if options is None else options
        handlers = built_in_handlers() if handlers is None else handlers
        check_broker(limits, options, handlers)
        self.limits = limits
        self._work_per_step = limits.max_work_per_step
        self._core = core = Core(limits, options, handlers)
        directory = Directory(core)
        flights = Flights(core)
        self._outcomes = outcomes = Outcomes(core, flights, directory)
        self._sender = Sender(core, flights, self._outcomes)
        self._pump = pump = Pump(core, flights, self._outcomes, self._sender)
        self._workflow = workflow = Workflow(core, flights, outcomes, self._sender, pump)
        self._feeder = feeder = Feeder(core, flights, outcomes, self._sender, pump, workflow)
        pump.feeder = feeder
        self._feeds = feeds = Feeds(core, directory, feeder)
        self._puller = Puller(core, flights, self._outcomes, self._sender, self._workflow)
        self._direct = Direct(core)
        self._events = Subscribing(core)
        self._intake = Intake(core, directory, self._outcomes, self._workflow, self._direct)
        intake = self._intake
        self._batches = batches = Moves(core, flights, directory, outcomes, workflow, intake)
        self._deferring = Deferring(core, directory, flights, self._outcomes)
        self._runs = RunIntake(core, flights, self._workflow)
        self._routing = Routing(core)
        for name, router in (routers or {}).items():
            self._routing.add_custom(name, router)
        self._publishing = Publishing(core, self._routing, self._direct, self._intake)
        self._administration = Administration(core, directory, pump, workflow, feeds)
        self._information = Information(core)
        self._transactions = transactions = Transactions(core, flights, directory, self._pump)
        self._browsing = Browsing(core, directory, self._deferring, batches)
        self._cells = Cells(core)
        self._keeper = Keeper(
            core,
            flights,
            outcomes,
            pump,
            self._routing,
            transactions,
            batches,
            self._browsing,
            feeder,
            feeds,
        )
        self._nodes = Nodes(core, directory, self._outcomes)
        questions = StorageQuestions(core)
        self._watching = Watching(core, questions)
        cursors = Cursors(core, questions)
        self._groups = Groups(core, questions, cursors)
        self._readers = Readers(core, questions, cursors, self._groups, self._watching)
        self._clients = Clients(
            core,
            self._administration,
            self._puller,
            self._readers,
            self._watching,
            self._browsing,
            self._sender,
            self._intake.holding,
        )
        self.surveying = Surveying(core, self._clients)
        self._performers = self._table()

    def _table(self) -> Performers:
        """Which method serves which command of a connected session."""
        return {
            **self._clients.performers(),
            **self._cells.performers(),
            **self._administration.performers(),
            **self._feeds.performers(),
            Batch: self._batches.apply,
            CancelMessage: self._deferring.cancel,
            **self._browsing.performers(),
            Pull: self._puller.pull,
            Release: self._intake.release,
            Extend: self._intake.extend,
            Miss: self._intake.miss,
            **self._information.performers(),
            **self.surveying.performers(),
            **self._nodes.performers(),
            **self._routing.performers(),
            Publish: self._publishing.publish,
            **self._direct.performers(),
            SubscribeEvent: self._events.subscribe,
            **self._readers.performers(),
            **self._transactions.performers(),
            **self._groups.performers(),
        }

    def know_wires(self, reader: Wires, packs_behind: int = _PACKS_BEHIND) -> None:
        """Use *reader* to read the contents of messages, from the next message on.

        :param packs_behind: messages behind so many others of their queue wait as bytes only.
        """
        self._core.packs_behind = packs_behind
        self._core.wires = reader
        self._core.channels.gauge.wires = reader

    # --- The three ways in -----------------------------------------------------------------------

    def step(self, command: Command, now: float) -> list[Effect]:
        """Carry out one command; *now* is in monotonic seconds and never goes back.

        :raises TypeError: if it is not a command.
        :raises ValueError: if the session number of a Connect is in use.
        """
        core = self._core
        out: list[Effect] = []
        core.out = out
        core.now = now
        core.budget = self._work_per_step
        if isinstance(command, Push):
            self._intake.push(command, now)
        elif isinstance(command, Acknowledge):
            self._intake.acknowledge(command, now)
        elif isinstance(command, PushRun):
            self._push_run(command, now, command.size)
            while not command.is_over():
                if core.awake:
                    self._pump.wake_waiting(now)
                core.budget = self._work_per_step
                self._push_run(command, now, 0)
        elif isinstance(command, AcknowledgeRun):
            while not command.is_over():
                self._acknowledge_run(command, now)
                if core.awake:
                    self._pump.wake_waiting(now)
        elif isinstance(command, ClientRun):
            self._direct.take(command, command.size)
            while not command.is_over():
                self._direct.take(command, 0)
        else:
            self._perform(command)
        if core.awake:
            self._pump.wake_waiting(now)
        if core.emptied:
            self._administration.destroy_emptied()
        return out

    def steps(
        self, commands: Sequence[Command], at: int, now: float, most_bytes: int
    ) -> tuple[int, list[Effect]]:
        """Carry out commands from the index *at* on: one, or consecutive pushes, acknowledgements,
        direct messages and answers to these, within limits.  Return the index of the next command
        and the effects in order.

        Each is a separate step, but all share one list of effects; raises as :meth:`step`.
        *most_bytes* of messages end the call, so that they can be sent; the next command may then
        be a run of which a part is left.
        """
        portion = most_bytes
        core = self._core
        out: list[Effect] = []
        core.out = out
        core.now = now
        count = len(commands)
        steps = _MOST_STEPS
        while True:
            command = commands[at]
            core.budget = self._work_per_step
            at += 1
            steps -= 1
            if isinstance(command, Push):
                self._intake.push(command, now)
                most_bytes -= command.size
            elif isinstance(command, Acknowledge):
                self._intake.acknowledge(command, now)
            elif isinstance(command, PushRun):
                most_bytes -= self._push_run(command, now, portion)
                if not command.is_over():
                    at -= 1
            elif isinstance(command, AcknowledgeRun):
                self._acknowledge_run(command, now)
                if not command.is_over():
                    at -= 1
            elif isinstance(command, (SendDirect, PassAnswer)):
                self._perform(command)
                most_bytes -= command.size
            elif isinstance(command, ClientRun):
                most_bytes -= self._direct.take(command, portion)
                at -= 0 if command.is_over() else 1
            else:
                self._perform(command)
                steps = 0
            if core.awake:
                self._pump.wake_waiting(now)
            if core.emptied:
                self._administration.destroy_emptied()
            if core.budget <= 0:
                core.work += _MOST_WORK  # one message for thousands of consumers
            is_full = len(out) >= _MOST_EFFECTS or core.work >= _MOST_WORK
            if at >= count or steps <= 0 or most_bytes <= 0 or is_full:
                return at, out

    def _push_run(self, run: PushRun, now: float, most_bytes: int) -> int:
        """Carry out the whole run, if that is possible and it has no more than *most_bytes*;
        otherwise its next push.  Return how many bytes were handled."""
        if not run.left:
            if run.size <= most_bytes and self._runs.push(run, now):
                return run.size
            run.divide()
        push = run.left.pop()
        self._intake.push(push, now)
        return push.size

    def _acknowledge_run(self, run: AcknowledgeRun, now: float) -> None:
        """Carry out acknowledgements of a run: one if the run is divided, otherwise as many as
        possible up to one that lets other work continue."""
        if not run.left:
            if self._runs.acknowledge(run, now, self._work_per_step, _MOST_EFFECTS):
                return
            run.divide()
        self._intake.acknowledge(run.left.pop(), now)

    def in_flight(self) -> int:
        """Deliveries that clients have not answered."""
        return sum([each.in_flight for each in self._core.sessions.values()])

    def pushed(self, number: int) -> int:
        """Messages that a session and its branches have pushed."""
        session = self._core.sessions.get(number)
        return 0 if session is None else sum([each.pushed for each in with_branches(session)])

    def take_work(self) -> int:
        """Return the units of work since the last call; see ``Core.charge_names``."""
        work, self._core.work = self._core.work, 0
        return work

    def _perform(self, command: Command) -> None:
        self._core.change = 0
        if isinstance(command, SessionCommand):
            self._core.work += 1
            session = self._core.sessions.get(command.session)
            if session is None:
                self._core.count_stray()
            elif isinstance(command, SendDirect):
                self._direct.send(command, session)
            elif isinstance(command, PassAnswer):
                self._direct.pass_answer(command, session)
            else:
                perform = self._performers.get(type(command))
                if perform is None:
                    raise TypeError(f"not a command of this broker: {command!r}")
                perform(command, session)
        elif isinstance(command, HttpAnswered):
            self._publishing.answered(command)
        elif isinstance(command, Connect):
            self._clients.connect(command)
        elif isinstance(command, ApplyDecision):
            self._nodes.apply_decision(command)
        elif isinstance(command, ReportMaster):
            self._nodes.report_master(command)
        elif isinstance(command, ReportMembers):
            self._nodes.members = command.members
        elif not (self._keeper.perform(command) or self._readers.perform(command)):
            raise TypeError(f"not a command: {command!r}")

    def next_deadline(self) -> float | None:
        """When ``on_deadline`` is to be called, in monotonic seconds, or None.

        If work is left over, this is the time of the last step: call it immediately.
        """
        if (
            self._pump.has_work()
            or self._readers.has_work()
            or self._watching.has_work()
            or self._browsing.has_work()
            or self._batches.has_work()
            or self._feeder.has_work()
        ):
            return self._core.now
        due = self._core.wakeups.next_due()
        return None if due == NEVER else due

    def on_deadline(self, now: float) -> list[Effect]:
        """Do what is due, and continue with what was left over; harmless when too early."""
        core = self._core
        out: list[Effect] = []
        core.out = out
        core.now = now
        # Half of the work is kept for what was left over, so that neither starves the other.
        kept = self._work_per_step // 2
        core.budget = self._work_per_step - kept
        self._serve_timers(now)
        core.budget += kept
        self._batches.go_on()
        self._feeder.go_on(now)
        self._puller.go_on(now)
        self._administration.go_on()
        self._pump.go_on(now)
        self._readers.go_on()
        self._watching.go_on()
        self._browsing.go_on()
        self._serve_timers(now)
        if core.awake:
            self._pump.wake_waiting(now)
        if core.emptied:
            self._administration.destroy_emptied()
        return out

    def _serve_timers(self, now: float) -> None:
        """Serve the timers that are due."""
        core = self._core
        while core.budget > 0:
            timer = core.wakeups.take_due(now)
            if timer is None:
                return
            if isinstance(timer, QueueTimer):
                if timer.queue is not None:
                    self._workflow.wake(timer.queue, now)
            elif isinstance(timer, TransactionTimer):
                self._transactions.wake()
            elif isinstance(timer, IdleTimer):
                self._administration.wake_idle(timer)
            elif isinstance(timer, FeedTimer):
                self._feeder.wake(now)
            elif isinstance(timer, CellTimer):
                self._cells.wake()
            elif isinstance(timer, DebtTimer):
                self._outcomes.debts.wake()
            elif isinstance(timer, HoldTimer):
                self._intake.wake_held(now)
            else:
                self._watching.wake()
            core.budget -= 1  # afterwards, or the smallest budget would never get anything done

    def check_limits(self, limits: EngineLimits) -> None:
        """:raises ValueError: if the options of new channels exceed these limits."""
        check_options(limits, self._core.options)

    def limit_to(self, limits: EngineLimits) -> None:
        """Apply new limits, except for ``LASTING_LIMITS``; what exceeds them already stays."""
        self.limits = self._core.limits = limits
        self._core.limit_memory(limits.max_total_bytes)
        self._core.channels.limit_to(limits)

    # --- Routers ---------------------------------------------------------------------------------

    def set_router_enabled(self, name: str, enabled: bool) -> bool:
        """Enable or disable a router; return False if there is none of that name.

        Call :meth:`take_effects` afterwards and carry the effects out.
        """
        self._core.out = []
        self._core.change = 0
        return self._routing.enable(name, enabled)

    def router_of(self, name: str) -> Router | None:
        """The router of that name, or None."""
        return self._routing.find(name)

    def bindings_left_out(self) -> list[tuple[str, str]]:
        """The router and name of each stored binding that is no longer allowed."""
        return self._routing.left_out

    def take_effects(self) -> list[Effect]:
        """Return and clear the effects of calls that are not commands."""
        effects = self._core.out
        self._core.out = []
        return effects

    # --- Memory ----------------------------------------------------------------------------------

    def has_room_for_client(self, size: int) -> bool:
        """Whether there is memory for something of *size* bytes that a client needs."""
        return self._core.has_room_for_client(size)

    def charge(self, size: int) -> None:
        """Charge memory of connections, which the broker does not hold; a negative *size* refunds
        it."""
        self._core.charge(size)

    # --- Looking ---------------------------------------------------------------------------------

    def statistics(self) -> BrokerStatistics:
        """The counters of the whole broker; takes time proportional to the number of queues."""
        return self._information.statistics()

    def survey(self, choices: Sequence[QueueChoice] = (), most: int = 0) -> Survey:
        """Begin to collect the broker's counters in portions; see ``Survey`` for the arguments."""
        return Survey(self._core, choices, most)

    def keep_exemplars(self) -> None:
        """Keep examples of messages that have waited, for :meth:`survey`, from now on."""
        self._core.tally.keep_exemplars(self._core.wires)

    def notes(self) -> list[tuple[int, int, int, int]]:
        """The facts about saved messages that the storage does not have, for a clean stop.

        Each entry: the queue's key, the sequence under which the message is stored, its deliveries
        and its put-backs.  Takes time proportional to the number of messages in memory.
        """
        return notes_of(self.queues())

    def passes_on(self, target: str) -> bool:
        """Whether an acknowledgement for this target goes to a client: there is no such channel,
        but a client of that id (F116)."""
        core = self._core
        return target in core.clients and core.channels.find(target) is None

    def holds(self, connection: int) -> bool:
        """Whether a push of the connection is held, and with it its later commands (``Hub``)."""
        return self._intake.holding.holds(connection)

    def has_queue(self, channel: str, queue_id: int) -> bool:
        """Whether there is such a queue."""
        found = self._core.channels.find(channel)
        return found is not None and queue_id in found.queues

    def has_client(self, client_id: str) -> bool:
        """Whether a client of that id is connected."""
        return client_id in self._core.clients

    def channel_names(self, pattern: str) -> list[str]:
        """The names of the channels that pass a filter (F53), in the order of creation."""
        return self._readers.channel_names(pattern)

    def resolve(self, command: GroupCommand) -> None:
        """Find the queues of a command, before the right to use them is checked."""
        self._groups.resolve(command)

    @property
    def has_authenticators(self) -> bool:
        """Whether channels may have authenticators of their own."""
        return bool(self._core.options.authenticators)

    def authenticator_of(self, channel: str) -> str:
        """The name of the authenticator that decides about a channel instead of the server's, empty
        for none; for a missing channel, that of new channels (F71)."""
        return self._core.channels.authenticator_of(channel)

    def authenticator_changes(self) -> int:
        """A number that increases whenever :meth:`authenticator_of` may have another answer."""
        return self._core.channels.authenticator_changes

    def queues(self) -> list[Queue]:
        """All queues, for tests and tools: their books must balance after every step."""
        channels = self._core.channels.by_key.values()
        return [queue for each in channels for queue in each.queues.values()]
