"""The checks of the measurements: every measured path does the whole work it is timed for."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.project import ROOT
from tmqp_bench import __main__ as command
from tmqp_bench import codec, report, worker
from tmqp_bench.codec import BUILDS, Outcome, Plan, compare
from tmqp_bench.ours import OURS
from tmqp_bench.peers import DISTRIBUTIONS, PEERS
from tmqp_bench.work import (
    CHUNK_BYTES,
    OUR_TITLES,
    PEER_TITLES,
    Work,
    chunks,
    message_count,
    message_ids,
    payloads,
)

SIZES: Final = (16, 100, 1_024, 65_536)
#: Enough that every stream but the smallest is longer than one chunk.
COUNTS: Final = {16: 50, 100: 1_000, 1_024: 130, 65_536: 5}
DISTRIBUTION_OF: Final = {case: case.removesuffix("-masked") for case in PEERS}


def is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def check_work(work: Work, size: int) -> None:
    """Two passes see every message, keeping or not, and hand over the payloads that were put in."""
    count = COUNTS[size]
    kept: list[bytes] = []
    assert work.messages == count
    assert work.run(None) == count
    assert work.run(kept) == count
    assert kept == payloads(size, count)
    assert work.run(None) == count
    assert work.stream_bytes > size * count


# --- The works -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", OURS)
def test_every_path_of_ours_does_its_work(case: str, size: int) -> None:
    check_work(OURS[case](size, COUNTS[size]), size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", PEERS)
def test_every_path_of_a_peer_does_its_work(case: str, size: int) -> None:
    distribution = DISTRIBUTION_OF[case]
    if not is_installed(distribution):
        pytest.skip(f"{distribution} is not installed")
    check_work(PEERS[case](size, COUNTS[size]), size)


def test_works_and_titles_have_the_same_names() -> None:
    assert list(OURS) == list(OUR_TITLES)
    assert list(PEERS) == list(PEER_TITLES)
    assert set(DISTRIBUTION_OF.values()) == set(DISTRIBUTIONS)


@pytest.mark.parametrize("size", SIZES)
def test_messages_differ_and_have_the_size_asked_for(size: int) -> None:
    count = message_count(size)
    made = payloads(size, count)
    assert count >= 64
    assert {len(payload) for payload in made} == {size}
    assert len(set(made)) == len(set(message_ids(count))) == count


def test_a_stream_is_cut_at_64_kib() -> None:
    stream = bytes(range(256)) * 1_000
    pieces = chunks(stream)
    assert b"".join(pieces) == stream
    assert {len(piece) for piece in pieces[:-1]} == {CHUNK_BYTES}
    assert 0 < len(pieces[-1]) <= CHUNK_BYTES


def test_a_pass_that_loses_a_message_is_not_timed() -> None:
    lossy = Work(lambda _keep: 9, messages=10, stream_bytes=100)
    with pytest.raises(AssertionError, match="18 messages instead of 20"):
        worker.measure(lossy, 2)


# --- The verdicts --------------------------------------------------------------------------------


def outcome_of(**ns: float) -> Outcome:
    """An outcome with these medians at 100 bytes, such as ``compiled_decode=90.0``."""
    outcome = Outcome(Plan((100,), 3, 0.01))
    for name, median in ns.items():
        group, _, case = name.partition("_")
        key = group, case.replace("_", "-"), 100
        outcome.samples[key] = [median * 3, median, median / 2]
    return outcome


GOOD: Final = {
    "compiled_decode": 100.0,
    "compiled_decode_read": 180.0,
    "interpreted_decode": 1_000.0,
    "interpreted_decode_read": 1_000.0,
    "peers_websockets": 1_200.0,
    "peers_nats_py": 1_001.0,
    "peers_pamqp": 5_500.0,
    "peers_wsproto": 3_300.0,
}


def test_figures_that_just_reach_the_aims_pass_them() -> None:
    assert [verdict.passed for verdict in report.verdicts(outcome_of(**GOOD))] == [True] * 12


@pytest.mark.parametrize(
    ("name", "ns", "missed"),
    [
        (
            "compiled_decode",
            101.0,
            {"at most 100 ns", "12 x websockets", "33 x wsproto", "55 x pamqp"},
        ),
        ("compiled_decode_read", 181.0, {"at most 180 ns"}),
        ("interpreted_decode", 1_002.0, {"at most 1,000 ns", "ahead of nats-py"}),
        ("interpreted_decode", 499.0, {"5 x interpreted, read lazily"}),
        ("interpreted_decode_read", 899.0, {"5 x interpreted, everything read"}),
        ("peers_websockets", 1_199.0, {"12 x websockets"}),
        ("peers_nats_py", 899.0, {"9 x nats-py", "ahead of nats-py"}),
        ("peers_pamqp", 5_499.0, {"55 x pamqp"}),
        ("peers_pamqp", 999.0, {"ahead of pamqp", "55 x pamqp"}),
        ("peers_wsproto", 3_299.0, {"33 x wsproto"}),
    ],
)
def test_figures_past_an_aim_miss_it(name: str, ns: float, missed: set[str]) -> None:
    judged = report.verdicts(outcome_of(**(GOOD | {name: ns})))
    failed = [verdict.aim for verdict in judged if verdict.passed is False]
    assert len(failed) == len(missed)
    for words in missed:
        assert any(words in aim for aim in failed), (words, failed)
    assert report.as_text(outcome_of(**(GOOD | {name: ns}))).count("MISSED") == len(missed)


def test_what_was_not_measured_is_not_judged() -> None:
    outcome = outcome_of(compiled_decode=90.0)
    judged = {verdict.aim: verdict.passed for verdict in report.verdicts(outcome)}
    assert judged.pop("compiled: at most 100 ns, read lazily") is True
    assert set(judged.values()) == {None}
    assert report.verdicts(Outcome(Plan((16,), 3, 0.01))) == []


# --- What is missing -----------------------------------------------------------------------------


def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", unknown)
    about, _ = worker._introduce("peers")
    assert about["versions"] == dict.fromkeys(DISTRIBUTIONS)

    outcome = Outcome(Plan((100,), 3, 0.01))
    outcome.missing["pamqp"] = "not installed: pip install 'tmqp[bench]'"
    assert "pamqp: not installed" in report.as_text(outcome)
    assert report.as_json(outcome)["missing"] == outcome.missing


def test_a_build_that_is_missing_or_old_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(codec, "PLACES", {"compiled": str(tmp_path), "interpreted": "src"})
    plan = Plan((16,), 1, 0.001, ("compiled",))
    outcome = compare(plan, lambda _text: None)
    assert "make compiled" in outcome.missing["the compiled build"]

    (tmp_path / "tmqp").mkdir()
    (tmp_path / "tmqp" / "codec.py").write_text("# older\n", encoding="utf-8")
    assert "codec.py" in codec.stale_modules(tmp_path)
    outcome = compare(plan, lambda _text: None)
    assert "other sources" in outcome.missing["the compiled build"]
    assert "codec.py" in outcome.missing["the compiled build"]
    assert not any(group in BUILDS for group, _, _ in outcome.samples)


# --- The command ---------------------------------------------------------------------------------


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "fuzz" / "bench")}
    return subprocess.run(
        [sys.executable, "-m", "tmqp_bench", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_the_command_measures_every_case_in_every_round() -> None:
    short = ["--rounds=2", "--seconds=0.001", "--build=interpreted"]
    ended = run("codec", "--json", *short, "--payload=16", "--payload=1024")
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    samples = {
        (sample["group"], sample["case"], sample["payload_bytes"]): sample["ns"]
        for sample in found["samples"]
    }
    installed = {case for case, name in DISTRIBUTION_OF.items() if is_installed(name)}
    expected = {("interpreted", case, size) for case in OURS for size in (16, 1_024)}
    expected |= {("peers", case, size) for case in installed for size in (16, 1_024)}
    assert set(samples) == expected
    assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in samples.values())
    assert set(found["missing"]) == {name for name in DISTRIBUTIONS if not is_installed(name)}
    assert found["rounds"] == 2
    assert found["aims"] == []


def test_an_aim_that_is_missed_fails_only_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = outcome_of(**(GOOD | {"compiled_decode_read": 500.0}))
    monkeypatch.setattr(command, "compare", lambda _plan, _progress: outcome)
    assert command.main(["codec", "--quick"]) == 0
    assert "MISSED" in capsys.readouterr().out
    assert command.main(["codec", "--quick", "--check"]) == 1
    assert "MISSED" in capsys.readouterr().out
    monkeypatch.setattr(command, "compare", lambda _plan, _progress: outcome_of(**GOOD))
    assert command.main(["codec", "--quick", "--check"]) == 0
    assert "MISSED" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--payload", "0"], "a payload is 1..1000000 bytes, got 0"),
        (["--payload", "many"], "a payload is 1..1000000 bytes, got many"),
        (["--rounds", "0"], "the number of rounds is 1..1000, got 0"),
        (["--seconds", "-1"], "seconds are above 0"),
        (["--build", "fast"], "invalid choice: 'fast'"),
    ],
)
def test_a_wrong_option_is_answered_with_a_sentence(arguments: list[str], sentence: str) -> None:
    ended = run("codec", *arguments)
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_help_teaches() -> None:
    ended = run("codec", "--help")
    assert ended.returncode == 0
    for word in ("examples", "make compiled", "FrameDecoder.feed", "--quick", "--json"):
        assert word in ended.stdout


# --- The store -----------------------------------------------------------------------------------


@pytest.mark.long
def test_the_store_is_measured(tmp_path: Path) -> None:
    environment = {**os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(
        [os.environ.get("PYTHONPATH", "src"), str(ROOT / "fuzz" / "bench")]
    )
    command = [sys.executable, "-m", "tmqp_bench", "storage", "--messages", "5000"]
    ended = subprocess.run(
        [*command, "--json", "--directory", str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["messages"] == 5_120
    for name in ("append", "bare_append", "append_ratio", "consumed", "one", "settle", "fetch_s"):
        assert found[name] > 0
    assert list(tmp_path.iterdir()) == []
    ended = run("storage", "--messages", "1")
    assert ended.returncode == 2
    assert "messages are 256..100000000, got 1" in ended.stderr


@pytest.mark.long
def test_a_backlog_is_measured(tmp_path: Path) -> None:
    environment = {**os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(
        [os.environ.get("PYTHONPATH", "src"), str(ROOT / "fuzz" / "bench")]
    )
    command = [sys.executable, "-m", "tmqp_bench", "backlog", "--build", "interpreted"]
    ended = subprocess.run(
        [*command, "--messages", "5000", "--json", "--directory", str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["messages"] == 5_000
    for name in ("fill_s", "memory_bytes", "disk_bytes", "clean_restart_s", "killed_restart_s"):
        assert found[name] > 0
    assert found["disk_bytes"] > 5_000 * 100
    assert list(tmp_path.iterdir()) == []
    ended = run("backlog", "--messages", "1")
    assert ended.returncode == 2
    assert "messages are 2048..100000000, got 1" in ended.stderr
