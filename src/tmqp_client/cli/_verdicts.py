"""The result of a check, in the formats of monitoring systems."""

from __future__ import annotations

import enum
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tmqp_client.cli._ranges import Range
from tmqp_client.cli._run import printable

__all__ = ["FORMATS", "Measure", "State", "Verdict", "judge", "render"]


class State(enum.IntEnum):
    """The state of a check; the number is the exit code of monitoring plugins."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that was examined.

    ``unit`` is that of the monitoring plugins: ``s``, ``B``, ``%`` or none.
    """

    name: str
    value: float
    unit: str = ""
    warn: Range | None = None
    crit: Range | None = None

    @property
    def state(self) -> State:
        """The state that its ranges give it."""
        return judge(self.value, self.warn, self.crit)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check.

    ``subject`` is what it examined, if not the server itself: ``orders/1``.
    """

    check: str
    state: State
    sentence: str
    measures: tuple[Measure, ...] = ()
    subject: str = ""
    server: str = field(default="", kw_only=True)


def judge(value: float, warn: Range | None, crit: Range | None) -> State:
    """Return the state of a value: OK, WARNING or CRITICAL."""
    if crit is not None and not crit.has(value):
        return State.CRITICAL
    if warn is not None and not warn.has(value):
        return State.WARNING
    return State.OK


def _number(value: float) -> str:
    """A number in its shortest form, without an exponent."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _nagios(verdict: Verdict) -> str:
    """One line for monitoring plugins: service, state, sentence, and the numbers after a bar."""
    line = f"TMQP {verdict.check.upper()} {verdict.state.name} - {_one_line(verdict.sentence)}"
    numbers = []
    for each in verdict.measures:
        ranges = [text.text if text is not None else "" for text in (each.warn, each.crit)]
        parts = ";".join([_number(each.value) + each.unit, *ranges]).rstrip(";")
        numbers.append(f"{each.name}={parts}")
    return f"{line} | {' '.join(numbers)}" if numbers else line


def _one_line(words: str) -> str:
    """A sentence without the characters that separate the parts of the line."""
    return printable(words).replace("\n", " ").replace("\t", " ").replace("|", "/")


def _text(verdict: Verdict) -> str:
    return f"{verdict.state.name.lower():<9}{verdict.check}: {_one_line(verdict.sentence)}"


def _json(verdict: Verdict) -> str:
    return json.dumps(
        {
            "check": verdict.check,
            "subject": verdict.subject or None,
            "server": verdict.server,
            "state": verdict.state.name.lower(),
            "code": int(verdict.state),
            "text": verdict.sentence,
            "measures": {
                each.name: {"value": each.value, "unit": each.unit or None}
                for each in verdict.measures
            },
        }
    )


def _prometheus(verdict: Verdict) -> str:
    """A file for the text file collector of Prometheus' node exporter."""
    labels = {"check": verdict.check, "server": verdict.server, "subject": verdict.subject}
    lines = [
        "# HELP tmqp_check_state State of a check: 0 ok, 1 warning, 2 critical, 3 unknown.",
        "# TYPE tmqp_check_state gauge",
        f"tmqp_check_state{_labels(labels)} {int(verdict.state)}",
        "# HELP tmqp_check_timestamp_seconds When the check was made, in Unix time.",
        "# TYPE tmqp_check_timestamp_seconds gauge",
        f"tmqp_check_timestamp_seconds{_labels(labels)} {time.time():.0f}",
    ]
    if verdict.measures:
        lines.append("# HELP tmqp_check_value A number that a check looked at.")
        lines.append("# TYPE tmqp_check_value gauge")
    for each in verdict.measures:
        shown = _labels({**labels, "measure": each.name})
        lines.append(f"tmqp_check_value{shown} {_number(each.value)}")
    return "\n".join(lines)


def _labels(labels: Mapping[str, str]) -> str:
    escaped = {
        name: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        for name, value in labels.items()
        if value
    }
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped.items()) + "}"


#: The formats of a verdict, by name.
FORMATS: Final[Mapping[str, Callable[[Verdict], str]]] = {
    "nagios": _nagios,
    "json": _json,
    "prometheus": _prometheus,
    "text": _text,
}


def render(verdict: Verdict, form: str) -> str:
    """A verdict in one of the ``FORMATS``, without the last line's end."""
    return FORMATS[form](verdict)
