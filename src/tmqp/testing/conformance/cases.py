"""A case: its script, its reason, and the rules of the protocol that it checks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from tmqp.testing.conformance.steps import Answer, Hear, Open, Step
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CAPABILITIES", "Bounds", "Case", "Script", "case", "flatten"]

#: Optional capabilities of peers; a case that needs a missing one is *unimplemented*.
CAPABILITIES: Final = {
    "acl": "an operation is refused to the given user",
    "admin": "the tester may use the operations marked admin",
    "cache": "queues with the status Cache",
    "durability": "queues with the option Durable",
    "events": "subscriptions to events",
    "extensions": "the operations from 700 on",
    "handlers": "the delivery handlers ack-received, ack-sent, ack-consumer, reject, reject-nack,"
    " putback-start and putback-end",
    "http-bindings": "HTTP bindings of routers",
    "keep-alive": "pings from the peer within the time that --keep-alive says",
    "pull": "queues with the status Pull",
    "reconnect": "the client connects again by itself when it has lost its connection",
    "restart-hook": "the tester can restart the peer (--restart-cmd)",
    "router": "routers",
    "small-limits": "limits of 1 MiB or less for payloads, 16 KiB for hellos",
    "timeouts": "acknowledgement timeouts below a second",
}
_ID: Final = re.compile(r"(server|client)\.[a-z0-9]+(?:-[a-z0-9]+)*\.[a-z0-9]+(?:-[a-z0-9]+)*")
_RULE: Final = re.compile(r"[A-Z][1-9]\d{0,2}|rule-[a-z0-9-]+|x-[a-z0-9-]+")

#: Steps, and sequences of steps as the helpers return them.
Script: TypeAlias = "Sequence[Step | Sequence[Step]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of a case."""

    seconds: float = 30.0
    received_bytes: int = 33_554_432
    connections: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case.

    ``id`` is ``role.group.name`` and never changes.  ``why`` is one sentence that a stranger
    understands.  ``requires`` are ids of rules in docs/protocol.md: ``F48``, ``rule-source``,
    ``x-deferred``.  ``needs`` are keys of :data:`CAPABILITIES`.  ``task`` is the task of a client
    under test.  ``pongs``: the player answers pings that the case does not expect.  ``loose``:
    messages after the script's answers are ignored.
    """

    id: str
    title: str
    why: str
    requires: tuple[str, ...]
    steps: tuple[Step, ...]
    level: Level = Level.MUST
    needs: tuple[str, ...] = ()
    task: str = ""
    pongs: bool = True
    loose: bool = False
    bounds: Bounds = field(default_factory=Bounds)
    since: str = "2.0"

    @property
    def role(self) -> str:
        """Which side is under test, ``server`` or ``client``."""
        return self.id.partition(".")[0]

    @property
    def group(self) -> str:
        """The subject."""
        return self.id.split(".")[1]

    def place(self, line: str) -> str:
        """Return the address of the peer at which a line is opened; empty for the first."""
        opened = (step for step in self.steps if isinstance(step, Open) and step.line == line)
        return next((step.at for step in opened), "")

    @property
    def outcomes(self) -> list[Answer]:
        """All acceptable answers, in the order of the script."""
        return [answer for step in self.steps if isinstance(step, Hear) for answer in step.answers]


def flatten(script: Script) -> Iterator[Step]:
    """Return the steps of a script as one list."""
    for each in script:
        if isinstance(each, Sequence):
            yield from each
        else:
            yield each


def case(
    id: str,
    title: str,
    why: str,
    requires: str,
    *script: Step | Sequence[Step],
    level: Level = Level.MUST,
    needs: str = "",
    task: str = "",
    pongs: bool = True,
    loose: bool = False,
    bounds: Bounds | None = None,
    known: Collection[str] = CAPABILITIES,
) -> Case:
    """Make a case.

    :param requires: rule ids, separated by spaces.
    :param needs: capabilities, separated by spaces; ``known`` are the existing ones.
    :raises ValueError: if an id, a rule or a capability is invalid, or a text is missing.
    """
    rules = tuple(requires.split())
    wanted = tuple(needs.split())
    if _ID.fullmatch(id) is None:
        raise ValueError(f"the id of a case is role.group.name in small letters, not {id!r}")
    if not rules or not all(map(_RULE.fullmatch, rules)):
        raise ValueError(
            f"{id}: rules are written F48, rule-source or x-deferred, not {requires!r}"
        )
    if not set(wanted) <= set(known):
        raise ValueError(f"{id}: unknown capability in {needs!r}")
    if not title or not why.endswith("."):
        raise ValueError(f"{id}: a case has a title, and a reason that is a sentence")
    steps = tuple(flatten(script))
    if not any(isinstance(step, Hear) for step in steps):
        raise ValueError(f"{id}: a case that expects nothing cannot fail")
    return Case(
        id=id,
        title=title,
        why=why,
        requires=rules,
        steps=steps,
        level=level,
        needs=wanted,
        task=task,
        pongs=pongs,
        loose=loose,
        bounds=bounds or Bounds(),
    )
