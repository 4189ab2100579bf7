"""Planted bugs in what the broker passes from client to client; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

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
        "believes-anybody", "a client counts an answer from whoever gives it",
        answers, "_may_answer", _believes_anybody,
    ),
)  # fmt: skip
