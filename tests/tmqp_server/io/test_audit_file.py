"""Where the audit is written, and what happens when it cannot be."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
from pathlib import Path

import pytest

from tmqp_server.access.auditing import AuditRecord
from tmqp_server.io import audit_file
from tmqp_server.io.audit_file import AuditFile

pytestmark = pytest.mark.cold


def record(number: int = 1) -> AuditRecord:
    made = AuditRecord(5.0, "ann\n", ("10.0.0.1:4", "tmqp", 7), "remove-channel", f"c{number}")
    made.code = 200
    return made


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(each) for each in path.read_text("ascii").splitlines()]


def test_a_line_is_an_object_and_the_file_is_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    kept = AuditFile(1_700_000_000.0)
    kept.use(str(path), logs=False)
    made = record()
    made.after = {"status": 1}
    kept.write(made)
    assert lines(path) == [
        {
            "ts": "2023-11-14T22:13:25.000Z",
            "who": "ann\n",
            "address": "10.0.0.1:4",
            "door": "tmqp",
            "session": 7,
            "action": "remove-channel",
            "subject": "c1",
            "code": 200,
            "after": {"status": 1},
        }
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.rename(tmp_path / "old")
    kept.write(record(2))
    kept.use(str(path), logs=False)
    kept.write(record(3))
    assert [each["subject"] for each in lines(tmp_path / "old")] == ["c1", "c2"]
    assert [each["subject"] for each in lines(path)] == ["c3"]
    kept.close()
    kept.write(record(4))
    assert [each["subject"] for each in kept.ring] == ["c1", "c2", "c3", "c4"]


def test_what_cannot_be_written_waits_and_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit.jsonl"
    kept = AuditFile(0.0)
    kept.use(str(path), logs=False)
    room = [30]

    def write(file: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = os.write(file, data[: room[0]])
        room[0] -= count
        return count

    monkeypatch.setattr(audit_file, "_write", write)
    for number in range(3):
        kept.write(record(number))
    assert not kept.is_ready()
    assert kept.failing == "No space left on device"
    assert [each.levelname for each in caplog.records] == ["ERROR"], "once, not for each"
    room[0] = 1 << 20
    assert kept.is_ready()
    assert kept.failing == ""
    assert [each["subject"] for each in lines(path)] == ["c0", "c1", "c2"]
    kept.close()


def test_what_waits_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = AuditFile(0.0)
    kept.use(str(tmp_path / "audit.jsonl"), logs=False)

    def write(_file: int, _data: bytes) -> int:
        raise OSError(errno.EIO, "I/O error")

    monkeypatch.setattr(audit_file, "_write", write)
    for number in range(1_010):
        kept.write(record(number))
    assert (kept.lost, len(kept.ring)) == (10, 1_000)
    kept.close()


def test_the_log_can_have_it(caplog: pytest.LogCaptureFixture) -> None:
    kept = AuditFile(0.0)
    kept.use("", logs=True)
    with caplog.at_level(logging.INFO, "tmqp_server.audit"):
        kept.write(record())
    (line,) = caplog.records
    assert line.getMessage() == "ann\n: remove-channel c1: 200"
    assert line.fields["audit"]["door"] == "tmqp"  # type: ignore[attr-defined]


def test_a_file_that_cannot_be_opened_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    kept = AuditFile(0.0)
    kept.use(str(path), logs=False)
    with pytest.raises(OSError, match="directory"):
        kept.use(str(tmp_path), logs=False)
    kept.write(record())
    assert len(lines(path)) == 1
    kept.close()
