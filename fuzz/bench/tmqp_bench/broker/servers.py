"""How each broker is started: its command, its settings, its version.

Each is given a folder of its own, one port of loopback and one core, and as few other duties as it
allows: no log, no statistics, no persistence where none is measured.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tmqp_bench.broker import watching
from tmqp_bench.broker.door_wires import TOPIC
from tmqp_bench.broker.processes import ServerProcess, StartError, free_port, server_core
from tmqp_bench.codec import PLACES, ROOT

__all__ = ["BUILT", "PACKAGES", "found_program", "start", "version_of"]

#: Where newer peers than the distribution's are built, which then are used instead.
BUILT: Final = ROOT / "build" / "peers"

#: Where each peer comes from: the distribution's package, or ``pip:`` and Python's.
PACKAGES: Final = {
    "nats": "nats-server",
    "redis": "redis-server",
    "mosquitto": "mosquitto",
    "rabbitmq": "rabbitmq-server",
    "activemq": "activemq",
    "amqtt": "pip:amqtt",
}
_PROGRAMS: Final = {
    "nats": ("nats-server", "--version"),
    "redis": ("redis-server", "--version"),
    "mosquitto": ("mosquitto", "-h"),
    "rabbitmq": ("rabbitmq-server", ""),
    "activemq": ("activemq", ""),
}
_VERSION: Final = re.compile(r"(?:version |v=|v)(\d+(?:\.\d+)+)")
_ACTIVEMQ: Final = "/usr/share/activemq"
#: A broker that does not dispatch messages while it stores them.
_ACTIVEMQ_XML: Final = """\
<beans xmlns="http://www.springframework.org/schema/beans"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="http://www.springframework.org/schema/beans
      http://www.springframework.org/schema/beans/spring-beans.xsd
      http://activemq.apache.org/schema/core
      http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" useJmx="false" advisorySupport="false">
    <persistenceAdapter>
      <kahaDB directory="{data}" concurrentStoreAndDispatchQueues="false"/>
    </persistenceAdapter>
    <transportConnectors>
      <transportConnector uri="{scheme}://127.0.0.1:{port}"/>
    </transportConnectors>
  </broker>
</beans>
"""
_SLOW_START_S: Final = 120.0
_MAX_PAYLOAD_BYTES: Final = 8_388_608


def version_of(name: str) -> str | None:
    """The version of a peer that is installed, ``?`` if it does not say; None if it is not."""
    if name == "amqtt":
        try:
            return importlib.metadata.version("amqtt")
        except importlib.metadata.PackageNotFoundError:
            return None
    program, option = _PROGRAMS[name]
    path = found_program(program)
    if path is None:
        return None
    if option:
        done = subprocess.run([path, option], capture_output=True, text=True, check=False)
        found = _VERSION.search(done.stdout + done.stderr)
        return found[1] if found else "?"
    return _packaged(PACKAGES[name])


def found_program(program: str) -> str | None:
    """Where a program is, if it is."""
    return shutil.which(program, path=f"{BUILT}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _packaged(package: str) -> str:
    """The version the distribution's package manager knows."""
    if shutil.which("dpkg-query") is None:
        return "?"
    done = subprocess.run(
        ["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True, check=False
    )
    found = re.match(r"(?:\d+:)?(\d+(?:\.\d+)+)", done.stdout)
    return found[1] if found else "?"


def start(name: str, setting: str, folder: Path) -> ServerProcess:
    """Start a broker.

    :param name: ``tmqp`` or a key of :data:`PACKAGES`.
    :param setting: what of it: see the functions below; a build for ``tmqp``.
    :raises StartError: when it does not come up.
    """
    port = free_port()
    return _STARTERS[name](setting, folder, port)


def _run(
    command: list[str],
    folder: Path,
    port: int,
    environment: dict[str, str] | None = None,
    start_s: float = 30.0,
) -> ServerProcess:
    return ServerProcess(command, port, server_core(), folder / "log", environment, start_s)


#: Doors of ours that a setting may name, and their options.
_DOORS: Final = {
    "goms": f'topics = ["{TOPIC}"]',
    "nsq": "",
    "openwire": "",
    "smq": "",
    "stomp": "",
    "throttr": "",
    "zmtp": "",
}


def _tmqp(setting: str, folder: Path, port: int) -> ServerProcess:
    """``compiled`` or ``interpreted``, with ``+durable`` for a data directory, ``+uvloop`` for that
    event loop, ``+watched`` for operators who watch it (``watching.py``), and the name of another
    door, such as ``+nsq``, for that instead of TMQP's, with ``+stored`` if what is acknowledged is
    to be stored all the same."""
    build, *more = setting.split("+")
    place = ROOT / PLACES[build]
    if not (place / "tmqp_server").is_dir():
        raise StartError(f"nothing is in {PLACES[build]}: make compiled")
    doors = [word for word in more if word in _DOORS]
    native_port = free_port() if doors else port
    command = [sys.executable, "-m", "tmqp_server", "-l", f"tmq://127.0.0.1:{native_port}"]
    lines = ["[connection]", "ping_interval_s = 3600"]  # no client of the load answers one
    for name in doors:
        lines += ["[[doors]]", f'protocol = "{name}"', f'listen = ["127.0.0.1:{port}"]']
        options = "done_confirms = false" if "stored" in more else _DOORS[name]
        lines += [f"options = {{ {options} }}"]
    admin_port = free_port() if "watched" in more else 0
    if admin_port:
        lines += ["[admin]", f'listen = "127.0.0.1:{admin_port}"']
    config = folder / "tmqp.toml"
    config.write_text("\n".join(lines) + "\n")
    command += ["--config", str(config)]
    command += ["--log-level", "error", "--max-payload", str(_MAX_PAYLOAD_BYTES)]
    if "durable" in more:
        command += ["--data", str(folder / "data")]
    if "uvloop" in more:
        command += ["--backend", "uvloop"]
    server = _run(command, folder, port, {"PYTHONPATH": str(place)})
    if admin_port:
        _watch(server, admin_port)
    return server


def _watch(server: ServerProcess, admin_port: int) -> None:
    try:
        server.beside = watching.begin(admin_port, min(os.sched_getaffinity(0)))
    except BaseException:
        server.stop()
        raise


def _nats(setting: str, folder: Path, port: int) -> ServerProcess:
    """``core``, ``jetstream``, or ``jetstream-synced`` for files that are synced at every write."""
    lines = [f"port: {port}", "host: 127.0.0.1", 'ping_interval: "1h"', "max_pending: 512MB"]
    lines += [f"max_payload: {_MAX_PAYLOAD_BYTES}"]
    if setting.startswith("jetstream"):
        synced = ", sync_interval: always" if setting.endswith("-synced") else ""
        lines += [f'jetstream {{ store_dir: "{folder}", max_mem: 2G, max_file: 8G{synced} }}']
    config = folder / "nats.conf"
    config.write_text("\n".join(lines) + "\n")
    program = found_program("nats-server") or "nats-server"
    return _run([program, "-c", str(config)], folder, port, {"GOMAXPROCS": "1"})


def _redis(setting: str, folder: Path, port: int) -> ServerProcess:
    """``memory``, or ``always`` for an append-only file that is synced at every write."""
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    command += ["--dir", str(folder), "--client-output-buffer-limit", "pubsub", "0", "0", "0"]
    command += ["--appendonly", "yes" if setting == "always" else "no", "--appendfsync", "always"]
    return _run(command, folder, port)


def _mosquitto(setting: str, folder: Path, port: int) -> ServerProcess:
    """One setting: queues and windows without bounds."""
    config = folder / "mosquitto.conf"
    config.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_inflight_messages 0\n"
        "max_queued_messages 0\npersistence false\nset_tcp_nodelay true\nlog_type error\n"
    )
    return _run(["/usr/sbin/mosquitto", "-c", str(config)], folder, port)


