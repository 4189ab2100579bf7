"""The model fuzzer: Hypothesis draws sessions, and shortens those that go wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from tmqp.testing.conformance import Entry, Patience, Stage, UnreachableError
from tmqp_conformance.fuzzing.model import CHANNELS, LINES, Act, WrongError
from tmqp_conformance.fuzzing.session import Session, play_acts

__all__ = ["ModelFinding", "ModelFuzzer"]

#: How often a failure is played again, to tell a race from a plain fault.
_REPLAYS: Final = 5
#: Sessions between two looks at the clock.
_BATCH: Final = 20


@dataclass(slots=True)
class ModelFinding:
    """A session that went wrong, as short as it was found: the actions, and what was wrong.

    ``again``: of how many replays it went wrong.
    """

    message: str
    acts: list[Act]
    entries: list[Entry]
    again: int = 0
    replays: int = 0


@dataclass(slots=True)
class ModelFuzzer:
    """Fuzzes one server; ``played`` counts sessions, ``done`` the actions by their kind.

    ``timeout_s``: see :meth:`Session.finish`.
    """

    stage: Stage
    run: str
    number: int
    steps: int
    patience: Patience
    timeout_s: float = 0.0
    played: int = 0
    done: dict[str, int] = field(default_factory=dict)
    last: ModelFinding | None = None
    _suffixes: count[int] = field(default_factory=lambda: count(1))

    def search(self, go_on: Callable[[], bool]) -> ModelFinding | None:
        """Play sessions while ``go_on`` says so; returns the first that goes wrong."""
        fuzzer = self

        class Machine(_Machine):
            def __init__(self) -> None:
                super().__init__(fuzzer)

        options = settings(
            max_examples=_BATCH,
            stateful_step_count=self.steps,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            print_blob=False,
            verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
        )
        while go_on() and self.last is None:
            machine = seed(self.number)(Machine)
            self.number += 1
            try:
                run_state_machine_as_test(machine, settings=options)
            except Exception:
                if self.last is None:
                    raise  # a fault of the tool
        return self._confirmed()

    def _play(self, finding: ModelFinding) -> str:
        return play_acts(self.stage, finding.acts, self.suffix(), self.patience, self.timeout_s)

    def suffix(self) -> str:
        """What ends the names of the next session."""
        return f"{self.run}{next(self._suffixes):x}"

    def _confirmed(self) -> ModelFinding | None:
        """The shortest failure, with how often it happens again."""
        finding = self.last
        if finding is None:
            return None
        for _ in range(_REPLAYS):
            try:
                wrong = self._play(finding)
            except UnreachableError as error:
                wrong = str(error)
            finding.replays += 1
            finding.again += bool(wrong)
        return finding


class _Machine(RuleBasedStateMachine):
    """One session: the actions that the model allows, in any order."""

    def __init__(self, fuzzer: ModelFuzzer) -> None:
        super().__init__()
        self.fuzzer = fuzzer
        self.session: Session | None = None
        self.failed = False

    @initialize()
    def begin(self) -> None:
        self.fuzzer.played += 1
        fuzzer = self.fuzzer
        self.session = Session(fuzzer.stage, fuzzer.suffix(), fuzzer.patience)
        self._guarded(self.session.begin)

    def _do(self, act: Act) -> None:
        session = self.session
        assert session is not None, "begin comes first"
        if session.model.allows(act):
            self.fuzzer.done[act.what] = self.fuzzer.done.get(act.what, 0) + 1
            self._guarded(lambda: session.do(act))

    def _guarded(self, step: Callable[[], None]) -> None:
        session = self.session
        assert session is not None, "begin comes first"
        try:
            step()
        except (WrongError, UnreachableError) as error:
            self.failed = True
            found = ModelFinding(str(error), list(session.acts), session.entries)
            best = self.fuzzer.last
            if best is None or len(found.acts) <= len(best.acts):
                self.fuzzer.last = found
            raise

    @rule(data=st.data())
    def act(self, data: st.DataObject) -> None:
        session = self.session
        assert session is not None, "begin comes first"
        self._do(data.draw(st.sampled_from(self._options(session))))

    def _options(self, session: Session) -> list[Act]:
        """What makes sense now, the frequent first: an action that does not is never drawn."""
        model = session.model
        message = f"m{len(session.acts)}"
        here = [line for line in LINES if line in model.connected]
        acts = [
            Act(what, line, channel, message=message if what == "push" else "")
            for line in here
            for channel in CHANNELS
            for what in ("push", "join")
        ]
        acts += [
            Act("refuse" if refuse else "acknowledge", line, channel, message=name)
            for line, channel, name in model.in_flight()
            for refuse in (False, True)
        ]
        acts += [Act("pull", line, "pull", number) for line in here for number in (1, 2, 5)]
        acts += [Act("connect", line) for line in LINES]
        acts += [Act("leave", line, channel) for line in here for channel in CHANNELS]
        acts += [Act("vanish", line) for line in here]
        return [act for act in acts if model.allows(act)]

    def teardown(self) -> None:
        session = self.session
        if session is None:
            return
        try:
            if not self.failed:
                self._guarded(lambda: session.finish(self.fuzzer.timeout_s))
        finally:
            session.close()
