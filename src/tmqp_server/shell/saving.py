"""The pace of the storage: batches, delays, retries, and when a confirm may be sent.

Theory of operation.  The storage does one piece of work at a time.  Messages that arrive while a
batch is written form the next one: under load, a server syncs as often as the disk can, each time
for all messages that have arrived, and an idle one writes immediately.  Only settlements, which
nobody waits for, are delayed by some milliseconds to batch them.  Reads are done after the batch
that was collected before them, so that a read finds everything written.

*What a batch holds.*  :meth:`Saving.take` returns it when the store's thread begins, not when the
thread is called: so it contains the messages of all connections in the same round of the event
loop.  Otherwise, with 64 producers of one message each, every second sync would be for one message.
After a batch of one message, the next one begins immediately, because its producer is alone and
waits for each answer.

*Batching.* Producers that wait for their answers send again as soon as they have them, and not all
in one round.  On a slow disk, the first few of them would get a sync for themselves, and all others
would wait for two.  So the next batch waits for as many messages as the larger one of the last two
had, but at most for a quarter of the time that the last write took.  If that is less than the
resolution of the event loop's timers, as on a fast disk, it does not wait.

*Haste.*  A message that is settled before it is written need not be written, and its producer need
not wait for the disk if it has requested that (``done_confirms``).  If a queue's messages were
settled before they were on disk, the next one waits for the shortest time of a timer.  If it is not
settled by then, it is written, and the next one is written immediately.  While such messages arrive
and are settled, the batch continues to wait, but no longer than settlements do.

*Confirms.*  Only the successful end of a batch confirms its messages, and only those of the batch
that was taken.

*Failure.*  When a write fails, its messages are refused, the broker is notified that the storage
fails, and everything else that must be written is retried after a pause that doubles up to a
second.  When nothing is left to write, the next message is the test: the broker accepts messages
again, and is notified immediately if that was too early.  Only a batch with messages proves that
the storage works again, because there may be room for everything else.  The broker is notified of
that before the answers of the batch: messages that enter a queue with them wait on disk again if
older ones do, and do not overtake these.  After a failed read, the
readers are refused and can retry, the broker's own reads are kept, and the same pause follows.

*A store that waits.*  The log of a group may take long, and meanwhile the current batch is neither
written nor refused.  After ``patience_s``, the broker is notified that the storage fails, so that
no more messages wait; the end of that batch, or of a later one, reverses this.

*The end.*  After :meth:`Saving.stop` the current work is finished; :meth:`Saving.finish` writes the
last batch and closes the store: cleanly only if that batch was written.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, final

from tmqp.backoff import Backoff
from tmqp.constants import RESULT_BUSY
from tmqp_server.engine.commands import Command, StorageState
from tmqp_server.engine.effects import Fetch, ReadStored
from tmqp_server.hub.questions import StorageQuestion, refusal_of
from tmqp_server.shell.tallies import ShellTally
from tmqp_server.shell.world import (
    ERROR,
    WARNING,
    CatchUp,
    CloseStore,
    Log,
    ReadBatch,
    WorldEffect,
    WriteBatch,
)
from tmqp_server.storage.journal import Journal, Writing
from tmqp_server.storage.port import StoreError

__all__ = [
    "CATCHING_UP",
    "CLOSED",
    "CLOSING",
    "FINISHING",
    "IDLE",
    "LINGERING",
    "PAUSED",
    "READING",
    "STOPPED",
    "WRITING",
    "Saving",
]

#: States; one piece of work is out in WRITING, READING, CATCHING_UP, FINISHING and CLOSING.
IDLE: Final = 0
LINGERING: Final = 1
WRITING: Final = 2
READING: Final = 3
CATCHING_UP: Final = 4
PAUSED: Final = 5
STOPPED: Final = 6
FINISHING: Final = 7
CLOSING: Final = 8
CLOSED: Final = 9

#: Pauses after failed writes, and after a failed read, in seconds.
_PAUSES: Final = Backoff(0.05, 1.0, 0.0)
_READ_PAUSE_S: Final = 1.0
#: How long settlements are delayed, and messages for batching at most, in seconds.
_LINGER_S: Final = 0.005
#: Messages wait for others if they may do so for this long, in seconds: timers are no finer.
_LEAST_LINGER_S: Final = 0.001
#: Reads are answered together up to this number of bytes; and what other questions count as.
_READ_AT_ONCE_BYTES: Final = 1 << 20
_QUESTION_BYTES: Final = 1 << 16
#: The messages whose results are passed to the broker in one step, approximately.
_ANSWERS_PER_STEP: Final = 1_000


@final
class Saving:
    """Paces one store.

    :param journal: collects what must be written.
    :param world: gets the effects.
    :param answers: gets the commands for the broker, in order.
    :param tally: counts the batches.

    Attributes: ``state``, and ``failing``, why messages cannot be saved, empty while they can;
    ``first_s``, since when the journal is not empty, below 0 if unknown; ``patience_s``, how long a
    batch may be out before that counts as a failure.
    """

    def __init__(
        self,
        journal: Journal,
        world: list[WorldEffect],
        answers: deque[Command],
        tally: ShellTally | None = None,
    ) -> None:
        self.first_s = -1.0
        self._taken_s = -1.0
        self._tally = ShellTally() if tally is None else tally
        self.state: int = IDLE
        self.failing = ""
        self.patience_s = math.inf
        self._is_late = False
        self._journal = journal
        self._world = world
        self._answers = answers
        #: Asked since the last batch was taken; asked before it, and next.
        self._asked: list[StorageQuestion] = []
        self._reads: deque[StorageQuestion] = deque()
        self._writing: Writing | None = None
        #: The number of messages of the last batch.
        self._last_count = 0
        #: How many waited for the batch that is out, the last one, and the previous one that.
        self._company = 0
        self._last_company = 0
        self._earlier_company = 0
        #: Since when a batch is out, and how long the last one was, in seconds.
        self._begun_s = 0.0
        self._took_s = 0.0
        self._due = math.inf
        self._lingers_until = 0.0
        self._failures = 0
        self._reads_fail = False
        self._read_failed = False
        self._stopping = False

    def _log(self, level: int, text: str, error: Exception | None = None) -> None:
        self._world.append(Log(level, text, 0, error, "storage"))

    # -- what is wanted -------------------------------------------------------------------------

    def ask(self, question: StorageQuestion) -> None:
        """Add a question of the broker to the store."""
        self._asked.append(question)

    @property
    def wants(self) -> bool:
        """Return whether there is work to begin: then call :meth:`wake`."""
        if self.state == IDLE:
            return bool(self._asked) or bool(self._reads) or not self._journal.is_empty
        return self.state == LINGERING and self._is_urgent() and not self._linger_s()

    def wake(self, now: float) -> None:
        """Begin work, if the store is idle and there is nothing to wait for."""
        if self.wants:
            self._begin(now)

    def note(self, now: float) -> None:
        """Note since when there is something to be written."""
        if not self._journal.is_empty:
            self.first_s = now

    def _is_urgent(self) -> bool:
        return bool(self._asked) or bool(self._reads) or self._journal.is_urgent

    def _linger_s(self) -> float:
        """How long messages wait for others; 0 if there are enough, or something else is urgent."""
        if self._asked or self._reads:
            return 0.0
        if self._journal.may_be_done:
            return _LEAST_LINGER_S
        waiting = self._journal.waiting
        most = max(self._last_company, self._earlier_company)
        if not waiting or waiting >= most:
            return 0.0
        linger_s = min(self._took_s / 4, _LINGER_S)
        return linger_s if linger_s >= _LEAST_LINGER_S else 0.0

    def _begin(self, now: float) -> None:
        """Begin with the collected messages, unless they should wait for others."""
        if self.state != LINGERING:
            linger_s = self._linger_s() if self._is_urgent() else _LINGER_S
            if linger_s:
                self._enter(LINGERING, now + linger_s)
                self._lingers_until = now + _LINGER_S
                if self._journal.may_be_done:
                    self._journal.has_moved()
                return
        self._reads.extend(self._asked)
        self._asked.clear()
        if self._journal.is_done:
            self.first_s = -1.0
            self._answer(self._journal.take(), True)
        if not self._journal.is_empty:
            self._enter(WRITING, now + self.patience_s)
            self._begun_s = now
            self._world.append(WriteBatch(self._last_count == 1))
        else:
            self._read_on(now)

    def _enter(self, state: int, due: float = math.inf) -> None:
        self.state = state
        self._due = due

    def take(self) -> Writing:
        """Return the batch to write, with everything that has arrived until now; called when the
        store begins."""
        assert self.state in (WRITING, FINISHING), "a batch is to be written"
        assert self._writing is None, "it is taken once"
        self._company = self._journal.waiting
        writing = self._writing = self._journal.take()
        self._taken_s, self.first_s = self.first_s, -1.0
        return writing

    def _read_on(self, now: float) -> None:
        """Do the reads that were requested before the last batch was taken; then pause, or begin
        the next batch.
        """
        if not self._reads:
            self._rest(now)
            return
        questions: list[StorageQuestion] = []
        size = 0
        for asked in self._reads:
            if size >= _READ_AT_ONCE_BYTES:
                break
            questions.append(asked)
            size += asked.max_bytes if isinstance(asked, (Fetch, ReadStored)) else _QUESTION_BYTES
        self._enter(READING)
        self._world.append(ReadBatch(questions))

    def _rest(self, now: float) -> None:
        """End this piece of work; pause if something has failed."""
        pause_s = _PAUSES.delay_s(self._failures) if self._failures else 0.0
        if self._read_failed:
            self._read_failed = False
            pause_s = _READ_PAUSE_S
        if self._stopping:
            self._enter(STOPPED)
        elif pause_s:
            self._enter(PAUSED, now + pause_s)
        else:
            self._enter(
                IDLE
            )  # work that arrived meanwhile begins after the broker has got the answers

    # -- what came of it ------------------------------------------------------------------------

    def written(self, error: Exception | None, now: float) -> None:
        """Handle the result of the batch that was taken."""
        writing = self._writing
        assert writing is not None, "only what was handed out is written"
        self._writing = None
        if self.state == FINISHING:
            self._close(error)
            return
        assert self.state == WRITING, "one piece of work is out at a time"
        if error is not None:
            self._failed(writing, error)
            self._read_on(now)
            return
        count = writing.batch.messages()
        if count:
            self._took_s = now - self._begun_s
            self._earlier_company, self._last_company = self._last_company, self._company
            self._last_count = count
            self._tally.batch.count(count)
            if self._taken_s >= 0.0:
                self._tally.confirm.observe(now - self._taken_s, count)
        if self.failing and (self._is_late or writing.batch.brings()):
            self._log(WARNING, "the storage saves again")
            self.failing = ""
            self._is_late = False
            self._answers.append(StorageState(True))
        self._answer(writing, True)
        if not self.failing:
            self._failures = 0
        if writing.batch.portions:
            self._enter(CATCHING_UP)
            self._world.append(CatchUp())
        else:
            self._read_on(now)

    def _answer(self, writing: Writing, ok: bool) -> None:
        self._answers.extend(self._journal.answers(writing, ok, _ANSWERS_PER_STEP))

    def _failed(self, writing: Writing, error: Exception) -> None:
        reason = self._reason(error)
        if not self.failing:
            text = f"the storage cannot save, messages to be saved are refused: {reason}"
            self._log(ERROR, text)
        self.failing = reason
        self._is_late = False
        self._failures += 1
        self._tally.failures += 1
        self._answers.append(StorageState(False))
        self._answer(writing, False)

    def _reason(self, error: Exception) -> str:
        """The text of a store's error; any other exception is a bug in the store, and is logged."""
        if isinstance(error, StoreError):
            return str(error)
        self._log(ERROR, "the store failed", error)
        return f"{type(error).__name__}: {error}"

    def caught_up(self, error: Exception | None, now: float) -> None:
        """Handle the end of the store's deferred work; the batch is saved, even if that failed."""
        assert self.state == CATCHING_UP, "nothing else tidies up"
        if error is not None:
            reason = self._reason(error)
            text = f"the store could not tidy up after a large write: {reason}"
            self._log(WARNING, text)
        self._read_on(now)

    def read(self, answers: Sequence[Command], error: Exception | None, now: float) -> None:
        """Handle the store's answers to the first questions; either all were answered, or there is
        an error.
        """
        assert self.state == READING, "only what was asked is answered"
        for answer in answers:
            self._reads.popleft()
            self._answers.append(answer)
        if error is None:
            self._reads_fail = False
            self._read_on(now)
            return
        reason = self._reason(error)
        if not self._reads_fail:
            text = f"the storage cannot be read, retrying: {reason}"
            self._log(ERROR, text)
        self._reads_fail = True
        self._read_failed = True
        self._refuse_readers()
        self._rest(now)

    def _refuse_readers(self) -> None:
        """Refuse the readers, who can try again; keep the broker's own questions."""
        kept: deque[StorageQuestion] = deque()
        for asked in self._reads:
            if isinstance(asked, Fetch):
                kept.append(asked)
            else:
                self._answers.append(refusal_of(asked, RESULT_BUSY))
        self._reads = kept

    # -- time -----------------------------------------------------------------------------------

    def due(self) -> float:
        """When :meth:`on_deadline` wants to be called; infinity for never."""
        return self._due

    def on_deadline(self, now: float) -> None:
        """Handle the end of a delay, of the pause or of the patience."""
        if self.state == WRITING:
            self._due = math.inf
            self._is_late = True
            if not self.failing:
                self.failing = f"a batch is not written after {self.patience_s:g} s"
                text = f"the storage waits, messages to be saved are refused: {self.failing}"
                self._log(ERROR, text)
            self._answers.append(StorageState(False))
        elif self.state == PAUSED:
            if self.failing and self._journal.is_empty:
                self._answers.append(StorageState(True))  # the next message is the trial
            self._enter(IDLE)
        elif self._journal.may_be_done and self._journal.has_moved() and now < self._lingers_until:
            self._due = now + _LEAST_LINGER_S
        else:
            self._begin(now)

    # -- the end --------------------------------------------------------------------------------

    def stop(self) -> None:
        """Begin no more work; when the state is ``STOPPED``, call :meth:`finish`."""
        self._stopping = True
        if self.state in (IDLE, LINGERING, PAUSED):
            self._enter(STOPPED)

    def finish(self, notes: Iterable[tuple[int, int, int, int]]) -> None:
        """Write the last batch, with the broker's notes, and close the store."""
        assert self.state == STOPPED, "nothing is out at the end"
        self._journal.notes(notes)
        self._enter(FINISHING)
        self._world.append(WriteBatch())

    def _close(self, error: Exception | None) -> None:
        if error is not None:
            reason = self._reason(error)
            self._log_unclean(reason)
        self._enter(CLOSING)
        self._world.append(CloseStore(error is None))

    def closed(self, error: Exception | None) -> None:
        """Handle that the store is closed."""
        if error is not None:
            self._log_unclean(self._reason(error))
        self._enter(CLOSED)

    def _log_unclean(self, reason: str) -> None:
        self._log(ERROR, f"the storage could not be closed cleanly: {reason}")
