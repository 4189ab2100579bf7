"""The records of a run: a stream of events, one JSON object per line (``run.jsonl``).

Reports are created from these records alone, so an interrupted run still has a report, and every
report can be created again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Protocol

from tmqp import FrameDecoder, Limits
from tmqp.testing.conformance import FAILURES, Entry, Kind, Result
from tmqp_conformance.packs.pack import Pack
from tmqp_conformance.packs.units import AskedEar, Ear

__all__ = [
    "FORMAT",
    "RecordError",
    "as_recording",
    "case_record",
    "read_run",
    "reader_of",
    "wire_record",
]

#: The version of the form of the records.
FORMAT: Final = 1
_PASSED_BYTES: Final = 1_024
_FAILED_BYTES: Final = 65_536
_SHOWN_BYTES: Final = 200
_ANY_SIZE: Final = Limits(max_payload_bytes=268_435_456)
_PREAMBLES: Final = (b"TMQP/2.0", b"TMQ/1.01")
_KINDS: Final = frozenset({"begin", "case", "end"})


class RecordError(Exception):
    """A file does not contain the records of a run."""


def case_record(result: Result, excuse: str = "", pack: Pack | None = None) -> dict[str, Any]:
    """The record of one case.

    :param excuse: the implementer's explanation of a failure.
    :param pack: the pack of the case.
    """
    case = result.case
    most = _FAILED_BYTES if result.verdict in FAILURES else _PASSED_BYTES
    return {
        "event": "case",
        "id": case.id,
        "role": case.role,
        "group": case.group,
        "title": case.title,
        "why": case.why,
        "level": str(case.level),
        "requires": list(case.requires),
        "needs": list(case.needs),
        "verdict": str(result.verdict),
        "behaviour": str(result.behaviour),
        "closing": str(result.closing),
        "message": result.message,
        "expected": result.expected,
        "seen": result.seen if result.step else [],
        "step": result.step,
        "step_text": case.steps[result.step - 1].describe() if result.step else "",
        "duration_s": round(result.duration_s, 6),
        "excuse": excuse,
        "wire": wire_record(result.log, most, reader_of(result, pack)),
    }


class Reader(Protocol):
    """Reads one direction of a line, for people."""

    def read(self, data: bytes, *, whole: bool) -> list[str]:
        """Return the messages that end in these bytes, as text.

        :param whole: whether the log has all bytes.
        """


def reader_of(result: Result, pack: Pack | None) -> Callable[[str, Kind], Reader]:
    """What reads the lines of a case: of its line and its direction."""
    ears: dict[str, Ear] = {}

    def make(line: str, kind: Kind) -> Reader:
        if pack is None:
            return _Reader()
        if kind is Kind.SENT:
            ears[line] = pack.ears[result.case.place(line)]()
            return _Words(ears[line])
        if line in ears:
            return _Heard(ears.pop(line))
        return _Heard(pack.ears[result.case.place(line)]())

    return make


def wire_record(
    log: Iterable[Entry], most: int, make_reader: Callable[[str, Kind], Reader]
) -> list[dict[str, Any]]:
    """The wire log: each entry with its time, line, bytes (up to so many) and messages."""
    readers: dict[tuple[str, Kind], Reader] = {}
    entries = []
    for entry in log:
        record: dict[str, Any] = {
            "t": round(entry.at_s, 6),
            "line": entry.line,
            "kind": str(entry.kind),
            "note": entry.note,
        }
        if entry.kind is Kind.NOTE:
            if entry.note == "open":
                readers.pop((entry.line, Kind.SENT), None)
                readers.pop((entry.line, Kind.RECEIVED), None)
        else:
            key = (entry.line, entry.kind)
            if key not in readers:
                readers[key] = make_reader(*key)
            reader = readers[key]
            record["size"] = entry.size
            record["hex"] = entry.data[:most].hex()
            record["messages"] = reader.read(entry.data, whole=entry.size == len(entry.data))
        entries.append(record)
    return entries


class _Reader:
    """Reads the messages of one direction of a line, for people."""

    def __init__(self) -> None:
        self._decoder = FrameDecoder(_ANY_SIZE)
        self._begin: bytes | None = b""
        self._lost = False

    def read(self, data: bytes, *, whole: bool) -> list[str]:
        """The messages that end in these bytes, in words."""
        if self._lost:
            return []
        texts = []
        if self._begin is not None:
            self._begin += data
            if len(self._begin) < 8:
                return []
            begin, data = self._begin[:8], self._begin[8:]
            self._begin = None
            if begin not in _PREAMBLES:
                self._lost = True
                return [f"{begin!r} is no preamble"]
            texts.append(f"preamble {begin.decode()}")
        texts += [repr(frame) for frame in self._decoder.feed(data)]
        if self._decoder.error is not None:
            texts.append(f"not a message: {self._decoder.error}")
            self._lost = True
        elif not whole:
            texts.append("(the log has only the beginning of these bytes)")
            self._lost = True
        return texts


class _Words:
    """Shows traffic to a peer of a pack as text.

    :param ear: the ear that reads the answers; it may have to know the requests.
    """

    def __init__(self, ear: Ear) -> None:
        self._ear = ear

    def read(self, data: bytes, *, whole: bool) -> list[str]:
        """See :class:`Reader`."""
        if isinstance(self._ear, AskedEar):
            self._ear.asked(data)
        text = repr(data[:_SHOWN_BYTES])[2:-1]
        return [text if whole and len(data) <= _SHOWN_BYTES else f"{text}..."]


class _Heard:
    """Reads the traffic from a peer of a pack."""

    def __init__(self, ear: Ear) -> None:
        self._ear = ear
        self._lost = False

    def read(self, data: bytes, *, whole: bool) -> list[str]:
        """See :class:`Reader`."""
        if self._lost:
            return []
        texts = [repr(unit) for unit in self._ear.feed(data)]
        self._lost = bool(self._ear.complaint) or not whole
        if self._ear.complaint:
            texts.append(self._ear.complaint)
        return texts


def as_recording(wire: Iterable[dict[str, Any]], role: str) -> list[dict[str, Any]]:
    """A wire log in the form of recorded exchanges, which ``replay`` plays."""
    numbers: dict[str, int] = {}
    steps = []
    sent, received = ("c2s", "s2c") if role == "server" else ("s2c", "c2s")
    opened = 0
    for entry in wire:
        line = entry["line"]
        if entry["kind"] == "note":
            if entry["note"] == "open":
                opened += 1
                numbers[line] = opened
            continue
        step = {
            "dir": sent if entry["kind"] == "sent" else received,
            "conn": numbers.get(line, 1),
            "t": entry["t"],
            "hex": entry["hex"],
            "note": entry["note"],
        }
        if entry["size"] * 2 > len(entry["hex"]):
            step |= {"truncated": True, "total_bytes": entry["size"]}
        steps.append(step)
    return steps


def read_run(path: Path) -> list[dict[str, Any]]:
    """Read the records of a run, whole or interrupted.

    :raises RecordError: when the file is not a run's, or cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: {error}") from error
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                break  # the run was interrupted while it wrote
            raise RecordError(f"{path}: line {number} is not JSON: {error}") from None
        if not isinstance(record, dict) or record.get("event") not in _KINDS:
            raise RecordError(f"{path}: line {number} is not a record of a run")
        records.append(record)
    if not records or records[0]["event"] != "begin" or records[0].get("format") != FORMAT:
        raise RecordError(f"{path}: not a run of this version (format {FORMAT})")
    return records
