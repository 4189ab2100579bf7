"""Planted bugs in what the broker passes from client to client; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp.runs import FrameRun
from tmqp_client._core import answers
from tmqp_server.engine.model.questions import Questions

__all__ = ["ANSWER_BUGS"]


def _passes_any_answer(original: Any) -> Any:
    def takes(self: Questions, *arguments: Any) -> bool:
        return True

    return takes


def _passes_answers_of_anybody(original: Any) -> Any:
    def takes(self: Questions, message_id: str, *arguments: Any) -> bool:
        original(self, message_id, *arguments)
        return message_id in self._by_id

    return takes


def _passes_answers_twice(original: Any) -> Any:
    def takes(self: Questions, message_id: str, number: int, *arguments: Any) -> bool:
        question = self._by_id.get(message_id)
        before = 0 if question is None else question.may(number)
        taken: bool = original(self, message_id, number, *arguments)
        if taken and question is not None:
            question.let(number, before)
            self._by_id[message_id] = question
        return taken

    return takes


def _passes_all_of_a_run(original: Any) -> Any:
    def takes_all(self: Questions, *arguments: Any) -> list[int]:
        original(self, *arguments)
        return []

    return takes_all


def _run_passes_twice(original: Any) -> Any:
    def takes_all(self: Questions, message_ids: list[str], *arguments: Any) -> list[int]:
        before = {each: self._by_id[each] for each in message_ids if each in self._by_id}
        refused: list[int] = original(self, message_ids, *arguments)
        for message_id, question in before.items():
            if question.is_shared and message_id not in self._by_id:
                self._by_id[message_id] = question
                self._books.charge(question.memory)
        return refused

    return takes_all


def _says_it_twice(original: Any) -> Any:
    def passed_on(self: FrameRun, start: int, stop: int) -> bytes:
        data: bytes = original(self, start, stop)
        again: bytes = original(self, stop - 1, stop)
        return data + again

    return passed_on


def _believes_anybody(original: Any) -> Any:
    def may_answer(pending: Any, frame: Any) -> bool:
        return True

    return may_answer


ANSWER_BUGS: Final = (
    (
        "passes-any-answer", "an answer reaches a client that asked nothing",
        Questions, "takes", _passes_any_answer,
    ),
    (
        "passes-answers-of-anybody", "whoever knows an id may answer",
        Questions, "takes", _passes_answers_of_anybody,
    ),
    (
        "passes-answers-twice", "a receiver may answer again and again",
        Questions, "takes", _passes_answers_twice,
    ),
    (
        "passes-all-of-a-run", "answers in a row are passed on whoever was asked",
        Questions, "takes_all", _passes_all_of_a_run,
    ),
    (
        "passes-a-run-twice", "what was asked in a row may be answered in a row again and again",
        Questions, "takes_all", _run_passes_twice,
    ),
    (
        "said-twice", "the last of what a client says in a row is said twice",
        FrameRun, "passed_on", _says_it_twice,
    ),
    (
        "believes-anybody", "a client counts an answer from whoever gives it",
        answers, "_may_answer", _believes_anybody,
    ),
)  # fmt: skip
