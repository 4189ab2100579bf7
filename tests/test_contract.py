"""The proof that every import contract holds, and that each can be broken.

The contracts (``.importlinter``) meet an invented tree in which every module that they name exists,
those to come included.  As it stands the tree keeps them all; then one forbidden import is added
for each line of the table below, and each must be reported under the contract it breaks.
"""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.project import ROOT, source_packages

#: The invented tree: each module with the imports it may have.
TREE: Final[dict[str, tuple[str, ...]]] = {
    "tmqp": (),
    "tmqp._compat": (),
    "tmqp._lazy": (),
    "tmqp.address": ("tmqp.errors",),
    "tmqp.backoff": (),
    "tmqp.bits": (),
    "tmqp.block_columns": ("tmqp.blocks",),
    "tmqp.block_writing": ("tmqp.blocks",),
    "tmqp.references": ("tmqp.blocks",),
    "tmqp.blocks": ("tmqp.errors",),
    "tmqp.codec": ("tmqp.frames", "tmqp.header_names"),
    "tmqp.connection": ("tmqp.codec", "tmqp.farewells", "tmqp.state", "tmqp.greetings"),
    "tmqp.constants": ("enum",),
    "tmqp.errors": ("tmqp.constants",),
    "tmqp.events": ("tmqp.hello", "tmqp.runs"),
    "tmqp.extensions": ("enum",),
    "tmqp.farewells": ("tmqp.frames",),
    "tmqp.frames": ("tmqp.limits", "tmqp._compat"),
    "tmqp.greetings": (),
    "tmqp.header_names": ("tmqp._compat",),
    "tmqp.headers": (),
    "tmqp.hello": ("tmqp.errors",),
    "tmqp.limits": ("tmqp.errors",),
    "tmqp.models": ("json",),
    "tmqp.models.options": (),
    "tmqp.names": (),
    "tmqp.state": ("tmqp.constants",),
    "tmqp.pulls": ("tmqp.events",),
    "tmqp.runs": ("tmqp.frames",),
    "tmqp.testing": ("tmqp.connection", "hypothesis"),
    "tmqp_bench": ("tmqp",),
    "tmqp_client": (),
    "tmqp_client._core": (),
    "tmqp_client._core.machine": ("tmqp.connection",),
    "tmqp_client.cli": ("tmqp_client.client",),
    "tmqp_client.client": ("tmqp_client._core.machine", "anyio"),
    "tmqp_conformance": ("tmqp", "tmqp.testing", "anyio"),
    "tmqp_conformance.peer": ("tmqp.address", "tmqp.constants", "tmqp.models"),
    "tmqp_nsq": (),
    "tmqp_nsq.web": ("tmqp_server", "tmqp_wires.nsq.codec", "anyio"),
    "tmqp_server": (),
    "tmqp_server.__main__": ("tmqp_server.wiring.app", "tmqp_server.commands"),
    "tmqp_server.access": (),
    "tmqp_server.access.auditing": ("tmqp_server.engine.commands",),
    "tmqp_server.access.auth": ("tmqp_server.access.roles", "tmqp_server.settings"),
    "tmqp_server.access.certificates": ("tmqp_server.access.patterns",),
    "tmqp_server.access.channel_hooks": (
        "tmqp_server.access.auth",
        "tmqp_server.engine.options",
    ),
    "tmqp_server.access.custom": ("tmqp_server.access.auth",),
    "tmqp_server.access.gate": ("tmqp_server.engine.commands", "tmqp_server.access.needs"),
    "tmqp_server.access.needs": ("tmqp_server.engine.commands", "tmqp_server.access.rights"),
    "tmqp_server.access.nsq_auth": ("tmqp_server.access.auth",),
    "tmqp_server.access.patterns": (),
    "tmqp_server.access.rights": (),
    "tmqp_server.access.roles": ("tmqp_server.access.rights", "tmqp_server.access.tokens"),
    "tmqp_server.access.tokens": ("secrets",),
    "tmqp_server.admin": ("tmqp_server.hub.hub", "tmqp_server.doors.http"),
    "tmqp_server.cluster": (),
    "tmqp_server.cluster.link": ("tmqp.connection", "tmqp_server.doors.native.door"),
    "tmqp_server.commands": ("tmqp_server.storage.sqlite",),
    "tmqp_server.config": (
        "os",
        "tmqp_server.access.roles",
        "tmqp_server.engine.limits",
        "tmqp_server.settings",
    ),
    "tmqp_server.doors": (),
    "tmqp_server.doors.native": (),
    "tmqp_server.doors.native.codec": ("tmqp.frames",),
    "tmqp_server.doors.native.door": (
        "tmqp_server.doors.native.codec",
        "tmqp_server.doors.port",
        "tmqp_server.engine.commands",
        "tmqp_server.engine.effects",
        "tmqp_server.engine.limits",
        "tmqp_server.engine.model.message",
    ),
    "tmqp_server.doors.other": (),
    "tmqp_server.doors.other.codec": (),
    "tmqp_server.doors.other.door": ("tmqp_server.engine.effects",),
    "tmqp_server.doors.port": ("tmqp_server.engine.commands",),
    "tmqp_server.doors.registry": (
        "tmqp_server.doors.native.door",
        "tmqp_server.doors.other.door",
    ),
    "tmqp_server.engine": (),
    "tmqp_server.engine.books": ("tmqp_server.engine.options",),
    "tmqp_server.engine.broker": ("tmqp_server.engine.keeping", "tmqp_server.engine.operations"),
    "tmqp_server.engine.commands": ("tmqp_server.engine.commands.messages",),
    "tmqp_server.engine.commands.messages": (
        "tmqp_server.engine.model.message",
        "tmqp_server.engine.options",
    ),
    "tmqp_server.engine.core": ("tmqp_server.engine.effects",),
    "tmqp_server.engine.delivery": ("tmqp_server.engine.directory",),
    "tmqp_server.engine.directory": ("tmqp_server.engine.core",),
    "tmqp_server.engine.effects": ("tmqp_server.engine.commands",),
    "tmqp_server.engine.events": ("tmqp_server.engine.records",),
    "tmqp_server.engine.keeping": ("tmqp_server.engine.routing",),
    "tmqp_server.engine.limits": (),
    "tmqp_server.engine.model": (),
    "tmqp_server.engine.model.message": (),
    "tmqp_server.engine.model.queues": ("tmqp_server.engine.books",),
    "tmqp_server.engine.operations": ("tmqp_server.engine.reading",),
    "tmqp_server.engine.flights": (),
    "tmqp_server.engine.options": ("tmqp_server.engine.limits",),
    "tmqp_server.engine.options.table": (),
    "tmqp_server.engine.reading": ("tmqp_server.engine.core",),
    "tmqp_server.engine.records": (),
    "tmqp_server.engine.routing": ("tmqp_server.engine.delivery",),
    "tmqp_server.engine.transactions": ("tmqp_server.engine.delivery",),
    "tmqp_server.hub": (),
    "tmqp_server.hub.hub": (
        "tmqp_server.hub.outlets",
        "tmqp_server.hub.relaying",
        "tmqp_server.engine.broker",
        "tmqp_server.doors.port",
        "tmqp_server.access.gate",
    ),
    "tmqp_server.hub.audited": ("tmqp_server.hub.looks", "tmqp_server.access.auditing"),
    "tmqp_server.hub.traced": ("tmqp_server.hub.audited", "tmqp_server.hub.tracing"),
    "tmqp_server.hub.tracing": ("tmqp_server.engine.effects",),
    "tmqp_server.hub.draining": ("tmqp_server.engine.effects",),
    "tmqp_server.hub.looks": ("tmqp_server.hub.outlets",),
    "tmqp_server.hub.outlets": ("tmqp_server.hub.coalescing", "tmqp_server.doors.port"),
    "tmqp_server.hub.questions": ("tmqp_server.engine.effects",),
    "tmqp_server.hub.recovery": ("tmqp_server.hub.hub", "tmqp_server.storage.port"),
    "tmqp_server.hub.relaying": ("tmqp_server.doors.port",),
    "tmqp_server.hub.restricted": ("tmqp_server.hub.traced", "tmqp_server.hub.standby"),
    "tmqp_server.hub.standby": ("tmqp_server.engine.effects",),
    "tmqp_server.hub.rows": ("tmqp_server.engine.broker",),
    "tmqp_server.hub.coalescing": ("tmqp_server.engine.effects", "tmqp_server.doors.port"),
    "tmqp_server.io": ("tmqp_server.shell", "socket", "tmqp_server.storage.port"),
    "tmqp_server.replication": (),
    "tmqp_server.replication.appending": ("tmqp_server.storage.log",),
    "tmqp_server.replication.effects": ("tmqp_server.storage.log",),
    "tmqp_server.replication.life": (
        "tmqp_server.replication.appending",
        "tmqp_server.replication.effects",
        "tmqp_server.replication.members",
    ),
    "tmqp_server.replication.members": ("tmqp_server.storage.log",),
    "tmqp_server.replication.rebuilding": ("tmqp_server.storage.log",),
    "tmqp_server.replication.view": ("tmqp_server.replication.life",),
    "tmqp_server.settings": ("tmqp_server.engine.options",),
    "tmqp_server.shell": (),
    "tmqp_server.shell.admitting": ("tmqp.backoff",),
    "tmqp_server.shell.asking": ("tmqp_server.shell.world", "tmqp_server.access.gate"),
    "tmqp_server.shell.calls": ("tmqp_server.shell.lines", "tmqp_server.shell.world"),
    "tmqp_server.shell.connections": ("tmqp_server.shell.outbound", "tmqp_server.hub.hub"),
    "tmqp_server.shell.datagrams": ("tmqp_server.shell.connections", "tmqp_server.shell.admitting"),
    "tmqp_server.shell.draining": ("tmqp_server.shell.world",),
    "tmqp_server.shell.judged": ("tmqp_server.shell.asking", "tmqp_server.shell.log_ins"),
    "tmqp_server.shell.lines": (),
    "tmqp_server.shell.links": ("tmqp_server.shell.world", "tmqp_server.cluster.link"),
    "tmqp_server.shell.log_ins": ("tmqp_server.shell.rates",),
    "tmqp_server.shell.outbound": ("tmqp_server.shell.world",),
    "tmqp_server.shell.partings": ("tmqp_server.shell.outbound",),
    "tmqp_server.shell.peers": ("tmqp_server.shell.outbound", "tmqp_server.shell.tallies"),
    "tmqp_server.shell.pulse": (),
    "tmqp_server.shell.rates": (),
    "tmqp_server.shell.refusals": (),
    "tmqp_server.shell.saving": ("tmqp_server.shell.world", "tmqp_server.storage.journal"),
    "tmqp_server.shell.slow_consumers": ("tmqp_server.shell.outbound",),
    "tmqp_server.shell.steps": (),
    "tmqp_server.shell.tallies": (),
    "tmqp_server.shell.timers": (),
    "tmqp_server.shell.turn": ("tmqp_server.shell.connections", "tmqp_server.shell.saving"),
    "tmqp_server.shell.world": ("tmqp_server.hub.questions",),
    "tmqp_server.storage": (),
    "tmqp_server.storage.changes": ("tmqp_server.storage.port",),
    "tmqp_server.storage.log": ("tmqp_server.storage.port",),
    "tmqp_server.storage.logged": (
        "tmqp_server.storage.changes",
        "tmqp_server.storage.gathered",
        "tmqp_server.storage.log",
        "tmqp_server.storage.writes",
    ),
    "tmqp_server.storage.replicated": ("tmqp_server.storage.logged",),
    "tmqp_server.storage.memory": ("tmqp_server.storage.port", "tmqp_server.storage.records"),
    "tmqp_server.storage.port": ("tmqp_server.storage.stored_runs",),
    "tmqp_server.storage.gathered": ("tmqp_server.storage.port",),
    "tmqp_server.storage.stored_runs": (),
    "tmqp_server.storage.records": ("tmqp_server.storage.port",),
    "tmqp_server.storage.sqlite": ("tmqp_server.storage.sqlite.front",),
    "tmqp_server.storage.sqlite.front": (
        "tmqp_server.storage.pending",
        "tmqp_server.storage.writes",
        "tmqp_server.storage.sqlite.store",
    ),
    "tmqp_server.storage.pending": ("tmqp_server.storage.port", "tmqp_server.storage.stored_runs"),
    "tmqp_server.storage.sqlite.store": ("tmqp_server.storage.records", "os", "sqlite3"),
    "tmqp_server.storage.writes": ("tmqp_server.storage.records",),
    "tmqp_server.wiring": (),
    "tmqp_server.wiring.app": (
        "tmqp_server.admin",
        "tmqp_server.io",
        "tmqp_server.storage.memory",
        "tmqp_server.wiring.assembly",
        "tmqp_server.wiring.clustering",
        "tmqp_server.wiring.doors",
        "tmqp_server.wiring.lookups",
        "tmqp_server.wiring.reloading",
        "tmqp_server.wiring.watched",
    ),
    "tmqp_server.wiring.assembly": (
        "tmqp_server.access.channel_hooks",
        "tmqp_server.engine.broker",
        "tmqp_server.wiring.doors",
    ),
    "tmqp_server.wiring.auditing": ("tmqp_server.io",),
    "tmqp_server.wiring.certificates": ("tmqp_server.wiring.auditing", "tmqp_server.io"),
    "tmqp_server.wiring.clustering": ("tmqp_server.cluster.link", "tmqp_server.io"),
    "tmqp_server.wiring.datagrams": ("tmqp_server.wiring.doors", "tmqp_server.io"),
    "tmqp_server.wiring.backing_up": ("tmqp_server.io",),
    "tmqp_server.wiring.copying": ("tmqp_server.wiring.backing_up",),
    "tmqp_server.wiring.log_lines": (),
    "tmqp_server.wiring.logs": ("tmqp_server.settings",),
    "tmqp_server.wiring.operating": (
        "tmqp_server.wiring.backing_up",
        "tmqp_server.wiring.certificates",
        "tmqp_server.wiring.copying",
        "tmqp_server.wiring.log_lines",
    ),
    "tmqp_server.wiring.lookups": ("tmqp_server.io",),
    "tmqp_server.wiring.parts": ("tmqp_server.io", "tmqp_server.storage.sqlite"),
    "tmqp_server.wiring.rebuilding": (
        "tmqp_server.replication.rebuilding",
        "tmqp_server.storage.sqlite",
    ),
    "tmqp_server.wiring.reloading": ("tmqp_server.wiring.logs", "tmqp_server.io"),
    "tmqp_server.wiring.replicating": ("tmqp_server.wiring.assembly", "tmqp_server.io"),
    "tmqp_server.wiring.running": ("tmqp_server.wiring.app",),
    "tmqp_server.wiring.serving": ("tmqp_server.wiring.running",),
    "tmqp_server.wiring.watched": ("tmqp_server.admin", "tmqp_server.io"),
    "tmqp_server.wiring.doors": ("tmqp_server.config", "tmqp_server.doors.registry"),
    "tmqp_sim": (),
    "tmqp_sim.runner": ("tmqp_sim.simulation", "multiprocessing"),
    "tmqp_sim.simulation": ("tmqp_server.engine.broker", "tmqp_client._core.machine"),
    "tmqp_spark": ("tmqp_client",),
    "tmqp_wires": (),
    "tmqp_wires._compat": (),
    "tmqp_wires.common": (),
    "tmqp_wires.common.cursor": (),
    "tmqp_wires.nsq": ("tmqp_wires.nsq.codec",),
    "tmqp_wires.nsq.codec": ("tmqp_wires._compat", "tmqp_wires.common.cursor"),
    "tmqp_wires.stomp": (),
    "tmqp_wires.stomp.codec": (),
}

