"""A group of two or three servers over one log, its faults, and what must hold.

Theory of operation.  A seed draws the group, its links, its clocks and its faults.  For a while the
faults happen and clients do what they can; then everything is healed, and within a minute all
items must be confirmed and every server must have the whole log.

*What must hold.*  A number of the log has the same bytes for everybody, and what each server has
at a number is the same.  A claim is one server's, once.  Who begins to lead has all that is in the
log.  Nothing is kept, and so nothing is answered, that is not in the log.  No server loses what it
still needs of the log.  What was confirmed is received or owed (``traffic``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tmqp_server.storage.log import Leader, LogEntry, Resign
from tmqp_server.storage.logged import BEGIN, LogReader
from tmqp_server.storage.port import DamageError
from tmqp_sim.replicas.links import Link, LinkHabits
from tmqp_sim.replicas.log_server import LogServer
from tmqp_sim.replicas.nodes import Node
from tmqp_sim.replicas.rebuilders import begin_rebuilding
from tmqp_sim.replicas.stores import Disk
from tmqp_sim.replicas.traffic import Traffic
from tmqp_sim.world import Violation, World

__all__ = ["Group", "run_group"]

#: How long faults happen, and how long the group has to recover, in simulated seconds.
_FAULTS_S: Final = 30.0
_HEALING_S: Final = 60.0
#: How many entries the log may have once everybody has everything and it was trimmed.
_MOST_LEFT: Final = 200
_NAMES: Final = ("a", "b", "c")
_CLEAN: Final = LinkHabits(0.004, 0.0, 0.0, 0.0)


class Group:
    """The world of a seed."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        random = self.world.child("plan")
        self._faults = self.world.child("faults")
        self._crashes = self.world.child("crashes")
        self._crash_chance = random.choice((0.0, 0.0, 0.001, 0.004))
        self.is_over = False
        self.most_entry_bytes = random.choice((200, 1 << 20))
        self.lease_s = random.choice((0.5, 2.0))
        self.watch_s = random.choice((0.3, 2.0))
        self.carries = random.choice((0.05, 0.5))
        #: Whether a server that is silent for a while may lose what it needs.
        self._forgets = self.world.child("forgetting").random() < 0.25
        self.forget_s = 3.0 if self._forgets else 10_000.0
        log_drift = 1.0 + random.uniform(-0.05, 0.05)
        self.log = LogServer(lambda: self.world.now * log_drift)
        self._habits = LinkHabits(
            random.choice((0.004, 0.05)),
            random.choice((0.0, 0.02, 0.1)),
            random.choice((0.0, 0.02)),
            random.choice((0.0, 0.05)),
        )
        self.nodes = [
            Node(
                self,
                name,
                Link(self.world, self.log, self._habits, self.world.child(f"link {name}"), 0.3),
                1.0 + random.uniform(-0.05, 0.05),
            )
            for name in _NAMES[: random.choice((2, 3, 3))]
        ]
        self.traffic = Traffic(self.world, random.randint(20, 60))
        self.digests: dict[int, tuple[str, str]] = {}
        self._led: dict[int, str] = {}
        self._kinds = random.sample(list(self._all_faults()), random.randint(0, 7))

    # -- what servers tell ----------------------------------------------------------------------

    def crashes_now(self, node: Node) -> bool:
        """Whether a server crashes before it does what comes next."""
        return not self.is_over and self._crashes.random() < self._crash_chance

    def compare(self, name: str, number: int, digest: str) -> None:
        """A server has a digest at a number."""
        other, known = self.digests.setdefault(number, (name, digest))
        if known != digest:
            raise Violation("digest", f"{name} and {other} differ at entry {number}")

    def leads(self, node: Node, leader: Leader) -> None:
        """A server begins to lead."""
        epoch = leader.epoch
        self.world.note("leads", node.name, epoch)
        life = f"{node.name}, life {node.lives}"
        if epoch in self._led or self.log.claims[epoch].token != life:
            raise Violation("epoch", f"{life} leads in epoch {epoch}, which is not its own")
        self._led[epoch] = life
        begins = 0
        for number in range(self.log.last, 0, -1):
            head = self.log.history[number]
            if head[6] == BEGIN and int.from_bytes(head[24:32], "little") == epoch:
                begins = number
                break
        if not begins or node.store.writes.applied != begins:
            applied = node.store.writes.applied
            raise Violation("promotion", f"{life} has {applied}, and began with entry {begins}")

    def lost_too_much(self, node: Node, reason: str) -> None:
        """The log does not have any more what a server needs."""
        if node.disk.has_joined and not self._forgets:
            raise Violation("trimmed", f"{node.name} needs it still: {reason}")
        what = "a standby" if node.disk.has_joined else "a new disk"
        self.world.mark(f"{what} came too late for the log")
        random = self.world.child(f"rebuilder {node.name} {node.lives}")
        self.world.after(1.0, begin_rebuilding, self, node, random)

    # -- faults ---------------------------------------------------------------------------------

    def _all_faults(self) -> dict[str, Callable[[Node], None]]:
        return {
            "crash": self._crash,
            "freeze": lambda node: node.freeze(self._faults.choice((0.3, 3.0, 6.0))),
            "cut there": self._cut_there,
            "cut back": self._cut_back,
            "replace": self._replace,
            "stop": self._stop,
            "new disk": self._new_disk,
            "clock": self._step_clock,
        }

    def _crash(self, node: Node) -> None:
        node.crash()
        self.world.after(self._faults.random() * 4.0, node.boot)

    def _cut_there(self, node: Node) -> None:
        node.link.cut_there = True
        self.world.after(self._faults.random() * 5.0, self._mend, node)

    def _cut_back(self, node: Node) -> None:
        node.link.cut_back = True
        self.world.after(self._faults.random() * 5.0, self._mend, node)

    def _mend(self, node: Node) -> None:
        node.link.cut_there = node.link.cut_back = False

    def _replace(self, node: Node) -> None:
        """Its claim is given back behind the back of a leader, as by its next life elsewhere."""
        leader = self.log.leader()
        if leader is not None:
            self.world.mark("a leader lost its claim")
            self.log.ask(Resign(leader))

    def _stop(self, node: Node) -> None:
        node.stop()

    def _new_disk(self, node: Node) -> None:
        others = [each for each in self.nodes if each is not node and each.disk.number]
        if any(each.disk.number + 1 >= self.log.first for each in others):
            self.world.mark("a disk was replaced")
            node.crash()
            node.disk = Disk(f"store of {node.name}, disk {self.world.events}")
            self.world.after(self._faults.random() * 4.0, node.boot)

    def _step_clock(self, node: Node) -> None:
        node.wall_error_us = self._faults.choice((-3_600, 0, 3_600)) * 1_000_000

    def _fault(self) -> None:
        if not self.is_over:
            kind = self._faults.choice(self._kinds)
            node = self._faults.choice(self.nodes)
            self.world.note("fault", kind, node.name)
            self._all_faults()[kind](node)
            self.world.after(self._faults.expovariate(0.5), self._fault)

    def _heal(self) -> None:
        self.is_over = True
        self.world.note("healed")
        for node in self.nodes:
            self._mend(node)
            node.link.habits = _CLEAN
            node.wall_error_us = 0
            node.boot()

    # -- the run --------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """A client wants something of a server that lets it in."""
        serving = [node for node in self.nodes if node.serves]
        if serving:
            if len(serving) > 1:
                self.world.mark("two servers believed to lead")
            self.traffic.random.choice(serving).want(self.traffic.next_wanted())
        self.world.after(self.traffic.random.expovariate(5.0), self._go_on)

    def run(self) -> None:
        """All of it.

        :raises Violation: when something does not hold.
        """
        for node in self.nodes:
            self.world.after(self._faults.random(), node.boot)
        if self._kinds:
            self.world.after(1.0, self._fault)
        self._go_on()
        self.world.run(_FAULTS_S)
        self._heal()
        if not self.world.run(_FAULTS_S + _HEALING_S, self._is_healthy):
            states = [
                (each.name, each.is_up, each.serves, each.life.state, each.store.writes.applied)
                for each in self.nodes
            ]
            raise Violation(
                "liveness",
                f"after {_HEALING_S:g} s: {states}, log {self.log.first}..{self.log.last},"
                f" {len(self.traffic.confirmed)} of {self.traffic.items} confirmed",
            )
        self._check_quiet()

    def _is_healthy(self) -> bool:
        return (
            self.traffic.is_done
            and self.world.now > _FAULTS_S + 10.0
            and sum(node.serves for node in self.nodes) == 1
            and all(node.store.writes.applied == self.log.last for node in self.nodes)
            and self.log.last - self.log.first < _MOST_LEFT
        )

    def _check_quiet(self) -> None:
        """Once all is well it stays so, and all that ever was fits together."""
        leader = next(node for node in self.nodes if node.serves)
        epochs = len(self.log.claims)
        until = self.world.now + 6.0
        self.world.run(until)
        if len(self.log.claims) != epochs:
            raise Violation("liveness", "the leader changed although nothing was wrong")
        if self.log.first < self.log.last // 4:
            raise Violation("trimming", f"the log has {self.log.first}..{self.log.last}")
        reader = LogReader()
        writes = []
        try:
            for number in range(1, self.log.last + 1):
                logged = reader.read(LogEntry(number, self.log.history[number]))
                if logged is not None:
                    writes.append(logged)
        except DamageError as error:
            raise Violation("log", f"what was written cannot be read: {error}") from None
        self.traffic.check(leader.store.memory, writes)
        if self.log.refused:
            self.world.mark("an append was refused")


def run_group(seed: int) -> Group:
    """Run a seed.

    :raises Violation: when something does not hold.
    """
    group = Group(seed)
    try:
        group.run()
    except Violation as violation:
        text = "\n".join([violation.text, *group.world.recent()])
        raise Violation(violation.checker, f"seed {seed}: {text}") from None
    return group
