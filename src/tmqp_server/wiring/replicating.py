"""Builds this server's part in a replication group from its configuration.

Imported only if there is ``[replication]``, because it needs extra packages.

Theory of operation.  A server of a group listens from the start, and refuses clients while it is a
standby. When it leads, it restores the contents of its store, and accepts clients.  However long
that takes, it answers requests meanwhile: a thread reads the store, and the broker is restored in
slices.  A leader never becomes a standby again: when its life in the group is over, its process
ends at once with the status ``OVER``, so that no client gets an answer from a server that may have
been replaced.  Its supervisor starts it again, and it stands by with what its disk has.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
import anyio.to_thread

from tmqp.address import Address
from tmqp_server.config import ConfigError, ServerConfig
from tmqp_server.engine.commands import ReportMembers
from tmqp_server.hub.questions import Outside
from tmqp_server.hub.recovery import restoring
from tmqp_server.io.event_loop import thread_caller
from tmqp_server.io.replica import Replica
from tmqp_server.io.shell import Shell
from tmqp_server.replication.life import LifeSettings
from tmqp_server.replication.view import GroupView
from tmqp_server.settings.replication import ReplicationConfig
from tmqp_server.storage.log import Leader, SharedLog
from tmqp_server.storage.port import Recovered, Store, StoreError
from tmqp_server.storage.sqlite import exposed
from tmqp_server.storage.sqlite.replicated import ReplicatedStore
from tmqp_server.wiring.assembly import declare

__all__ = ["OVER", "GroupMember", "end_process", "join", "open_log"]

logger = logging.getLogger("tmqp_server.replication")

#: How often operators are notified of a group in which nothing happens, in seconds.
_LOOK_S: Final = 1.0
#: An append that takes longer counts as a failure of the storage while it waits, in seconds.
_PATIENCE_S: Final = 1.0
#: How many steps of the restoration run before other tasks: some milliseconds.
_STEPS_PER_SLICE: Final = 32
#: The view before the life begins.
_NOTHING_KNOWN: Final = GroupView("standby", 0, "", 0, 0, [])
#: The exit status of a server whose life in its group is over; start the server again.
OVER: Final = 75


def open_log(config: ReplicationConfig) -> SharedLog:
    """Open the log of the group.

    :raises ConfigError: when a needed package is not installed, or a file cannot be read.
    """
    try:
        from tmqp_server.storage.etcd import EtcdAccess, EtcdLog  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"replication needs the package {error.name}: install tmqp[replication]"
        ) from error
    certificate = None
    if config.certificate and config.key:
        certificate = (_read(config.certificate, "certificate"), _read(config.key, "key"))
    access = EtcdAccess(
        config.servers,
        timeout_s=config.timeout_s,
        user=config.user,
        password=config.password,
        ca=None if config.ca is None else _read(config.ca, "ca"),
        certificate=certificate,
    )
    return EtcdLog(access, config.group)


def _read(name: str, key: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"replication: {key}: cannot read {name}: {error.strerror}") from error


class GroupMember:
    """This server in its group.

    :param over: called with the reason when its life there ends, unless it was stopped; called by
        any thread, and no client may get an answer after it.
    :raises ConfigError: when the log cannot be used.
    :raises StoreError: when the directory cannot be used.

    Attributes: ``store``, which belongs to the group's thread until this server leads.
    """

    def __init__(
        self, config: ServerConfig, over: Callable[[str], None], log: SharedLog | None = None
    ) -> None:
        assert config.replication is not None, "it is in a group"
        assert config.data is not None, "it was checked"
        self._server_config = config
        self._config = config.replication
        self._over = over
        self._is_stopped = False
        self._log = open_log(self._config) if log is None else log
        directory = Path(config.data)
        try:
            self.store = ReplicatedStore(directory, floor_bytes=config.storage.floor_bytes)
        except BaseException:
            self._log.close()
            raise
        if warning := exposed(directory):
            logger.warning("%s", warning)
        self._replica: Replica | None = None
        self._has_claimed = False
        self._leads = False
        self._restored = anyio.Event()
        self._news = anyio.Event()
        self._call: Callable[[Callable[[], None]], object] | None = None

    async def live(
        self, shell: Shell, listen: tuple[Address, ...], go_out: Callable[[], None]
    ) -> None:
        """Stand by until this server leads, then accept clients; show operators the state of the
        group.

        :param listen: the addresses on which the server listens, with the actual ports.
        :param go_out: starts the connections that the server opens itself.
        """
        address = str(self._config.told(listen))
        self._start(address)
        turn = shell.turn
        assert turn.saving is not None, "a server of a group keeps messages"
        turn.saving.patience_s = _PATIENCE_S
        while not self._is_stopped:
            view = self.look()
            if turn.hub.stands_by:
                turn.hub.stand_by("" if view.leader == address else view.leader)
            turn.perform([ReportMembers(view.members)], shell.now())
            shell.attend()
            with anyio.move_on_after(_LOOK_S):
                await self._news.wait()
            self._news = anyio.Event()
            begins = self._has_claimed and turn.hub.stands_by and not self._is_stopped
            if begins and await self._lead(shell):
                go_out()

    async def _lead(self, shell: Shell) -> bool:
        """Restore the contents of the store, and accept clients; those that connect meanwhile are
        refused.

        :return: whether it leads; if not, its life is over.
        """
        replica = self._replica
        turn = shell.turn
        hub = turn.hub
        assert replica is not None, "it has begun"
        self._leads = True  # the store is the server's from here on
        hub.stand_by("")
        try:
            self.store.lead(replica.append, replica.fail, replica.kept)
            found = await anyio.to_thread.run_sync(self.store.recover)
            await self._restore(shell, found)
            declare(hub.broker, self._server_config, shell.now(), hub.take_down)
        except (StoreError, ConfigError) as error:
            replica.fail(str(error))
            return False
        finally:
            self._restored.set()
        hub.take_clients()
        turn.perform((), shell.now())
        shell.attend()
        logger.info("leads its group, and accepts clients")
        return True

    async def _restore(self, shell: Shell, found: Recovered) -> None:
        """Restore the broker in slices, between which other tasks run."""
        hub = shell.turn.hub
        assert hub.journal is not None, "a server of a group keeps messages"
        wanted: list[Outside] = []
        hub.is_restoring = True
        try:
            for step, _ in enumerate(restoring(found, hub, hub.journal, shell.now), 1):
                wanted += hub.take_outside()
                if step % _STEPS_PER_SLICE == 0:
                    await anyio.lowlevel.checkpoint()
        finally:
            hub.is_restoring = False
        hub.outside[:0] = wanted

    async def give_store_back(self) -> None:
        """Prepare to close the store when the server stops: a standby takes it from the group's
        thread; a server that has just begun to lead waits until it is restored.
        """
        if self._leads:
            await self._restored.wait()
        else:
            await anyio.to_thread.run_sync(self.stop)

    async def leave(self) -> None:
        """End the life in the group, after the store was closed; this resigns in the log."""
        await anyio.to_thread.run_sync(self.stop)

    def _start(self, address: str) -> None:
        config = self._config
        settings = LifeSettings(
            config.node,
            address,
            float(config.lease_s),
            forget_s=config.forget_s,
            most_kept=config.max_behind,
        )
        self._call = thread_caller()
        token = uuid.uuid4().hex
        self._replica = replica = Replica(
            self._log, self.store, settings, token, self._claimed, self._ended, self._tell
        )
        logger.info("is a standby, %s in the group %s", config.node, config.group)
        replica.start()

    def look(self) -> GroupView:
        """The known state of the group."""
        replica = self._replica
        return _NOTHING_KNOWN if replica is None else replica.look()

    def stop(self) -> None:
        """End the life in the group cleanly; a second call does nothing.  It blocks."""
        if self._is_stopped:
            return
        self._is_stopped = True
        if self._replica is not None:
            self._replica.stop()
        self._log.close()

    # --- In the group's thread -------------------------------------------------------------------

    def _claimed(self, _leader: Leader) -> None:
        self._has_claimed = True
        self._tell()

    def _tell(self) -> None:
        call = self._call
        assert call is not None, "it has begun"
        try:
            call(self._note)
        except RuntimeError:
            logger.debug("the event loop has ended")

    def _note(self) -> None:
        """Note news; called in the event loop."""
        self._news.set()

    def _ended(self, reason: str, needs_rebuild: bool) -> None:
        if self._is_stopped:
            return
        if needs_rebuild:
            reason += "; it needs a new copy: tmqp-server rebuild"
        self._over(reason)


def join(config: ServerConfig, store: Store | None = None) -> GroupMember:
    """Make this server's part in its group; its process ends with the life in the group.

    :param store: must be None: a server of a group has its own store.
    :raises ConfigError: when the configuration does not allow it.
    :raises StoreError: when its directory cannot be used.
    """
    if store is not None:
        raise ConfigError(
            "replication: the group has its own store, so no other store can be given"
        )
    return GroupMember(config, end_process)


def end_process(reason: str) -> None:
    """End this process at once; clients that wait for an answer get none."""
    logger.critical("this server no longer takes part in its group, and ends: %s", reason)
    logging.shutdown()
    os._exit(OVER)