def _rabbitmq(setting: str, folder: Path, port: int) -> ServerProcess:
    """One setting; one scheduler, for it has one core."""
    (folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n")
    (folder / "enabled_plugins").write_text("[].\n")
    script = "/usr/lib/rabbitmq/bin/rabbitmq-server"
    environment = {
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"bench{port}@localhost",
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none",
    }
    return _run([script], folder, port, environment, _SLOW_START_S)


def _activemq(setting: str, folder: Path, port: int) -> ServerProcess:
    """``memory`` or ``kahadb``; it speaks STOMP, or with ``+openwire`` that.  With ``+stored`` it
    stores what is acknowledged at once, too."""
    store, *more = setting.split("+")
    persistent = "true" if store == "kahadb" else "false"
    scheme = "tcp" if "openwire" in more else "stomp"
    folders = ("lib", "lib/optional") if "stored" in more else ("lib",)
    found = [each for name in folders for each in sorted(Path(_ACTIVEMQ, name).glob("*.jar"))]
    jars = ":".join([str(path) for path in found])
    command = ["java", "-Xmx1g", "-XX:ActiveProcessorCount=1"]
    command += [f"-Dactivemq.home={_ACTIVEMQ}", f"-Dactivemq.base={folder}"]
    command += [f"-Dactivemq.data={folder}/data", "-cp", f"{_ACTIVEMQ}/bin/activemq.jar:{jars}"]
    command += ["org.apache.activemq.console.Main", "start"]
    if "stored" in more:
        config = folder / "activemq.xml"
        config.write_text(_ACTIVEMQ_XML.format(scheme=scheme, port=port, data=folder / "data"))
        return _run([*command, f"xbean:file:{config}"], folder, port, None, _SLOW_START_S)
    settings = f"persistent={persistent}&useJmx=false&advisorySupport=false"
    address = f"broker:({scheme}://127.0.0.1:{port})?{settings}&dataDirectory={folder}/data"
    return _run([*command, address], folder, port, None, _SLOW_START_S)


def _amqtt(setting: str, folder: Path, port: int) -> ServerProcess:
    """One setting."""
    config = folder / "amqtt.yaml"
    config.write_text(
        f"listeners:\n  default:\n    type: tcp\n    bind: 127.0.0.1:{port}\n"
        "auth:\n  allow-anonymous: true\n  plugins: [auth_anonymous]\n"
        "topic-check:\n  enabled: false\n"
    )
    program = Path(sys.executable).with_name("amqtt")
    return _run([str(program), "-c", str(config)], folder, port)


_STARTERS: Final = {
    "tmqp": _tmqp,
    "nats": _nats,
    "redis": _redis,
    "mosquitto": _mosquitto,
    "rabbitmq": _rabbitmq,
    "activemq": _activemq,
    "amqtt": _amqtt,
}
