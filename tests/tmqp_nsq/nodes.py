"""An nsqd and an nsqlookupd for tests: their HTTP answers, made from recorded ones, on threads."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from tests.project import ROOT

__all__ = ["GOLDEN", "FakeLookupd", "FakeNode", "FakeNsqd", "serving"]

#: What the reference nsqadmin answered, and the statistics of the nsqd that it asked.
GOLDEN: Final = json.loads((ROOT / "tests/data/nsq/nsqadmin.json").read_text(encoding="utf-8"))


class FakeNode(ThreadingHTTPServer):
    """Answers JSON; ``asked`` has what was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[tuple[str, bytes, dict[str, str]]] = []
        self.broken = False

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def answer(self, method: str, path: str, query: dict[str, str]) -> tuple[int, Any]:
        """Give status and JSON, None for an empty body."""
        return 404, {"message": "NOT_FOUND"}

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that gives up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeNode  # type: ignore[mutable-override]

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.server.asked.append((self.command, self.path))
        self.server.bodies.append((self.path, body, dict(self.headers.items())))
        status, value = self.server.answer(self.command, url.path, query)
        if self.server.broken:
            status, value = 500, {"message": "INTERNAL_ERROR"}
        data = b"" if value is None else value if isinstance(value, bytes) else _json(value)
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - the library's names

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


class FakeNsqd(FakeNode):
    """An nsqd with the recorded statistics, which its pauses and deletions change."""

    def __init__(self, hostname: str = "vm", version: str = "1.3.0") -> None:
        super().__init__()
        self.hostname = hostname
        self.version = version
        self.stats: dict[str, Any] = json.loads(json.dumps(GOLDEN["stats"]))

    @property
    def info(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "broadcast_address": "127.0.0.1",
            "hostname": self.hostname,
            "http_port": self.port,
            "tcp_port": 4150,
            "start_time": 1795261484,
        }

    @property
    def topics(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.stats["topics"]
        return found

    def answer(self, method: str, path: str, query: dict[str, str]) -> tuple[int, Any]:
        if path == "/info":
            return 200, self.info
        if path == "/stats":
            return 200, self._stats(query)
        kind, _, action = path.strip("/").partition("/")
        found = [each for each in self.topics if each["topic_name"] == query.get("topic")]
        if kind == "topic" and action == "create":
            self.topics.append({"topic_name": query["topic"], "channels": []})
            return 200, None
        if not found:
            return 404, {"message": "TOPIC_NOT_FOUND"}
        rows, row = self.topics, found[0]
        if kind == "channel":
            rows = found[0]["channels"]
            name = query["channel"]
            if action == "create":
                rows.append({"channel_name": name})
                return 200, None
            named = [each for each in rows if each["channel_name"] == name]
            if not named:
                return 404, {"message": "CHANNEL_NOT_FOUND"}
            row = named[0]
        if action == "delete":
            rows.remove(row)
        elif action in ("pause", "unpause"):
            row["paused"] = action == "pause"
        elif action == "empty":
            row["depth"] = 0
        return 200, None

    def _stats(self, query: dict[str, str]) -> dict[str, Any]:
        stats: dict[str, Any] = json.loads(json.dumps(self.stats))
        wanted, channel = query.get("topic"), query.get("channel")
        stats["topics"] = [t for t in stats["topics"] if wanted in (None, t["topic_name"])]
        for topic in stats["topics"]:
            topic["channels"] = [
                each for each in topic["channels"] if channel in (None, each["channel_name"])
            ]
            for each in topic["channels"]:
                if query.get("include_clients") == "false":
                    each["clients"] = None
        return stats


class FakeLookupd(FakeNode):
    """An nsqlookupd that knows some nsqds, and what they have."""

    def __init__(self, *nodes: FakeNsqd) -> None:
        super().__init__()
        self.nodes = list(nodes)
        self.tombstones: set[tuple[str, str]] = set()
        self.topics: dict[str, list[str]] = {}
        for node in nodes:
            for topic in node.topics:
                names = self.topics.setdefault(topic["topic_name"], [])
                names += [
                    each["channel_name"]
                    for each in topic["channels"]
                    if each["channel_name"] not in names
                ]

    def _producer(self, node: FakeNsqd) -> dict[str, Any]:
        remote = {"remote_address": "127.0.0.1:58946"}
        return {**remote, **{k: v for k, v in node.info.items() if k != "start_time"}}

    def answer(self, method: str, path: str, query: dict[str, str]) -> tuple[int, Any]:
        topic = query.get("topic", "")
        if path == "/topics":
            return 200, {"topics": list(self.topics)}
        if path == "/channels":
            return 200, {"channels": self.topics.get(topic, [])}
        if path == "/lookup":
            if topic not in self.topics:
                return 404, {"message": "TOPIC_NOT_FOUND"}
            having = [node for node in self.nodes if self._has(node, topic)]
            return 200, {
                "channels": self.topics[topic],
                "producers": list(map(self._producer, having)),
            }
        if path == "/nodes":
            return 200, {"producers": [self._row(node) for node in self.nodes]}
        if path == "/topic/create":
            self.topics.setdefault(topic, [])
        elif path == "/channel/create":
            self.topics.setdefault(topic, []).append(query["channel"])
        elif path == "/topic/delete":
            self.topics.pop(topic, None)
        elif path == "/channel/delete":
            self.topics[topic].remove(query["channel"])
        elif path == "/topic/tombstone":
            self.tombstones.add((topic, query["node"]))
        return 200, None

    def _has(self, node: FakeNsqd, topic: str) -> bool:
        names = [each["topic_name"] for each in node.topics]
        return topic in names and (topic, node.address) not in self.tombstones

    def _row(self, node: FakeNsqd) -> dict[str, Any]:
        names = [each["topic_name"] for each in node.topics]
        gone = [(name, node.address) in self.tombstones for name in names]
        return {**self._producer(node), "tombstones": gone, "topics": names}


@contextmanager
def serving(*nodes: FakeNode) -> Iterator[None]:
    """Serve some nodes for the time of the block."""
    threads = [threading.Thread(target=node.serve_forever, args=(0.01,)) for node in nodes]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for node in nodes:
            node.shutdown()
            node.server_close()
        for thread in threads:
            thread.join()
