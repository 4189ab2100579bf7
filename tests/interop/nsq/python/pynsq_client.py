"""A program with pynsq, the Python client of NSQ's makers."""

from __future__ import annotations

import ssl
import threading
from typing import Any

import nsq  # type: ignore[import-untyped]
import tornado.ioloop

from tests.interop.nsq.python.lines import decide, say, settings, told

LONGEST_S = 5.0


class Program:
    """Publishes and consumes as the test says."""

    def __init__(self) -> None:
        given = settings()
        self._given = given
        self._loop = tornado.ioloop.IOLoop.current()
        self._options: dict[str, Any] = {"user_agent": f"pynsq/{nsq.version.__version__}"}
        if given["ca"]:
            self._options["tls_v1"] = True
            self._options["tls_options"] = {
                "cert_reqs": ssl.CERT_REQUIRED,
                "ca_certs": given["ca"],
            }
        if given["compression"]:
            self._options[given["compression"]] = True
        if given["auth"]:
            self._options["auth_secret"] = given["auth"]
        self._writer: Any = None
        self._readers: list[Any] = []

    def take(self, line: dict[str, Any]) -> None:
        """Carry out a command."""
        if line["do"] == "consume":
            self._consume(line)
            return
        if self._writer is None:
            self._writer = nsq.Writer(self._given["nsqd"], reconnect_interval=0.5, **self._options)
            self._writer.auth_secret = self._options.get("auth_secret")
        self._publish(line, self._loop.time() + LONGEST_S)

    def _publish(self, line: dict[str, Any], end: float) -> None:
        """Publish as soon as there is a connection; without one, a writer refuses at once."""
        if not self._writer.conns:
            if self._loop.time() > end:
                say(refused="no connection")
            else:
                self._loop.call_later(0.05, self._publish, line, end)
            return
        bodies = [body.encode() for body in line["bodies"]]
        if line["do"] == "defer":
            self._writer.dpub(line["topic"], line["ms"], bodies[0], self._answered)
        elif len(bodies) == 1:
            self._writer.pub(line["topic"], bodies[0], self._answered)
        else:
            self._writer.mpub(line["topic"], bodies, self._answered)

    def _answered(self, _connection: Any, data: Any) -> None:
        if isinstance(data, nsq.Error):
            say(refused=repr(data))
        else:
            say(did="publish")

    def _consume(self, line: dict[str, Any]) -> None:
        reader = nsq.Reader(
            topic=line["topic"],
            channel=line["channel"],
            message_handler=self._handle,
            nsqd_tcp_addresses=[] if self._given["lookupd"] else self._given["nsqd"],
            lookupd_http_addresses=self._given["lookupd"],
            lookupd_poll_interval=1,
            max_in_flight=10,
            requeue_delay=0,
            max_backoff_duration=0.1,
            **self._options,
        )
        self._readers.append(reader)
        say(did="consume")

    def _handle(self, message: Any) -> bool:
        body = message.body.decode()
        say(message=body, attempts=message.attempts)
        todo = decide(body, message.attempts)
        if todo == "again":
            return False  # the library sends REQ
        if todo != "fine":
            message.enable_async()
        if todo == "slow":
            message.touch()
            self._loop.call_later(0.6, message.touch)
            self._loop.call_later(1.2, message.touch)
            self._loop.call_later(1.6, message.finish)
        return True

    def run(self) -> None:
        """Run until the test closes its end."""

        def listen() -> None:
            for line in told():
                self._loop.add_callback(self.take, line)
            self._loop.add_callback(self._loop.stop)

        threading.Thread(target=listen, daemon=True).start()
        self._loop.start()


Program().run()
