"""The fuzz targets under test: the corpus passes, the seeds reach both ends, findings show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from targets.checks import CORPUS, TARGETS, corpus, seeds
from targets.run import main
from tmqp.models import ModelError, QueueOptions

SEEDS: Final = 1_500


@pytest.mark.parametrize("name", TARGETS)
def test_what_ever_failed_passes(name: str) -> None:
    kept = corpus(name)
    assert kept, "a target begins with something"
    for data in kept:
        TARGETS[name](data)


@pytest.mark.parametrize("name", TARGETS)
def test_generated_inputs_pass(name: str) -> None:
    inputs = [*seeds(name, SEEDS)]
    assert inputs == [*seeds(name, SEEDS)], "the same every time"
    assert len({*inputs}) > SEEDS // 4
    for data in inputs:
        TARGETS[name](data)


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_an_input_too(name: str) -> None:
    for data in (b"", b"\x00", b"\xff"):
        TARGETS[name](data)


def test_the_corpus_has_no_strangers() -> None:
    assert sorted(path.stem for path in CORPUS.glob("*.txt")) == sorted(TARGETS)


@pytest.mark.cold
def test_a_broken_codec_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(cls: type[QueueOptions], data: bytes) -> QueueOptions:
        raise ZeroDivisionError

    monkeypatch.setattr(QueueOptions, "from_json", classmethod(broken))
    found: list[Exception] = []
    for data in seeds("models", 100):
        try:
            TARGETS["models"](data)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it was seen
            found.append(error)
    assert {type(error) for error in found} == {ZeroDivisionError}


@pytest.mark.parametrize("arguments", [[], ["unheard-of"]])
def test_a_target_must_be_named(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "name a target: decoder" in capsys.readouterr().err


def test_every_target_is_a_function_of_bytes() -> None:
    table: dict[str, Callable[[bytes], None]] = TARGETS
    assert all(check.__doc__ for check in table.values())