PACKAGES: Final = "Packages stand on the protocol and not on each other"
PROGRAMS: Final = "Programs use the public face of the server, and codecs"
WIRES: Final = "A wire format knows no other"
SPARK: Final = "Spark is a client and nothing else"
PURE: Final = "The pure set does no I/O, reads no clock and draws no random numbers"
PROTOCOL: Final = "Layers of the protocol"
SERVER: Final = "Layers of the server"
ACCESS: Final = "Layers of access"
HUB: Final = "Layers of the hub"
SHELL: Final = "Layers of the shell"
REPLICATION: Final = "Layers of replication"
WIRING: Final = "Layers of the wiring"
ROOMS: Final = "Rooms of the engine"
DOORS: Final = "A door knows no other door"
ENGINE: Final = "A door knows of the engine only commands, effects and limits"
CODECS: Final = "The codec of a door knows nothing of the broker"
STORAGE: Final = "A storage adapter knows no other adapter"
STORAGE_USERS: Final = "Only the application chooses a storage adapter"
SIMULATOR: Final = "The simulator never touches real I/O"
CONFORMANCE: Final = "The conformance tool uses the public face of the protocol, and its test kit"
CYCLES: Final = "No import cycles"

#: What hands out time, chance or bytes: nothing of the pure set may import it.
# fmt: off
AMBIENT: Final = [
    "anyio", "asyncio", "datetime", "io", "logging", "multiprocessing", "os", "pathlib", "random",
    "secrets", "select", "socket", "sqlite3", "ssl", "subprocess", "threading", "time", "trio",
    "uuid",
]
# fmt: on

