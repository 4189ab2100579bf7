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
from tmqp_conformance.keeper import Keeper
from tmqp_conformance.settings import Deviation

__all__ = ["ALONE", "Plan", "Runner", "detect"]

#: Groups whose cases see, or disturb, what others do at the same time.
ALONE: Final = frozenset({"durability", "event", "keepalive", "perf"})
#: Capabilities that a server is taken to have: where it has not, its answers show it.
_USUAL: Final = ("events", "router", "small-limits", "timeouts")
_RESPONSES_THAT_REFUSE: Final = (400, 401, 501)


@dataclass(slots=True)
class Plan:
    """What is run, and how.

    ``run_id`` is in all names of the run.  ``capabilities`` the peer has; ``deviations`` its
    implementer explains.  ``probe``: probe and clean up after each case (servers only).
    ``token`` is what clients show, ``admin_token`` what the client that cleans up shows.
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


class Runner:
    """Runs the cases of a plan, each on a stage that ``make_stage`` makes."""

    def __init__(self, plan: Plan, make_stage: Callable[[], Stage]) -> None:
        self.plan = plan
        self.crashed = False
        self._make_stage = make_stage

    def results(self) -> Iterator[tuple[Result, str]]:
        """Run all cases; each result as soon as it is there, with its excuse or an empty text."""
        plan = self.plan
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
            result = play(each, stage, suffix, plan.patience, plan.token)
            if plan.probe:
                self._probe(stage, result)
        except Exception as error:  # noqa: BLE001 - a fault of the tool must not end the run
            message = f"the tool failed: {type(error).__name__}: {error}"
            return Result(each, behaviour=Verdict.ERROR, message=message)
        return result

    def _probe(self, stage: Stage, result: Result) -> None:
        try:
            keeper = Keeper(stage, result.suffix, self.plan.patience, self.plan.admin_token)
            try:
                keeper.ping()
                left = ""
                if "admin" in self.plan.capabilities:
                    left = keeper.clean_up(result.suffix)
            finally:
                keeper.close()
        except UnreachableError as error:
            self.crashed = True
            result.behaviour = Verdict.CRASH
            result.message = f"afterwards the peer does not serve a new client: {error}"
            return
        if left and result.verdict is Verdict.PASS:
            result.closing = Verdict.UNCLEAN
            result.message = f"could not be removed afterwards: {left}"

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
    """Find out what a server has, by asking it.

    :raises UnreachableError: when it does not take a client, so that nothing can be tested.
    """
    found = {*_USUAL}
    channel = f"detect-{run_id}d"
    keeper = Keeper(stage, f"{run_id}d", patience, token)
    try:
        keeper.ping()
        code, _ = keeper.ask(Operation.CHANNEL_LIST, headers=(("Channel-Name", channel),))
        if code == 0:
            found.add("admin")
        for word, queue, body in (
            ("durability", 1, b'{"Durable":true}'),
            ("pull", 2, b'{"Status":3}'),
            ("cache", 3, b'{"Status":4}'),
        ):
            headers = (("Queue-Id", str(queue)),)
            code, _ = keeper.ask(Operation.CREATE_QUEUE, channel, body, headers)
            if code == 0:
                found.add(word)
        code, _ = keeper.ask(703)
        if code == 0:
            found.add("extensions")
        code, _ = keeper.ask(Operation.LIST_ROUTERS)
        if code in _RESPONSES_THAT_REFUSE:
            found.discard("router")
        if "extensions" not in found:
            # Who ignores the option has not refused it either.
            found.discard("durability")
        if "admin" in found:
            keeper.clean_up(f"{run_id}d")
    finally:
        keeper.close()
    return frozenset(found)
