"""Owns the way between the hub and the store: one piece of work at a time, in a thread.

Theory of operation.  A task takes what the journal has gathered, has it written, and hands the
answers to the driver's turn; what arrives meanwhile is the next batch.  So a server under load
syncs as often as the disk can, each time for all that came, and an idle one writes at once.  Only
what nobody waits for (messages that are settled) waits some milliseconds for company.  Reads go the
same way, behind what was gathered before them, so that a read finds what was written.

*Failure.*  When a write fails, its messages are refused to their producers, the broker is told that
the storage fails, and what is owed to the store is tried again after a pause that grows to a
second.  When nothing is owed any more, the next message is the trial: the broker is told to take
messages again, and hears at once if that was too early.  The log says when it begins and when a
message was saved again.

*The end.*  ``finish`` takes down what the store does not know yet, writes the last batch and
closes the store; only then was it a clean stop.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

import anyio

from tmqp.constants import RESULT_BUSY
from tmqp_server.engine.commands import Command, StorageState
from tmqp_server.engine.effects import Fetch, ReadStored
from tmqp_server.hub.hub import Hub, StorageQuestion
from tmqp_server.hub.recovery import answer_of, refusal_of
from tmqp_server.io.worker import Worker
from tmqp_server.storage.journal import Journal, Writing
from tmqp_server.storage.port import Store, StoreError

__all__ = ["StorageTask"]

logger = logging.getLogger("tmqp_server.storage")

#: Pauses after a failed write, in seconds.
_FIRST_PAUSE_S = 0.05
_LAST_PAUSE_S = 1.0
#: How long what nobody waits for is held back, in seconds.
_LINGER_S = 0.005
#: Questions are answered together until so much may have been read; and what others count as.
_READ_AT_ONCE_BYTES = 1 << 20
_QUESTION_BYTES = 1 << 16
#: Messages whose fate is told in one step of the broker, or little more.
_ANSWERS_PER_STEP = 1_000


class StorageTask:
    """Carries work to a store and answers back.

    :param answer: hands commands to the hub, in the driver's turn.
    """

    def __init__(
        self,
        store: Store,
        hub: Hub,
        journal: Journal,
        answer: Callable[[Iterable[Command]], None],
    ) -> None:
        self._store = store
        self._hub = hub
        self._journal = journal
        self._answer = answer
        self._wake = anyio.Event()
        self._worker = Worker("tmqp-server storage")
        self._lingers = False
        #: How long to wait after a failure, each ended by a success of its own kind.
        self._write_pause_s = 0.0
        self._read_pause_s = 0.0
        self._reason = ""
        self._reads: deque[StorageQuestion] = deque()
        self._stopping = False
        self._idle = anyio.Event()

    @property
    def failing(self) -> str:
        """Why the storage fails; empty while it does not."""
        return self._reason

    def wake(self) -> None:
        """There is something to do."""
        if not self._lingers or self._hub.storage_is_urgent:
            self._wake.set()

    async def run(self) -> None:
        """Work until :meth:`finish` is called."""
        try:
            while not self._stopping:
                if not self._hub.wants_storage and not self._reads:
                    self._wake = anyio.Event()
                    await self._wake.wait()
                    continue
                if not self._hub.storage_is_urgent and not self._reads:
                    await self._linger()
                await self._work()
                if self._write_pause_s or self._read_pause_s:
                    await self._pause()
        finally:
            self._idle.set()

    async def _linger(self) -> None:
        """Wait for something urgent, which takes along what is there, or for the time to pass."""
        self._lingers = True
        self._wake = anyio.Event()
        with anyio.move_on_after(_LINGER_S):
            await self._wake.wait()
        self._lingers = False

    async def _work(self) -> None:
        """One batch, and the reads that were asked for before it was taken."""
        self._reads.extend(self._hub.take_fetches())
        if not self._journal.is_empty:
            await self._write()
        while self._reads:
            answers: list[Command] = []
            try:
                await self._worker.do(partial(self._read, answers, anyio.current_time()))
            except Exception as error:
                self._answer(answers)  # what came before it
                if not self._read_pause_s:
                    logger.error("the storage cannot be read, it is tried again: %s", error)
                if not isinstance(error, StoreError):
                    logger.exception("the store failed")
                self._read_pause_s = _LAST_PAUSE_S
                self._refuse_readers()
                return
            self._read_pause_s = 0.0
            self._answer(answers)

    def _read(self, answers: list[Command], now: float) -> None:
        """Answer what was asked first, and more as long as that is little: in the thread."""
        size = 0
        while self._reads and size < _READ_AT_ONCE_BYTES:
            asked = self._reads[0]
            answers.append(answer_of(self._store, self._journal, asked, now))
            self._reads.popleft()
            size += asked.max_bytes if isinstance(asked, (Fetch, ReadStored)) else _QUESTION_BYTES

    def _refuse_readers(self) -> None:
        """Readers can try again; the broker's own questions stay."""
        refusals: list[Command] = []
        kept: deque[StorageQuestion] = deque()
        for asked in self._reads:
            if isinstance(asked, Fetch):
                kept.append(asked)
            else:
                refusals.append(refusal_of(asked, RESULT_BUSY))
        self._reads = kept
        self._answer(refusals)

    async def _write(self) -> None:
        writing = self._journal.take()
        try:
            await self._worker.do(partial(_write, self._store, writing))
        except StoreError as error:
            self._failed(writing, str(error))
            return
        except Exception as error:  # a bug in the store: nobody may take it for saved
            logger.exception("the store failed")
            self._failed(writing, f"{type(error).__name__}: {error}")
            return
        commands = self._answers(writing, True)
        # There may be room for all else and none for messages: only one of those is the proof.
        if self._reason and writing.batch.brings():
            logger.warning("the storage saves again")
            self._reason = ""
            commands.append(StorageState(True))
        if not self._reason:
            self._write_pause_s = 0.0
        self._answer(commands)
        if writing.batch.portions:
            await self._catch_up()

    async def _catch_up(self) -> None:
        """Have the store do what it left for later; the batch is saved, whatever comes of it."""
        try:
            await self._worker.do(self._store.catch_up)
        except StoreError as error:
            logger.warning("the store could not tidy up after a large write: %s", error)
        except Exception:
            logger.exception("the store failed")

    def _failed(self, writing: Writing, reason: str) -> None:
        if not self._reason:
            logger.error("the storage cannot save, messages to be saved are refused: %s", reason)
        self._reason = reason
        self._write_pause_s = min(max(2 * self._write_pause_s, _FIRST_PAUSE_S), _LAST_PAUSE_S)
        self._answer([StorageState(False), *self._answers(writing, False)])

    def _answers(self, writing: Writing, ok: bool) -> list[Command]:
        return list(self._journal.answers(writing, ok, _ANSWERS_PER_STEP))

    async def _pause(self) -> None:
        """Wait after a failure; with nothing owed, let the next message be the trial."""
        with anyio.move_on_after(max(self._write_pause_s, self._read_pause_s)):
            while not self._stopping:
                self._wake = anyio.Event()
                await self._wake.wait()
        if self._reason and not self._stopping and self._journal.is_empty:
            self._answer([StorageState(True)])

    async def finish(self) -> None:
        """Write what is left and close the store; no session may be left.

        :raises StoreError: when the last batch cannot be written; the store is closed then, but
            not cleanly.
        """
        self._stopping = True
        self._wake.set()  # whatever it waits for
        await self._idle.wait()
        journal = self._journal
        journal.notes(self._hub.broker.notes())
        writing = journal.take()
        clean = False
        try:
            await self._worker.do(partial(_write, self._store, writing))
            clean = True
        finally:
            await self._worker.do(partial(self._store.close, clean))
            self._worker.stop()


def _write(store: Store, writing: Writing) -> None:
    if not writing.batch.is_empty():
        store.write(writing.batch, time.time_ns() // 1_000)