#: What each contract forbids: the contract, who imports, what.
FORBIDDEN: Final[list[tuple[str, str, str]]] = [
    (PACKAGES, "tmqp.codec", "tmqp_server.config"),
    (PACKAGES, "tmqp.codec", "tmqp_client.client"),
    (PACKAGES, "tmqp_server.wiring.app", "tmqp_client.client"),
    (PACKAGES, "tmqp_client.client", "tmqp_server.config"),
    (PACKAGES, "tmqp_conformance.peer", "tmqp_client.client"),
    (PACKAGES, "tmqp_client.client", "tmqp_spark"),
    (PACKAGES, "tmqp_wires.nsq.codec", "tmqp.codec"),
    (PACKAGES, "tmqp_wires.nsq.codec", "tmqp_server.config"),
    (PACKAGES, "tmqp.codec", "tmqp_wires.nsq.codec"),
    (WIRES, "tmqp_wires.nsq.codec", "tmqp_wires.stomp.codec"),
    (WIRES, "tmqp_wires.common.cursor", "tmqp_wires.nsq.codec"),
    (PACKAGES, "tmqp_server.config", "tmqp_nsq.web"),
    (PROGRAMS, "tmqp_nsq.web", "tmqp_server.config"),
    (PROGRAMS, "tmqp_nsq.web", "tmqp_client.client"),
    (SPARK, "tmqp_spark", "tmqp_server.config"),
    *[(PURE, "tmqp.codec", name) for name in AMBIENT],
    (PURE, "tmqp.models.options", "time"),
    (PURE, "tmqp.testing", "random"),
    (PURE, "tmqp_server.engine.model.queues", "time"),
    (PURE, "tmqp_server.doors.native.door", "uuid"),
    (PURE, "tmqp_server.doors.port", "asyncio"),
    (PURE, "tmqp_server.hub.hub", "time"),
    (PURE, "tmqp_server.access.gate", "time"),
    (PURE, "tmqp_server.admin", "time"),
    (PURE, "tmqp_server.access.rights", "os"),
    (PURE, "tmqp_server.access.needs", "time"),
    (PURE, "tmqp_server.cluster.link", "random"),
    (PURE, "tmqp_server.hub.outlets", "time"),
    (PURE, "tmqp_server.hub.rows", "time"),
    (PURE, "tmqp_server.hub.coalescing", "time"),
    (PURE, "tmqp_server.shell", "time"),
    (PURE, "tmqp_server.storage.port", "os"),
    (PURE, "tmqp_server.storage.records", "io"),
    (PURE, "tmqp_client._core.machine", "random"),
    (PURE, "tmqp_wires.nsq.codec", "time"),
    (PROTOCOL, "tmqp.connection", "tmqp.testing"),
    (PROTOCOL, "tmqp.state", "tmqp.connection"),
    (PROTOCOL, "tmqp.state", "tmqp.codec"),
    (PROTOCOL, "tmqp.events", "tmqp.codec"),
    (PROTOCOL, "tmqp.models.options", "tmqp.events"),
    (PROTOCOL, "tmqp.models.options", "tmqp.hello"),
    (PROTOCOL, "tmqp.headers", "tmqp.models"),
    (PROTOCOL, "tmqp.frames", "tmqp.blocks"),
    (PROTOCOL, "tmqp.frames", "tmqp.hello"),
    (PROTOCOL, "tmqp.limits", "tmqp.frames"),
    (PROTOCOL, "tmqp.errors", "tmqp.limits"),
    (PROTOCOL, "tmqp.constants", "tmqp.errors"),
    (PROTOCOL, "tmqp._compat", "tmqp.constants"),
    (SERVER, "tmqp_server.wiring.app", "tmqp_server.__main__"),
    (SERVER, "tmqp_server.wiring.app", "tmqp_server.commands"),
    (SERVER, "tmqp_server.io", "tmqp_server.wiring.app"),
    (SERVER, "tmqp_server.io", "tmqp_server.admin"),
    (SERVER, "tmqp_server.hub.hub", "tmqp_server.io"),
    (SERVER, "tmqp_server.cluster.link", "tmqp_server.hub.hub"),
    (SERVER, "tmqp_server.doors.native.door", "tmqp_server.cluster.link"),
    (HUB, "tmqp_server.hub.outlets", "tmqp_server.hub.hub"),
    (HUB, "tmqp_server.hub.relaying", "tmqp_server.hub.outlets"),
    (HUB, "tmqp_server.hub.coalescing", "tmqp_server.hub.outlets"),
    (SERVER, "tmqp_server.hub.recovery", "tmqp_server.io"),
    (SERVER, "tmqp_server.hub.hub", "tmqp_server.shell.world"),
    (SERVER, "tmqp_server.shell.turn", "tmqp_server.io"),
    (SHELL, "tmqp_server.shell.outbound", "tmqp_server.shell.connections"),
    (SHELL, "tmqp_server.shell.world", "tmqp_server.shell.lines"),
    (SHELL, "tmqp_server.shell.links", "tmqp_server.shell.connections"),
    (SERVER, "tmqp_server.replication.life", "tmqp_server.hub.hub"),
    (SERVER, "tmqp_server.replication.life", "tmqp_server.access.gate"),
    (REPLICATION, "tmqp_server.replication.appending", "tmqp_server.replication.life"),
    (STORAGE_USERS, "tmqp_server.replication.life", "tmqp_server.storage.sqlite.front"),
    (PURE, "tmqp_server.replication.life", "time"),
    (PURE, "tmqp_server.replication.life", "random"),
    (PURE, "tmqp_server.storage.logged", "os"),
    (PURE, "tmqp_server.shell.turn", "anyio"),
    (PURE, "tmqp_server.shell.saving", "logging"),
    (PURE, "tmqp_server.hub.questions", "time"),
    (SERVER, "tmqp_server.doors.native.door", "tmqp_server.hub.hub"),
    (SERVER, "tmqp_server.doors.native.door", "tmqp_server.storage.port"),
    (SERVER, "tmqp_server.access.auth", "tmqp_server.admin"),
    (SERVER, "tmqp_server.access.gate", "tmqp_server.hub.hub"),
    (ACCESS, "tmqp_server.access.needs", "tmqp_server.access.gate"),
    (ACCESS, "tmqp_server.access.custom", "tmqp_server.access.gate"),
    (ACCESS, "tmqp_server.access.auth", "tmqp_server.access.custom"),
    (ACCESS, "tmqp_server.access.auth", "tmqp_server.access.channel_hooks"),
    (SERVER, "tmqp_server.access.roles", "tmqp_server.config"),
    (ACCESS, "tmqp_server.access.rights", "tmqp_server.access.roles"),
    (SERVER, "tmqp_server.engine.broker", "tmqp_server.doors.port"),
    (SERVER, "tmqp_server.engine.broker", "tmqp_server.config"),
    (SERVER, "tmqp_server.settings", "tmqp_server.config"),
    (WIRING, "tmqp_server.wiring.assembly", "tmqp_server.wiring.app"),
    (SERVER, "tmqp_server.access.auth", "tmqp_server.config"),
    (SERVER, "tmqp_server.hub.hub", "tmqp_server.shell"),
    (SERVER, "tmqp_server.shell", "tmqp_server.io"),
    (SERVER, "tmqp_server.io", "tmqp_server.wiring.assembly"),
    (ROOMS, "tmqp_server.engine.model.message", "tmqp_server.engine.commands"),
    (ROOMS, "tmqp_server.engine.commands.messages", "tmqp_server.engine.effects"),
    (ROOMS, "tmqp_server.engine.model.queues", "tmqp_server.engine.core"),
    (ROOMS, "tmqp_server.engine.delivery", "tmqp_server.engine.operations"),
    (ROOMS, "tmqp_server.engine.routing", "tmqp_server.engine.transactions"),
    (ROOMS, "tmqp_server.engine.operations", "tmqp_server.engine.broker"),
    (DOORS, "tmqp_server.doors.native.door", "tmqp_server.doors.other.codec"),
    (DOORS, "tmqp_server.doors.other", "tmqp_server.doors.native"),
    (DOORS, "tmqp_server.doors.native.door", "tmqp_server.doors.registry"),
    (ENGINE, "tmqp_server.doors.native.door", "tmqp_server.engine.broker"),
    (ENGINE, "tmqp_server.doors.other.door", "tmqp_server.engine"),
    (ENGINE, "tmqp_server.doors.port", "tmqp_server.engine.model.queues"),
    (CODECS, "tmqp_server.doors.native.codec", "tmqp_server.engine.commands"),
    (CODECS, "tmqp_server.doors.native.codec", "tmqp_server.doors.native.door"),
    (CODECS, "tmqp_server.doors.other.codec", "tmqp_server.doors.port"),
    (STORAGE, "tmqp_server.storage.sqlite.store", "tmqp_server.storage.memory"),
    (STORAGE, "tmqp_server.storage.memory", "tmqp_server.storage.sqlite"),
    (STORAGE_USERS, "tmqp_server.io", "tmqp_server.storage.memory"),
    (STORAGE_USERS, "tmqp_server.admin", "tmqp_server.storage.sqlite"),
    (SIMULATOR, "tmqp_sim.simulation", "socket"),
    (SIMULATOR, "tmqp_sim.simulation", "multiprocessing"),
    (SIMULATOR, "tmqp_sim.runner", "tmqp_server.io"),
    (CONFORMANCE, "tmqp_conformance", "tmqp.codec"),
    (CONFORMANCE, "tmqp_conformance.peer", "tmqp.models.options"),
]
#: Two siblings of one layer that need each other.
CYCLE: Final = [
    ("tmqp_server.engine.model.message", "tmqp_server.engine.model.queues"),
    ("tmqp_server.engine.model.queues", "tmqp_server.engine.model.message"),
]


