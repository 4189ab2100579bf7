"""Runs cases against a peer: one after the other or several at once, with a probe after each.

A probe (a new connection, its hello and a ping) follows each case, so that a crash is the verdict
of the case that caused it.  Channels and routers that a case has made are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from tmqp import Operation
from tmqp.testing.conformance import (
    FAILURES,
    Case,
    Patience,
    Result,
    Stage,
    UnreachableError,
    Verdict,
    play,
)
from tmqp.testing.conformance.player import speaks_tmqp
from tmqp_conformance.keeper import PROBE, Keeper
from tmqp_conformance.packs.pack import Pack
from tmqp_conformance.settings import Deviation

__all__ = ["ALONE", "Plan", "Runner", "detect"]

#: Groups whose cases see or disturb concurrent cases.
ALONE: Final = frozenset({"durability", "event", "keepalive", "perf"})
_DESCRIBE_SERVER: Final = 703
#: Capabilities that are assumed; the server's answers show if it lacks them.
_USUAL: Final = ("events", "router", "small-limits", "timeouts")
_REFUSALS: Final = (400, 401, 501)
#: The states of a peer.
_TAKES_CLIENTS: Final = 1
_ANSWERS_PINGS: Final = 2


@dataclass(slots=True)
class Plan:
    """The cases to run, and the settings.

    ``run_id`` is part of all names of the run.  ``capabilities`` are those of the peer,
    ``deviations`` those that its implementer explains.  ``probe``: probe and clean up after each
    case (servers only).  ``token`` is the token of clients, ``admin_token`` that of the client that
    cleans up.  ``pack`` is the pack of the cases, if they are not about TMQP.
    """

    cases: Sequence[Case]
    run_id: str
    capabilities: frozenset[str]
    deviations: Sequence[Deviation] = ()
    patience: Patience = field(default_factory=Patience)
    jobs: int = 1
    probe: bool = True
    token: str = ""
    admin_token: str = ""
    pack: Pack | None = None


class Runner:
    """Runs the cases of a plan, each on a stage that ``make_stage`` makes."""

    def __init__(self, plan: Plan, make_stage: Callable[[], Stage]) -> None:
        self.plan = plan
        self.crashed = False
        self._health = 0
        self._make_stage = make_stage

    def results(self) -> Iterator[tuple[Result, str]]:
        """Run all cases; yield each result immediately, with its explanation or an empty text."""
        plan = self.plan
        if plan.probe:
            # A peer that fails before the first case has not crashed because of it.
            self._health = self._examine(self._make_stage(), f"{plan.run_id}h")[0]
        numbered = list(enumerate(plan.cases))
        if plan.jobs > 1:
            shared = [pair for pair in numbered if pair[1].group not in ALONE]
            numbered = [pair for pair in numbered if pair[1].group in ALONE]
            with ThreadPoolExecutor(plan.jobs) as pool:
                for result in pool.map(lambda pair: self._one(*pair), shared):
                    yield result, self._excuse(result)
        for number, each in numbered:
            result = self._one(number, each)
            yield result, self._excuse(result)

    def _one(self, number: int, each: Case) -> Result:
        plan = self.plan
        missing = [word for word in each.needs if word not in plan.capabilities]
        if missing:
            message = f"the peer does not have: {', '.join(missing)}"
            return Result(each, behaviour=Verdict.UNIMPLEMENTED, message=message)
        if self.crashed:
            return Result(each, behaviour=Verdict.ERROR, message="not run: the peer has crashed")
        suffix = f"{plan.run_id}{number:x}"
        try:
            stage = self._make_stage()
            speaks = speaks_tmqp if plan.pack is None else plan.pack.speaks
            result = play(each, stage, suffix, plan.patience, plan.token, speaks)
            if plan.probe:
                self._probe(stage, result)
        except Exception as error:  # noqa: BLE001 - a fault of the tool must not end the run
            message = f"the tool failed: {type(error).__name__}: {error}"
            return Result(each, behaviour=Verdict.ERROR, message=message)
        return result

    def _probe(self, stage: Stage, result: Result) -> None:
        before = self._health
        now, left, why = self._examine(stage, result.suffix)
        if now < before:
            self.crashed = now < _TAKES_CLIENTS
            result.behaviour = Verdict.CRASH
            result.message = f"afterwards the peer does not serve a new client: {why}"
        elif left and result.verdict is Verdict.PASS:
            result.closing = Verdict.UNCLEAN
            result.message = f"could not be removed afterwards: {left}"

    def _examine(self, stage: Stage, suffix: str) -> tuple[int, str, str]:
        """Return the state of the peer, what could not be removed, and its fault."""
        pack = self.plan.pack
        if pack is not None:
            probe = play(pack.probe, stage, f"{suffix}p", self.plan.patience, speaks=pack.speaks)
            lives = probe.verdict is Verdict.PASS
            return _ANSWERS_PINGS if lives else 0, "", probe.message
        health = 0
        try:
            keeper = Keeper(stage, suffix, self.plan.patience, self.plan.admin_token)
            try:
                health = _TAKES_CLIENTS
                keeper.ping()
                health = _ANSWERS_PINGS
                left = keeper.clean_up(suffix) if "admin" in self.plan.capabilities else ""
            finally:
                keeper.close()
        except UnreachableError as error:
            return health, "", str(error)
        return health, left, ""

    def _excuse(self, result: Result) -> str:
        """Excuse a failure that the implementer explains; returns the explanation."""
        if result.verdict not in FAILURES or result.verdict is Verdict.CRASH:
            return ""
        for deviation in self.plan.deviations:
            if deviation.covers(result.case.id):
                result.message = f"{result.verdict}: {result.message}"
                result.behaviour = Verdict.EXCUSED
                result.closing = Verdict.PASS
                return f"{deviation.reason} {deviation.link}".strip()
        return ""


def detect(stage: Stage, run_id: str, patience: Patience, token: str = "") -> frozenset[str]:
    """Detect the capabilities of a server with requests.

    :raises UnreachableError: if no server listens.
    """
    stage.open("detect", PROBE).close("end")
    found = {*_USUAL}
    try:
        keeper = Keeper(stage, f"{run_id}d", patience, token)
    except UnreachableError:
        return frozenset(found)
    try:
        _ask_about(keeper, f"{run_id}d", found)
    except UnreachableError:
        pass  # the cases will report the fault
    finally:
        keeper.close()
    return frozenset(found)


def _ask_about(keeper: Keeper, suffix: str, found: set[str]) -> None:
    """Add the capabilities that the server's answers show."""
    channel = f"detect-{suffix}"
    code, _ = keeper.ask(Operation.CHANNEL_LIST, headers=(("Channel-Name", channel),))
    if code == 0:
        found.add("admin")
    code, _ = keeper.ask(_DESCRIBE_SERVER)
    if code == 0:
        found.add("extensions")
    code, _ = keeper.ask(Operation.LIST_ROUTERS)
    if code in _REFUSALS:
        found.discard("router")
    for word, queue, body in (
        ("durability", 1, b'{"Durable":true}'),
        ("pull", 2, b'{"Status":3}'),
        ("cache", 3, b'{"Status":4}'),
    ):
        ids = (("Queue-Id", str(queue)),)
        code, _ = keeper.ask(Operation.CREATE_QUEUE, channel, body, ids)
        # A server that does not know the option ignores it instead of refusing it.
        if code == 0 and (word != "durability" or "extensions" in found):
            found.add(word)
    headers = (("Queue-Id", "4"), ("Delivery-Handler", "ack-consumer"))
    code, _ = keeper.ask(Operation.CREATE_QUEUE, channel, headers=headers)
    if code == 0:
        found.add("handlers")
    if "admin" in found:
        keeper.clean_up(suffix)
