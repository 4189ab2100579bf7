"""Captures and corpora as rows: every byte of the repository's own is accounted for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.project import ROOT
from tmqp import Frame, MessageType
from tmqp.testing.vectors import parse_exchange, recorded_frames
from tmqp_spark.capture import TmqpCaptureDataSource
from tmqp_spark.errors import InvalidOption, InvalidSchema, SparkError
from tmqp_spark.recorded import CAPTURE, Recorded, layout_of

CAPTURES = ROOT / "tests" / "data" / "captures"
CORPUS = ROOT / "fuzz" / "corpus"


def _projection(*names: str) -> Any:
    return CAPTURE.project((name, CAPTURE.types[name], True) for name in names or CAPTURE.names)


def _rows(path: Path, layout: str = "auto", skip: int = 0) -> list[dict[str, Any]]:
    gathered = Recorded(_projection(), skip)
    for _ in gathered.read(str(path), layout):
        pass
    rows: list[dict[str, Any]] = gathered.take_batch().to_pylist()
    assert len(gathered) == 0
    return rows


def test_the_recordings_give_the_frames_that_the_test_kit_finds() -> None:
    wanted, found = [], []
    for path in sorted(CAPTURES.glob("*.json")):
        exchange = parse_exchange(path.stem, path.read_text(encoding="utf-8"))
        wanted += [(path.name, each.frame) for each in recorded_frames([exchange])]
        for row in _rows(path):
            if row["type_code"] is None:
                continue
            frame = Frame.build(
                row["type_code"],
                row["target"],
                row["content_type"],
                row["value"],
                message_id=row["message_id"],
                source=row["source"],
                headers=[(pair["key"], pair["value"]) for pair in row["headers"]],
                first_acquirer=row["one_delivery"],
                high_priority=row["high_priority"],
                pending_response=row["pending_response"],
                pending_acknowledge=row["pending_ack"],
                ttl=row["ttl"],
            )
            assert row["length"] >= len(frame.raw)
            found.append((Path(row["file"]).name, frame))
    assert len(found) > 1_000
    assert found == [(name, frame.replace()) for name, frame in wanted]


def test_each_flow_of_a_recording_is_counted_by_itself() -> None:
    rows = _rows(CAPTURES / "probe-003-wrong-preamble.json")
    assert [(row["dir"], row["note"]) for row in rows] == [
        ("c2s", "preamble"),
        ("s2c", "closed by the server"),
    ]
    assert rows[0]["error"].startswith("torn") or rows[0]["error"]
    many = [row for path in sorted(CAPTURES.glob("real-*.json"))[:20] for row in _rows(path)]
    by_flow: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in many:
        by_flow.setdefault((row["file"], row["flow"], row["dir"]), []).append(row)
    for flow in by_flow.values():
        framed = [row for row in flow if row["type"]]
        assert [row["frame_no"] for row in framed] == list(range(len(framed)))
        ends = [row["offset"] + row["length"] for row in framed]
        assert all(row["offset"] >= end for row, end in zip(framed[1:], ends, strict=False))


@pytest.mark.parametrize("name", ["decoder", "client", "server", "door"])
def test_each_line_of_a_corpus_is_accounted_for_to_its_last_byte(name: str) -> None:
    path = CORPUS / f"{name}.txt"
    lines = {
        str(number): bytes.fromhex(line)
        for number, line in enumerate(path.read_text().split("\n"), 1)
        if line and not line.startswith("#")
    }
    ends: dict[str, int] = {}
    for row in _rows(path, "corpus", skip=1):
        flow = row["flow"]
        assert row["offset"] == ends.get(flow, 1)
        ends[flow] = row["offset"] + row["length"]
        if row["error"]:
            assert row["error_offset"] == row["offset"]
            ends[flow] = len(lines[flow])
    assert all(end == len(lines[flow]) for flow, end in ends.items())
    assert len(ends) > 20


def test_any_other_file_is_a_piece_of_a_stream(tmp_path: Path) -> None:
    frames = [
        Frame.build(MessageType.QUEUE_MESSAGE, "c", 1, bytes(size)).raw
        for size in (0, 9, 2_000_000)
    ]
    path = tmp_path / "stream"
    path.write_bytes(b"TMQP/2.0" + b"".join(frames) + frames[1][:5])
    rows = _rows(path)
    assert [row["type"] for row in rows] == ["PREAMBLE", *["QUEUE_MESSAGE"] * 3, None]
    assert [row["length"] for row in rows] == [8, *[len(frame) for frame in frames], 5]
    assert rows[-1]["error"] == "torn: 5 bytes of a message that does not end"
    assert rows[-1]["error_offset"] == 8 + sum(map(len, frames))


def test_what_cannot_be_read_is_a_row_and_not_the_end(tmp_path: Path) -> None:
    bad = {
        "a.json": (b"{}", "a recording is a list"),
        "b.json": (b"[" * 100_000, "not JSON"),
        "c.json": (b'[{"dir":"c2s","conn":1,"hex":"zz"}]', "hexadecimal"),
        "d.txt": (b"# fine\nzz\n0810000000000000\n", "line 2 is not hexadecimal"),
    }
    for name, (content, _) in bad.items():
        (tmp_path / name).write_bytes(content)
    for name, (_, says) in bad.items():
        assert says in _rows(tmp_path / name)[0]["error"], name
    assert _rows(tmp_path / "d.txt")[1]["type"] == "TERMINATE"
    assert "No such file" in _rows(tmp_path / "none.txt")[0]["error"]


def test_the_ending_says_how_a_file_is_read_unless_the_option_does() -> None:
    assert layout_of("x.json", "auto") == "recording"
    assert layout_of("x.json", "corpus") == "bytes"
    assert layout_of("x.txt", "recording") == "recording"
    assert [layout_of(name, "auto") for name in ("x.txt", "x")] == ["lines", "bytes"]


# --- The source, without a session ----------------------------------------------------------------


def _reader(schema: str = "", **options: str) -> Any:
    """A reader of the columns in ``schema``, which is read here: Spark's own way needs a JVM."""
    fields = [pair.split() for pair in schema.split(", ")] if schema else CAPTURE.types.items()
    columns: Any = [
        SimpleNamespace(name=name, nullable=True, dataType=SimpleNamespace(simpleString=kind.strip))
        for name, kind in fields
    ]
    return TmqpCaptureDataSource(options).reader(columns)


