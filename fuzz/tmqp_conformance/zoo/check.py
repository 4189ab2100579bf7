"""The suite tested by the zoo: each broken peer must get its verdicts, and no others.

``expected.json`` has, for the cases of the test, the verdicts of each broken peer that are not
PASS.  The whole peers must pass them all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeAlias, cast

from tmqp.testing.conformance import (
    CAPABILITIES,
    Machine,
    MemoryStage,
    Patience,
    Verdict,
)
from tmqp_conformance.packs import PACKS
from tmqp_conformance.packs.memory import PackMachine, PackMemoryStage
from tmqp_conformance.runner import Plan, Runner
from tmqp_conformance.suite import find
from tmqp_conformance.zoo.broken_clients import BROKEN_CLIENTS
from tmqp_conformance.zoo.broken_openwire import BROKEN_OPENWIRE
from tmqp_conformance.zoo.broken_servers import BROKEN_SERVERS
from tmqp_conformance.zoo.broken_stomp import BROKEN_STOMP
from tmqp_conformance.zoo.client import SmallClient
from tmqp_conformance.zoo.goms import BROKEN_GOMS, SmallGoms
from tmqp_conformance.zoo.nsq import BROKEN_NSQ, SmallNsq
from tmqp_conformance.zoo.openwire import SmallOpenwire
from tmqp_conformance.zoo.server import SmallServer
from tmqp_conformance.zoo.smq import BROKEN_SMQ, SmallSmq
from tmqp_conformance.zoo.stomp import SmallStomp
from tmqp_conformance.zoo.throttr import BROKEN_THROTTR, SmallThrottr
from tmqp_conformance.zoo.zmtp import BROKEN_ZMTP, SmallZmtp

__all__ = ["WHOLE", "Animal", "Finding", "animals", "check", "observe"]

#: The name of the peers that are right.
WHOLE: Final = "whole"
_Broken: TypeAlias = Mapping[str, tuple[str, Callable[[], Machine]]]
_CAPABILITIES: Final = frozenset(CAPABILITIES) - {"admin", "keep-alive", "restart-hook"}


@dataclass(frozen=True, slots=True)
class Animal:
    """A peer of the zoo: what is wrong with it, and how to make one.

    ``role`` is ``server``, ``client``, or the name of the pack that a server of another protocol is
    tested by.
    """

    name: str
    role: str
    fault: str
    make: Callable[[], Machine]

    def stage(self) -> MemoryStage:
        """A stage with a new one on it."""
        machine = self.make()
        if self.role in PACKS:
            return PackMemoryStage(cast("PackMachine", machine))
        return MemoryStage(machine)


@dataclass(slots=True)
class Finding:
    """What the suite said about an animal: the verdicts that are not PASS, and the right ones."""

    animal: Animal
    found: dict[str, str]
    expected: dict[str, str]
    messages: dict[str, str] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """The verdicts are those, and no others."""
        return self.found == self.expected

    @property
    def differences(self) -> list[str]:
        """A sentence for each verdict that is not as it must be."""
        return [
            f"{name}: {self.found.get(name, 'pass')}, not {self.expected.get(name, 'pass')}"
            f" ({self.messages.get(name, '')})"
            for name in sorted({*self.found, *self.expected})
            if self.found.get(name) != self.expected.get(name)
        ]


@cache
def _expectations() -> dict[str, Any]:
    text = files("tmqp_conformance.zoo").joinpath("expected.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def animals() -> list[Animal]:
    """Every peer of the zoo, the whole ones first."""
    houses: tuple[tuple[str, Callable[[], Machine], _Broken], ...] = (
        ("server", SmallServer, BROKEN_SERVERS),
        ("client", SmallClient, BROKEN_CLIENTS),
        ("nsq", SmallNsq, BROKEN_NSQ),
        ("smq", SmallSmq, BROKEN_SMQ),
        ("goms", SmallGoms, BROKEN_GOMS),
        ("zmtp", SmallZmtp, BROKEN_ZMTP),
        ("throttr", SmallThrottr, BROKEN_THROTTR),
        ("stomp", SmallStomp, BROKEN_STOMP),
        ("openwire", SmallOpenwire, BROKEN_OPENWIRE),
    )
    found = []
    for role, whole, broken in houses:
        found.append(Animal(WHOLE, role, "nothing", whole))
        found += [Animal(name, role, *rest) for name, rest in broken.items()]
    return found


def observe(animal: Animal, ids: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Run cases against an animal in memory: the verdicts that are not PASS, and the messages.

    Each case has an animal of its own: a crash must not hide what follows.
    """
    verdicts, messages = {}, {}
    for number, name in enumerate(ids):
        case = find(name)
        if case is None:
            raise ValueError(f"the self-test names a case that does not exist: {name}")
        stage = animal.stage()
        pack = PACKS.get(animal.role)
        plan = Plan(
            cases=[case],
            run_id=f"z{number}x",
            capabilities=_CAPABILITIES if pack is None else frozenset(pack.places),
            patience=Patience(),
            probe=animal.role != "client",
            pack=pack,
        )
        for result, _ in Runner(plan, lambda stage=stage: stage).results():  # type: ignore[misc]
            if result.verdict is not Verdict.PASS:
                verdicts[name] = str(result.verdict)
                messages[name] = result.message
    return verdicts, messages


def check() -> Iterator[Finding]:
    """Examine every animal."""
    expectations = _expectations()
    for animal in animals():
        table = expectations[animal.role]
        found, messages = observe(animal, table["cases"])
        expected = {} if animal.name == WHOLE else table["animals"].get(animal.name, {})
        yield Finding(animal, found, expected, messages)
