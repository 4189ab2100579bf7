"""An asyncio event loop that calls the readers of sockets straight from its selector.

Theory of operation.  asyncio turns what its selector reports into a list, looks up each entry's
handle, queues it, takes it out of the queue and runs it.  For a server that does little with each
chunk of bytes, that is as much work as the chunk itself.  Here the selector calls a reader that was
passed to :meth:`DirectLoop.read_directly` when it finds its socket readable, without asyncio: then
it waits again, until there is something for asyncio.  It returns on another event, on the timeout,
or for a callback or timer that a reader has requested. asyncio handles timers, tasks, writers and
other readers as usual.

The reader is also registered with asyncio, and the selector only forestalls it.  So whatever
asyncio does with the socket meanwhile (adding and removing a writer, changing the registration) is
correct without further code here, and a socket that is missing here is still read from.

Other threads call a function in the loop with :meth:`DirectLoop.call_directly_threadsafe`, which
takes half the time of ``call_soon_threadsafe``: no handle, no lock, and no second turn of asyncio.
They ring a *bell*, a counter of the kernel that the selector watches, and the function is called
after the readers: after everything that was readable together with the bell.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import selectors
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import Context
from io import FileIO
from typing import TYPE_CHECKING, Any, Final, TypeVarTuple, Unpack

from tmqp_server.io.direct_readers import IN, OUT, DirectReaders
from tmqp_server.shell.pulse import Pulse, SlowTurn

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

__all__ = ["DirectLoop", "direct_loop"]

_Arguments = TypeVarTuple("_Arguments")

#: What is written to a bell, which counts in eight bytes of the machine's own order.
_RING: Final = (1).to_bytes(8, sys.byteorder)


class _DirectSelector(selectors.BaseSelector):
    """As :class:`selectors.EpollSelector`, but it calls direct readers itself.

    :param on_fault: gets the exception of a direct reader; the other readers are still called.
    """

    def __init__(self, on_fault: Callable[[Exception], None]) -> None:
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._epoll = select.epoll()
        self.direct = DirectReaders(self._epoll.poll, on_fault)

    def register(
        self, fileobj: FileDescriptorLike, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        """Begin to watch a file."""
        fd = _descriptor(fileobj)
        if fd in self._keys:
            raise KeyError(f"{fileobj!r} (FD {fd}) is already registered")
        self._epoll.register(fd, _mask(events))
        key = self._keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
        return key

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        """Stop watching a file."""
        key = self._keys.pop(self._known(fileobj))
        self.direct.readers.pop(key.fd, None)
        with contextlib.suppress(OSError):  # of one closed before, the kernel knows nothing
            self._epoll.unregister(key.fd)
        return key

    def modify(
        self, fileobj: FileDescriptorLike, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        """Watch a file for other events."""
        fd = self._known(fileobj)
        if events != self._keys[fd].events:
            self._epoll.modify(fd, _mask(events))
        key = self._keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait; call the direct readers that have something to read, and return the others."""
        keys = self._keys
        found = self.direct.wait(timeout, len(keys) or 1)
        return [(keys[fd], events & keys[fd].events) for fd, events in found if fd in keys]

    def close(self) -> None:
        """Stop watching all files."""
        self._epoll.close()
        self._keys.clear()
        self.direct.readers.clear()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """Return the watched files, by file descriptor."""
        return self._keys

    def get_key(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        """Return how a file is watched.

        :raises KeyError: when it is not watched.
        """
        return self._keys[self._known(fileobj)]

    def _known(self, fileobj: FileDescriptorLike) -> int:
        fd = _descriptor(fileobj)
        if fd not in self._keys:
            raise KeyError(f"{fileobj!r} is not registered")
        return fd


class DirectLoop(asyncio.SelectorEventLoop):
    """asyncio's event loop with direct readers."""

    def __init__(self) -> None:
        selector = _DirectSelector(self._log_fault)
        self._direct = selector.direct
        #: The file itself, because a closed file's number may already belong to another one.
        self._bell: FileIO | None = None
        self._handed: deque[Callable[[], object]] = deque()
        super().__init__(selector)

    def _log_fault(self, error: Exception) -> None:
        self.call_exception_handler({"message": "a direct reader failed", "exception": error})

    def read_directly(self, fd: int, reader: Callable[[], None]) -> None:
        """Call the reader that :meth:`add_reader` got for this socket directly from the selector.

        This ends with :meth:`remove_reader`.
        """
        self._direct.readers[fd] = reader

    def watch_bell(self) -> None:
        """Watch the bell, so that :meth:`call_directly_threadsafe` works; call it in the loop's
        thread.
        """
        if self._bell is None:
            fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._bell = FileIO(fd, "r+")
            self._direct.hear = self._hear
            self.add_reader(fd, self._note_ring)
            self.read_directly(fd, self._note_ring)

    def call_directly_threadsafe(self, callback: Callable[[], object]) -> None:
        """Call a function in the loop's thread; from any thread.

        :raises RuntimeError: when the loop is closed.
        """
        bell = self._bell
        assert bell is not None, "it is watched"
        self._handed.append(callback)
        try:
            bell.write(_RING)
        except ValueError:
            raise RuntimeError("the event loop is closed") from None

    def _note_ring(self) -> None:
        assert self._bell is not None, "it has rung"
        self._bell.read(8)
        self._direct.rung = True

    def _hear(self) -> None:
        self._direct.rung = False
        handed = self._handed
        for _ in range(len(handed)):  # what comes meanwhile rings again
            callback = handed.popleft()
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - as with asyncio the loop continues
                self._log_fault(error)

    def close(self) -> None:
        """Close the loop and the bell."""
        super().close()
        if self._bell is not None:
            self._bell.close()

    def add_rounds(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """Call *begin* before, and *end* after, the direct readers that are ready at the same time,
        if there are several.
        """
        self._direct.rounds[begin] = end

    def note_turns(self, pulse: Pulse | None, on_slow: Callable[[SlowTurn], None] | None) -> None:
        """Measure turns from now on, and report slow ones; None to stop."""
        if pulse is not None:
            pulse.woke = time.monotonic()
        self._direct.pulse = pulse
        self._direct.on_slow = on_slow

    def remove_rounds(self, begin: Callable[[], None]) -> None:
        """Stop calling the functions of :meth:`add_rounds`."""
        self._direct.rounds.pop(begin, None)

    def remove_reader(self, fd: FileDescriptorLike) -> bool:
        """Remove the reader of a socket."""
        self._direct.readers.pop(_descriptor(fd), None)
        return super().remove_reader(fd)

    # asyncio must handle what a reader requests.  Other threads and signals cause an event.

    def call_soon(
        self,
        callback: Callable[[Unpack[_Arguments]], object],
        *args: *_Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Call a function in the next turn."""
        self._direct.asked = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[_Arguments]], object],
        *args: *_Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call a function at a time."""
        self._direct.asked = True
        return super().call_at(when, callback, *args, context=context)


def direct_loop() -> asyncio.AbstractEventLoop:
    """Make an event loop for :func:`anyio.run`: a direct one if the system has epoll."""
    return DirectLoop() if hasattr(select, "epoll") else asyncio.new_event_loop()


def _descriptor(fileobj: FileDescriptorLike) -> int:
    return fileobj if isinstance(fileobj, int) else fileobj.fileno()


def _mask(events: int) -> int:
    mask = IN if events & selectors.EVENT_READ else 0
    return mask | (OUT if events & selectors.EVENT_WRITE else 0)
