"""The program ``nsq_to_file``: writes topics to files, durably."""

from __future__ import annotations

import logging
import os
import re
import signal
from collections.abc import Sequence

import anyio
from anyio.abc import TaskGroup

from tmqp_nsq.consuming import Sources, check_name, sources
from tmqp_nsq.flags import FlagError, FlagValues
from tmqp_nsq.starting import hostname, run_program, stop_signals
from tmqp_nsq.to_file.archive import TopicArchive
from tmqp_nsq.to_file.files import TopicFile
from tmqp_nsq.to_file.names import FileSettings, file_template, read_settings
from tmqp_nsq.tool_flags import NSQ_TO_FILE

__all__ = ["main", "run"]

logger = logging.getLogger("tmqp_nsq")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``nsq_to_file``; ends the process with its exit status."""
    run_program(NSQ_TO_FILE, run, arguments)


class _Archives:
    """The topics that are written: those named, and those found by a pattern."""

    def __init__(
        self, values: FlagValues, files: FileSettings, source: Sources, group: TaskGroup
    ) -> None:
        self._values = values
        self._files = files
        self._source = source
        self._group = group
        self._running: dict[str, TopicArchive] = {}

    def begin(self, topic: str) -> None:
        """Write a topic, if it is not written already."""
        if topic in self._running:
            return
        archive = TopicArchive(
            self._source.consumer(topic),
            TopicFile(self._files, file_template(self._files, topic, hostname(), os.getpid())),
            self._source.options.max_in_flight,
            self._values.seconds("sync-interval"),
            self._files.skip_empty,
        )
        self._running[topic] = archive
        self._group.start_soon(archive.run)

    async def discover(self, pattern: re.Pattern[str]) -> None:
        """Look for topics again and again, until cancelled."""
        while True:
            for topic in await self._source.discovery.topics():
                if pattern.search(topic):
                    self.begin(topic)
            await anyio.sleep(self._values.seconds("topic-refresh"))

    async def reopen(self) -> None:
        """Have all close their files."""
        async with anyio.create_task_group() as group:
            for archive in self._running.values():
                group.start_soon(archive.reopen)

    async def stop(self) -> None:
        """Stop all; returns when what was delivered is on disk."""
        async with anyio.create_task_group() as group:
            for archive in self._running.values():
                group.start_soon(archive.stop)


def _pattern(values: FlagValues) -> re.Pattern[str] | None:
    """The pattern of topics.

    :raises FlagError: if it is no regular expression, or topics are missing.
    """
    text = values.text("topic-pattern")
    for topic in values.texts("topic"):
        check_name("topic", topic)
    if not values.texts("topic") and not text:
        raise FlagError("--topic or --topic-pattern required")
    if text and not values.texts("lookupd-http-address"):
        raise FlagError("--lookupd-http-address must be specified with --topic-pattern")
    if values.seconds("topic-refresh") <= 0 or values.seconds("sync-interval") <= 0:
        raise FlagError("--topic-refresh and --sync-interval must be positive")
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise FlagError(f"--topic-pattern is not a regular expression: {error}") from None


async def run(values: FlagValues) -> None:
    """Run until SIGTERM or SIGINT.

    :raises FlagError: if the flags do not fit together.
    """
    files = read_settings(values)
    pattern = _pattern(values)
    file_template(files, "t", "h", 1)  # tell of a bad format before anything is consumed
    async with (
        sources(values) as source,
        anyio.create_task_group() as group,
        stop_signals(signal.SIGHUP) as signals,
    ):
        archives = _Archives(values, files, source, group)
        for topic in values.texts("topic"):
            archives.begin(topic)
        if pattern is not None:
            group.start_soon(archives.discover, pattern)
        async for number in signals:
            if number == signal.SIGHUP:
                await archives.reopen()
                continue
            logger.info("stopping")
            await archives.stop()
            group.cancel_scope.cancel()
            return