def test_portions_cover_all_files_once_and_about_evenly(tmp_path: Path) -> None:
    for number in range(1_000):
        (tmp_path / f"{number:04d}").write_bytes(bytes(8) * (1 + number % 7))
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "one").write_bytes(b"")
    (tmp_path / "_hidden").write_bytes(b"")
    parts = _reader(path=str(tmp_path), minPartitions="5").partitions()
    files = [file for part in parts for file in part.files]
    assert len(files) == len(set(files)) == 1_001
    assert len(parts) == 5
    assert max(len(part.files) for part in parts) < 300
    assert len(_reader(path=f"{tmp_path}/000*").partitions()) == 1
    assert len(_reader(paths=f'["{tmp_path}/0001", "{tmp_path}/0002"]').partitions()[0].files) == 2


def test_only_the_columns_asked_for_are_made_in_bounded_batches(tmp_path: Path) -> None:
    for number in range(25):
        raw = Frame.build(MessageType.QUEUE_MESSAGE, "c", number, b"x").raw
        (tmp_path / f"{number:04d}").write_bytes(raw)
    reader = _reader("content_type int, file string", path=str(tmp_path), filesPerBatch="10")
    (part,) = reader.partitions()
    batches = list(reader.read(part))
    assert [batch.num_rows for batch in batches] == [10, 10, 5]
    assert batches[0].schema.names == ["content_type", "file"]
    assert [n for batch in batches for n in batch["content_type"].to_pylist()] == list(range(25))
    assert len(list(_reader(path=str(tmp_path), batchBytes="20").read(part))) > 10


def test_mistakes_are_named() -> None:
    with pytest.raises(InvalidOption, match="option path is missing"):
        TmqpCaptureDataSource({})
    with pytest.raises(InvalidOption, match=r"no option 'layuot'; did you mean layout\?"):
        TmqpCaptureDataSource({"path": "x", "layuot": "corpus"})
    with pytest.raises(InvalidOption, match="layout must be auto, recording or corpus"):
        TmqpCaptureDataSource({"path": "x", "layout": "pcap"})
    with pytest.raises(InvalidSchema, match=r"no column 'fiel'; did you mean file\?"):
        _reader("fiel string", path="x")
    with pytest.raises(InvalidSchema, match="column ttl is int, not bigint"):
        _reader("ttl bigint", path="x")
    with pytest.raises(SparkError, match=r"/nowhere.* does not exist"):
        _reader(path="/nowhere/*.json").partitions()
