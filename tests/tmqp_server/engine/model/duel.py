"""The duel: one broker and one model, given the same commands at the same times.

After every command the broker is let finish (a step may leave work for later), its effects are
turned into words, and words and books are compared with the model's.  A difference is a failure
that shows both.  What must hold without any model is asked of the broker as well: the books
balance (C6), nothing is in two hands that may be in one (C4), no time comes early (C8).
"""

from __future__ import annotations

from tests.tmqp_server.engine.model.broker import ModelBroker
from tests.tmqp_server.engine.model.desk import Settings
from tests.tmqp_server.engine.model.things import Word
from tests.tmqp_server.engine.model.words import Translator, differences, queue_shown
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Command, Synced
from tmqp_server.engine.effects import Deliver, DeliverPulled, Effect
from tmqp_server.engine.events import NO_EVENTS
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.snapshots import QueueSnapshot
from tmqp_server.engine.options import BrokerOptions, ChannelOptions, QueueOptions

__all__ = ["Duel", "limits_of"]


def limits_of(settings: Settings, max_work_per_step: int) -> EngineLimits:
    """The broker's limits for the model's settings."""
    return EngineLimits(
        max_sessions=settings.sessions,
        max_channels=settings.channels,
        max_queues_per_channel=settings.queues,
        max_messages_per_queue=settings.messages,
        max_message_bytes=settings.message_bytes,
        max_queue_bytes=settings.queue_bytes,
        max_total_bytes=settings.total_bytes,
        max_put_backs=settings.put_backs,
        max_dead_letter_hops=settings.hops,
        max_pull_count=settings.pull_count,
        max_pulls_per_session=settings.pulls,
        max_routers=settings.routers,
        max_bindings_per_router=settings.bindings,
        max_acknowledge_timeout_ms=settings.acknowledge_timeout_ms,
        max_work_per_step=max_work_per_step,
    )


class Duel:
    """A broker beside its model."""

    def __init__(
        self,
        settings: Settings | None = None,
        defaults: dict[str, object] | None = None,
        max_work_per_step: int = 1_000,
    ) -> None:
        settings = settings or Settings()
        queue = QueueOptions(**(defaults or {}))  # type: ignore[arg-type]
        options = BrokerOptions(channel=ChannelOptions(queue=queue), events=NO_EVENTS)
        self.broker = Broker(limits_of(settings, max_work_per_step), options)
        self.model = ModelBroker(settings, defaults)
        self.translator = Translator()
        self.now = 100.0
        self.steps = 0
        self.work = max_work_per_step
        #: The most deliveries one step made.
        self.longest = 0
        self.words: list[Word] = []

    # --- Steps -----------------------------------------------------------------------------------

    def do(self, command: Command) -> list[Word]:
        """Give both the command; what was said."""
        effects = self.see(self.broker.step(command, self.now))
        return self.compare(repr(command), effects, self.model.step(command, self.now))

    def do_all(self, commands: list[Command]) -> list[Word]:
        """Give both several commands, the broker as many at a time as it takes."""
        effects: list[Effect] = []
        at = 0
        while at < len(commands):
            at, some = self.broker.steps(commands, at, self.now, 1_000_000)
            effects += self.see(some)
        expected = [word for each in commands for word in self.model.step(each, self.now)]
        return self.compare(f"{len(commands)} commands: {commands!r}", effects, expected)

    def wait(self, seconds: float) -> list[Word]:
        """Let time pass, from one deadline of the broker to the next."""
        end = self.now + seconds
        words: list[Word] = []
        for _ in range(10_000):
            deadline = self.broker.next_deadline()
            due = self.model_due()
            late = due is not None and (deadline is None or deadline > due)
            assert not late, f"at {self.now}: due {due}, the broker says {deadline}"
            if deadline is None or deadline > end:
                self.now = end
                return words
            self.now = max(self.now, deadline)
            effects = self.see(self.broker.on_deadline(self.now))
            words += self.compare("time", effects, self.model.pass_time(self.now))
        raise AssertionError("the broker always wants to be called at once")

    def model_due(self) -> float | None:
        """When the next thing is due by the model."""
        moments = [self.model.next_due(line) for line in self.model.lines()]
        moments += [channel.look_at for channel in self.model.channels.values()]
        return min([moment for moment in moments if moment is not None], default=None)

    def sync(self, ticket: int, ok: bool) -> list[Word]:
        """The storage answers for a ticket."""
        named = self.translator.open.pop(ticket)
        effects = self.see(self.broker.step(Synced(ticket, ok), self.now))
        return self.compare(f"synced {named}", effects, self.model.synced(named, ok, self.now))

    def see(self, effects: list[Effect]) -> list[Effect]:
        """The effects of a step, and of all it left for later."""
        self.measure(effects)
        for _ in range(10_000):
            deadline = self.broker.next_deadline()
            if deadline is None or deadline > self.now:
                return effects
            later = self.broker.on_deadline(self.now)
            self.measure(later)
            effects = effects + later
        raise AssertionError("the broker always wants to be called at once")

    def measure(self, effects: list[Effect]) -> None:
        """Count what one step sent (F8)."""
        sent = sum(1 for effect in effects if isinstance(effect, (Deliver, DeliverPulled)))
        self.longest = max(self.longest, sent)
        assert sent <= 2 * self.work + 4, "a step without end"

    # --- Comparing -------------------------------------------------------------------------------

    def compare(self, what: str, effects: list[Effect], expected: list[Word]) -> list[Word]:
        """Fail if words or books differ."""
        self.steps += 1
        said = self.translator.words(effects)
        found = differences(expected, said, what == "time") + self.books()
        if found:
            shown = "\n  ".join(found)
            raise AssertionError(f"at {self.now} after {what}\n  {shown}")
        self.words = said
        return said

    def books(self) -> list[str]:
        """Where the books of broker and model differ, or do not balance (C6)."""
        found = []
        queues = self.broker.queues()
        real = {(queue.channel_name, queue.queue_id): QueueSnapshot(queue) for queue in queues}
        wanted = {line.place: line.snapshot() for line in self.model.lines()}
        if sorted(real) != sorted(wanted):
            found.append(f"queues: expected {sorted(wanted)}, there are {sorted(real)}")
        for place in sorted(set(real) & set(wanted)):
            shown = queue_shown(real[place])
            found += [
                f"{place} {name}: expected {value}, is {shown[name]}"
                for name, value in wanted[place].items()
                if shown[name] != value
            ]
            found += self.balance(place, real[place])
        state, expected = self.broker.statistics().state_bytes, self.model.state()
        if state != expected:
            found.append(f"memory of all but messages: expected {expected}, is {state}")
        found += [f"{line.place}: model" for line in self.model.lines() if line.imbalance()]
        return found

    def balance(self, place: tuple[str, int], shown: QueueSnapshot) -> list[str]:
        """Conservation, in the broker's own figures (C6)."""
        places = shown.priority_messages + shown.messages + shown.deferred + shown.in_flight
        ends = shown.done + shown.expired + shown.dead + shown.cleared + shown.dropped
        if shown.accepted == places + ends:
            return []
        return [f"{place}: {shown.accepted} accepted, {places} here, {ends} ended"]
