"""Direct messages that wait for an answer, and the clients that may answer.

A client learns the id of every message that it receives, so an id alone proves nothing: an answer
(an acknowledgement or a response) is forwarded only if its sender received a message with that id,
and if its target requested an answer.  Each receiver may acknowledge once and respond once.

Questions belong to the session that asks and end with it.  An old one makes room for a new one:
answers are forwarded for a limited time.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.books import Books, plain_question_bytes, question_bytes
from tmqp_server.engine.options import ASKS_ACKNOWLEDGE, ASKS_RESPONSE

__all__ = ["Questions"]

_EITHER: Final = ASKS_ACKNOWLEDGE | ASKS_RESPONSE


class _Question:
    """One direct message: the answers that may still come, by the number of the receiver.

    With ``elsewhere``, other nodes have the message, too, and any node may forward an answer.  A
    question that ``is_shared`` stands for several messages, whose only receiver has not answered;
    it is never changed.
    """

    __slots__ = (
        "asks_response",
        "elsewhere",
        "first",
        "first_may",
        "is_shared",
        "memory",
        "others",
        "until",
    )

    def __init__(self, receivers: list[int], asks: int, elsewhere: bool, until: float) -> None:
        self.asks_response = asks & ASKS_RESPONSE != 0
        # A receiver that is to respond may acknowledge before.
        allowed = _EITHER if self.asks_response else ASKS_ACKNOWLEDGE
        #: The first receiver, and which of its answers may still come.
        self.first = receivers[0] if receivers else 0
        self.first_may = allowed if receivers else 0
        #: The same of all others.  Nearly always there is one receiver, which needs no table.
        self.others: dict[int, int] | None = None
        if len(receivers) > 1:
            self.others = dict.fromkeys(receivers, allowed)
            del self.others[self.first]
        self.elsewhere = elsewhere
        self.is_shared = False
        self.until = until
        #: What it is charged in the broker's books.
        self.memory = 0

    def may(self, number: int) -> int:
        """The answers that may still come from a receiver."""
        if number == self.first:
            return self.first_may
        return 0 if self.others is None else self.others.get(number, 0)

    def let(self, number: int, allowed: int) -> None:
        """Allow these answers from a receiver, 0 for none."""
        if number == self.first:
            self.first_may = allowed
        elif allowed:
            if self.others is None:
                self.others = {}
            self.others[number] = allowed
        elif self.others is not None:
            self.others.pop(number, None)

    def receivers(self) -> list[int]:
        """The receivers from which an answer may still come."""
        found = [self.first] if self.first_may else []
        return found if self.others is None else found + list(self.others)

    def is_answered(self) -> bool:
        """Whether no more answers may come."""
        return not self.first_may and not self.others


class Questions:
    """The direct messages of one session that wait for an answer, by id, the oldest first.

    :param most: the limit; beyond it, the oldest is dropped.
    :param books: is charged for their memory.
    """

    __slots__ = ("_books", "_by_id", "_most", "_until")

    def __init__(self, most: int, books: Books) -> None:
        self._books = books
        self._by_id: dict[str, _Question] = {}
        self._most = most
        #: None of them is old enough to be dropped before this time.
        self._until = 0.0

    def __len__(self) -> int:
        return len(self._by_id)

    def ask(
        self, message_id: str, receivers: list[int], asks: int, elsewhere: bool, until: float
    ) -> None:
        """Record the receivers of a message, which may answer it.

        :param receivers: the numbers of their sessions.
        :param asks: one or both of ASKS_ACKNOWLEDGE and ASKS_RESPONSE.
        :param elsewhere: whether other nodes have it, too.
        :param until: when it is dropped, in monotonic seconds; never less than for earlier
            messages.
        """
        by_id = self._by_id
        before = self._forget(message_id) if message_id in by_id else None
        question = _Question(receivers, asks, elsewhere, until)
        count = len(receivers)
        if before is not None:
            # A router forwards one message to the receivers of several bindings, one after another.
            for number in before.receivers():
                if not question.may(number):
                    question.let(number, before.may(number))
            question.elsewhere = elsewhere or before.elsewhere
            count = len(question.receivers())
        if not by_id:
            self._until = until
        by_id[message_id] = question
        question.memory = question_bytes(message_id, count)
        self._books.charge(question.memory)
        if len(by_id) > self._most:
            self._forget(next(iter(by_id)))

    def ask_all(
        self, message_ids: list[str], receivers: list[int], asks: int, until: float
    ) -> bool:
        """The same for several messages with one receiver.

        :returns: False, with nothing done, if there may not be enough memory, or not all ids are
            ASCII.
        """
        characters = "".join(message_ids)
        if not characters.isascii():
            return False
        if not self._books.has_room(plain_question_bytes(len(message_ids), len(characters))):
            return False
        by_id = self._by_id
        if not by_id:
            self._until = until
        shared: _Question | None = None
        length = 0
        charged = 0
        for message_id in message_ids:
            if message_id in by_id:
                self.ask(message_id, receivers, asks, False, until)
                continue
            if shared is None or len(message_id) != length:
                length = len(message_id)
                shared = _Question(receivers, asks, False, until)
                shared.is_shared = True
                shared.memory = plain_question_bytes(1, length)
            by_id[message_id] = shared
            charged += shared.memory
            if len(by_id) > self._most:
                self._forget(next(iter(by_id)))
        self._books.charge(charged)
        return True

    def _forget(self, message_id: str) -> _Question | None:
        question = self._by_id.pop(message_id, None)
        if question is not None:
            self._books.refund(question.memory)
        return question

    def memory(self) -> int:
        """Their charge in the broker's books."""
        return sum([question.memory for question in self._by_id.values()])

    def clear(self) -> None:
        """Drop all of them."""
        self._books.refund(self.memory())
        self._by_id = {}

    def takes(self, message_id: str, number: int, answer: int, node: bool, now: float) -> bool:
        """Whether an answer may be forwarded; if so, it is recorded and not accepted again.

        :param number: the session that answers.
        :param answer: ASKS_ACKNOWLEDGE or ASKS_RESPONSE.
        :param node: whether that session is another node.
        """
        if now >= self._until:
            self._forget_old(now)
        question = self._by_id.get(message_id)
        if question is None:
            return False
        if node:
            return question.elsewhere
        allowed = question.may(number)
        if not allowed & answer:
            return False
        if question.is_shared:
            question = self._own(message_id, question)
        if answer == ASKS_RESPONSE or not question.asks_response:
            question.let(number, 0)
            if question.is_answered() and not question.elsewhere:
                self._forget(message_id)
        else:
            question.let(number, allowed & ~answer)
        return True

    def takes_all(self, message_ids: list[str], number: int, answer: int, now: float) -> list[int]:
        """Record answers of one kind from a session that is not a node, as :meth:`takes` does.

        :returns: the indexes of those that may not be forwarded.
        """
        if now >= self._until:
            self._forget_old(now)
        refused: list[int] = []
        refunded = 0
        by_id = self._by_id
        for place, message_id in enumerate(message_ids):
            question = by_id.get(message_id)
            if (
                question is not None
                and question.is_shared
                and question.first == number
                and (answer == ASKS_RESPONSE) == question.asks_response
            ):
                # Its last answer.
                del by_id[message_id]
                refunded += question.memory
            elif not self.takes(message_id, number, answer, False, now):
                refused.append(place)
        self._books.refund(refunded)
        return refused

    def _own(self, message_id: str, shared: _Question) -> _Question:
        """Replace a shared question with an equal one for this message alone."""
        asks = ASKS_RESPONSE if shared.asks_response else ASKS_ACKNOWLEDGE
        question = _Question([shared.first], asks, False, shared.until)
        question.memory = shared.memory
        self._by_id[message_id] = question
        return question

    def _forget_old(self, now: float) -> None:
        by_id = self._by_id
        while by_id:
            message_id = next(iter(by_id))
            self._until = by_id[message_id].until
            if self._until > now:
                return
            self._forget(message_id)
