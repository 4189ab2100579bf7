"""The archive's log: an end at any step leaves every message in one file, or lets it be written
again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import pytest

from tmqp_spark.errors import SparkError
from tmqp_spark.pipelines.log import ArchiveFile, ArchiveLog, partition_folder

DAY: Final = "2026-11-21"


class Ended(BaseException):
    """The process ends here."""


def archived(folder: Path) -> list[str]:
    """What the files in their places hold, in order."""
    return sorted(
        line for file in folder.glob("day=*/**/*.parquet") for line in file.read_text().split()
    )


def one_run(folder: Path, batches: int) -> None:
    """Archive up to so many batches of two files, from where the log is."""
    with ArchiveLog(folder, "arrow") as log:
        while log.batch < batches:
            number = log.batch + 1
            staged = log.stage()
            files = []
            for queue in (1, 2):
                name = f"{queue}.parquet"
                (staged / name).write_text(f"{queue}:{number}")
                files.append(ArchiveFile(name, "orders", queue, "abc", DAY, number, number, 1, 3))
            log.commit(staged, {"number": number}, files)


def run_until(folder: Path, batches: int, steps: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """The same, with an end after so many steps that change the disk; whether there was one."""
    left = [steps]

    def counted(function: Any) -> Any:
        def step(*arguments: Any, **options: Any) -> Any:
            if left[0] == 0:
                raise Ended
            left[0] -= 1
            return function(*arguments, **options)

        return step

    with monkeypatch.context() as patch:
        for owner, name in ((os, "fsync"), (Path, "rename"), (Path, "replace"), (os, "rmdir")):
            patch.setattr(owner, name, counted(getattr(owner, name)))
        try:
            one_run(folder, batches)
        except Ended:
            return True
    return False


def test_an_end_at_any_step_loses_nothing_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = sorted(f"{queue}:{number}" for queue in (1, 2) for number in (1, 2))
    ends = 0
    while True:
        folder = tmp_path / str(ends)
        ended = run_until(folder, 2, ends, monkeypatch)
        found = archived(folder)
        assert len(found) == len(set(found))
        one_run(folder, 2)
        assert archived(folder) == expected, f"an end after {ends} steps"
        assert not list((folder / "_tmqp").glob("staging/*"))
        if not ended:
            break
        ends += 1
    assert ends > 20


def test_two_do_not_write_one_archive(tmp_path: Path) -> None:
    with (
        ArchiveLog(tmp_path, "arrow"),
        pytest.raises(SparkError, match="another process archives into it"),
        ArchiveLog(tmp_path, "arrow"),
    ):
        pass
    with ArchiveLog(tmp_path, "arrow") as log:
        assert log.end is None


def test_an_archive_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    with ArchiveLog(tmp_path, "arrow"):
        pass
    (tmp_path / "_tmqp" / "archive.json").write_text('{"v":2,"engine":"arrow"}')
    with pytest.raises(SparkError, match="of version 2"), ArchiveLog(tmp_path, "arrow"):
        pass


@pytest.mark.parametrize("text", ["", "[]", '{"v":1}', "{"])
def test_a_damaged_record_is_named(tmp_path: Path, text: str) -> None:
    one_run(tmp_path, 1)
    record = tmp_path / "_tmqp" / "log" / "00000001.json"
    record.write_text(text)
    with (
        pytest.raises(SparkError, match=r"00000001\.json"),
        ArchiveLog(tmp_path, "arrow"),
    ):
        pass


def test_a_file_that_somebody_took_away_is_missed(tmp_path: Path) -> None:
    with ArchiveLog(tmp_path, "arrow") as log:
        staged = log.stage()
        with pytest.raises(SparkError, match="is missing"):
            log.commit(staged, {}, [ArchiveFile("1.parquet", "orders", 1, "abc", DAY, 1, 1, 1, 3)])


def test_old_records_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tmqp_spark.pipelines.log._KEPT_RECORDS", 3)
    one_run(tmp_path, 5)
    assert sorted(file.stem for file in (tmp_path / "_tmqp" / "log").iterdir()) == [
        "00000003",
        "00000004",
        "00000005",
    ]
    one_run(tmp_path, 6)
    assert len(archived(tmp_path)) == 12


def test_names_of_channels_are_safe_in_paths() -> None:
    assert partition_folder(DAY, "a/b=c%d", 7) == f"day={DAY}/channel=a%2Fb%3Dc%25d/queue=7"