def write_tree(root: Path, extra: list[tuple[str, str]]) -> None:
    """Write the invented packages, with further imports, and the contracts about them."""
    for name, imports in TREE.items():
        lines = [*imports, *(imported for importer, imported in extra if importer == name)]
        is_package = any(other.startswith(f"{name}.") for other in TREE) or "." not in name
        stem = root.joinpath(*name.split("."))
        path = stem / "__init__.py" if is_package else stem.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"import {line}\n" for line in lines), encoding="utf-8")
    contracts = read_contracts()
    names = sorted({name.partition(".")[0] for name in TREE})
    contracts["importlinter"]["root_packages"] = "\n" + "\n".join(names)
    with (root / ".importlinter").open("w", encoding="utf-8") as file:
        contracts.write(file)


def read_contracts() -> configparser.ConfigParser:
    """The project's contracts as they are written."""
    contracts = configparser.ConfigParser(interpolation=None)
    contracts.read(ROOT / ".importlinter", encoding="utf-8")
    return contracts


def lint_imports(root: Path) -> str:
    """What import-linter says about the packages under ``root``."""
    program = "import sys; from importlinter.cli import lint_imports_command as run; run()"
    # The tree's own sources first: another checkout may be the one that is installed.
    places = [root, root / "src", root / "fuzz", ROOT]
    answer = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode in (0, 1), answer.stderr
    return re.sub(r"\x1b\[[0-9;]*m", "", answer.stdout)


