"""The model fuzzer: generates sessions, plays several concurrently, and minimises failing ones.

A session depends only on its seed: it has its own connections and names, and each action is
answered before the next one begins.  So a failure can be replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from typing import Final

from tmqp.testing import Seeded
from tmqp.testing.conformance import Entry, Patience, Stage, UnreachableError
from tmqp_conformance.fuzzing.model import CHANNELS, LINES, Act, Model, WrongError
from tmqp_conformance.fuzzing.session import Session, play_acts
from tmqp_conformance.fuzzing.shrinking import shorter, smallest
from tmqp_conformance.keeper import PROBE

__all__ = ["ModelFinding", "ModelFuzzer"]

#: How often a failure is replayed, to distinguish a race from a deterministic fault.
_REPLAYS: Final = 10
#: How often each kind of action is drawn, compared with the others.
_WEIGHTS: Final = {
    "push": 8,
    "join": 4,
    "connect": 4,
    "acknowledge": 4,
    "pull": 3,
    "refuse": 2,
    "leave": 2,
    "vanish": 1,
}
#: Kinds that a session may do without, so that others happen in a row.
_OPTIONAL: Final = ("acknowledge", "refuse", "pull", "leave", "vanish")


@dataclass(slots=True)
class ModelFinding:
    """A failing session after minimisation: the actions, and the fault.

    ``seed`` generates it; of ``replays`` replays, ``again`` failed.
    """

    message: str
    acts: list[Act]
    entries: list[Entry]
    seed: int
    again: int = 0
    replays: int = 0


@dataclass(slots=True)
class ModelFuzzer:
    """Fuzzes one server; ``played`` counts sessions, ``done`` the actions by their kind.

    ``number`` is the seed of the first session, the others follow; a session has ``steps`` actions
    at most and half of them at least.  ``timeout_s``: see :meth:`Session.finish`.  ``jobs``
    sessions are played at once.
    """

    stage: Stage
    run: str
    number: int
    steps: int
    patience: Patience
    timeout_s: float = 0.0
    jobs: int = 1
    played: int = 0
    done: Counter[str] = field(default_factory=Counter)
    last: ModelFinding | None = None
    _numbers: count[int] = field(init=False)
    _suffixes: count[int] = field(default_factory=lambda: count(1))
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._numbers = count(self.number)

    def search(self, go_on: Callable[[], bool]) -> ModelFinding | None:
        """Play sessions while ``go_on`` says so; returns the first that goes wrong, shortened."""
        if self.jobs == 1:
            self._work(go_on)
        else:
            with ThreadPoolExecutor(self.jobs) as pool:
                for worker in [pool.submit(self._work, go_on) for _ in range(self.jobs)]:
                    worker.result()
        return self._confirmed()

    def _work(self, go_on: Callable[[], bool]) -> None:
        while go_on() and self.last is None:
            self._one(next(self._numbers))

    def _one(self, number: int) -> None:
        """Draw and play one session."""
        draw = _Draw(number)
        session = Session(self.stage, self._suffix(), self.patience)
        wrong = ""
        try:
            session.begin()
            for _ in range(self.steps - draw.below(self.steps // 2 + 1)):
                session.do(draw.act(session.model, f"m{len(session.acts)}"))
            session.finish(self.timeout_s)
        except (WrongError, UnreachableError) as error:
            wrong = str(error)
        finally:
            session.close()
        with self._lock:
            self.played += 1
            self.done.update(act.what for act in session.acts)
            if wrong and self.last is None:
                self.last = ModelFinding(wrong, session.acts, session.entries, number)

    def _suffix(self) -> str:
        """What ends the names of the next session."""
        return f"{self.run}{next(self._suffixes):x}"

    def _confirmed(self) -> ModelFinding | None:
        """The shortest failure, with how often it happens again."""
        finding = self.last
        if finding is None or not self._is_alive():
            return finding
        for _ in range(_REPLAYS):
            finding.replays += 1
            finding.again += bool(self._replay(finding.acts))
        if finding.again:
            acts = smallest(
                tuple(finding.acts),
                lambda acts: shorter(acts, keep=1),  # the first connects who creates the queues
                lambda acts: bool(self._replay([*acts])),
            )
            if len(acts) < len(finding.acts):
                finding.message = self._replay([*acts]) or finding.message
                finding.acts = [*acts]
        return finding

    def _replay(self, acts: list[Act]) -> str:
        """Return the fault of a session; nothing if the server no longer runs."""
        if not self._is_alive():
            return ""
        return play_acts(self.stage, acts, self._suffix(), self.patience, self.timeout_s)

    def _is_alive(self) -> bool:
        """Whether the server takes connections; one that can be started again is."""
        for revive in (False, True):
            try:
                if revive:
                    self.stage.restart()
                self.stage.open("alive", PROBE).close("end")
            except UnreachableError:
                continue
            return True
        return False


class _Draw(Seeded):
    """Draws the actions of one session."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._weights = {
            what: weight
            for what, weight in _WEIGHTS.items()
            if what not in _OPTIONAL or not self.one_in(4)
        }

    def act(self, model: Model, message: str) -> Act:
        """Choose one of the possible actions; ``message`` is the id of a pushed message."""
        kinds = {what: acts for what in self._weights if (acts := _options(model, what, message))}
        place = self.below(sum(self._weights[what] for what in kinds))
        kind = ""
        for kind in kinds:
            place -= self._weights[kind]
            if place < 0:
                break
        acts = kinds[kind]
        return acts[self.below(len(acts))]


def _options(model: Model, what: str, message: str) -> list[Act]:
    """The actions of one kind that make sense now."""
    here = [line for line in LINES if line in model.connected]
    if what == "connect":
        return [Act(what, line) for line in LINES if line not in here]
    if what == "vanish":
        return [Act(what, line) for line in here]
    if what in ("acknowledge", "refuse"):
        return [Act(what, line, channel, message=name) for line, channel, name in model.in_flight()]
    if what == "push":
        return [Act(what, line, channel, message=message) for line in here for channel in CHANNELS]
    acts = [
        Act(what, line, channel, number)
        for line in here
        for channel, status in CHANNELS.items()
        if what != "pull" or status == "pull"
        for number in ((1, 2, 5) if what == "pull" else (0,))
    ]
    return [act for act in acts if model.allows(act)]