def broken_contracts(said: str) -> dict[str, str]:
    """The reasons that import-linter gives, by the name of the broken contract."""
    _, _, reasons = said.partition("Broken contracts\n")
    parts = re.split(r"^(.+)\n-{3,}\n", reasons, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.fixture(scope="module")
def reasons(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said about a tree with every forbidden import at once."""
    root = tmp_path_factory.mktemp("broken")
    write_tree(root, [(importer, imported) for _, importer, imported in FORBIDDEN])
    return broken_contracts(lint_imports(root))


def test_a_tree_that_keeps_to_the_rules(tmp_path: Path) -> None:
    write_tree(tmp_path, [])
    said = lint_imports(tmp_path)
    assert " 0 broken." in said, said
    names = [section["name"] for section in read_contracts().values() if "name" in section]
    assert sorted(names) == sorted({contract for contract, _, _ in FORBIDDEN} | {CYCLES})
    for name in names:
        assert re.search(rf"^{re.escape(name)} KEPT", said, re.MULTILINE), name


@pytest.mark.parametrize(("contract", "importer", "imported"), FORBIDDEN)
def test_a_forbidden_import_is_found(
    reasons: dict[str, str], contract: str, importer: str, imported: str
) -> None:
    said = reasons[contract]
    assert re.search(rf"\b{re.escape(importer)} -> {re.escape(imported)}\b", said), said


def test_a_cycle_is_found(tmp_path: Path) -> None:
    write_tree(tmp_path, CYCLE)
    said = broken_contracts(lint_imports(tmp_path))
    assert list(said) == [CYCLES]
    assert "No cycles are allowed in tmqp_server.engine.model." in said[CYCLES]


def test_a_module_of_no_layer_is_found(tmp_path: Path) -> None:
    write_tree(tmp_path, [])
    for name in ("tmqp/helpers.py", "tmqp_server/helpers.py"):
        (tmp_path / name).touch()
    said = broken_contracts(lint_imports(tmp_path))
    assert "- tmqp.helpers" in said[PROTOCOL]
    assert "- tmqp_server.helpers" in said[SERVER]


def test_the_contracts_know_every_package() -> None:
    contracts = read_contracts()
    roots = contracts["importlinter"]["root_packages"].split()
    assert sorted(roots) == source_packages()
    assert contracts["importlinter:contract:acyclic"]["ancestors"].split() == roots


def test_the_project_keeps_its_contracts() -> None:
    said = lint_imports(ROOT)
    assert " 0 broken." in said, said
