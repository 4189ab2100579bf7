"""A program of NSQ's users, with pynsq, the Python client of NSQ's makers: started by a test.

It publishes (PUB, MPUB, DPUB), and consumes with FIN, REQ, TOUCH and a timeout; then it prints what
it has seen as JSON.  The first argument is the server's address, the others are options: ``tls``,
``snappy`` or ``deflate``, and ``auth=SECRET``.
"""

from __future__ import annotations

import json
import ssl
import sys
from typing import Any

import nsq  # type: ignore[import-untyped]
import tornado.ioloop

MESSAGES = ("fine", "again", "slow", "forgotten", "deferred")


def main(address: str, *options: str) -> None:
    settings: dict[str, Any] = {}
    for option in options:
        if option == "tls":
            settings["tls_v1"] = True
            settings["tls_options"] = {"cert_reqs": ssl.CERT_NONE}
        elif option.startswith("auth="):
            settings["auth_secret"] = option.removeprefix("auth=")
        else:
            settings[option] = True
    seen: list[tuple[str, int]] = []
    loop = tornado.ioloop.IOLoop.current()

    def finish() -> None:
        print(json.dumps(seen))
        sys.stdout.flush()
        loop.stop()

    def handle(message: Any) -> bool | None:
        body = message.body.decode()
        seen.append((body, message.attempts))
        if body == "again" and message.attempts == 1:
            return False  # REQ
        if body == "slow" and message.attempts == 1:
            message.enable_async()
            message.touch()
            loop.call_later(1.5, message.finish)
            loop.call_later(0.8, message.touch)
        elif body == "forgotten" and message.attempts == 1:
            message.enable_async()  # and never answered
        done = {name for name, _ in seen}
        if done >= {*MESSAGES} and ("again", 2) in seen and ("forgotten", 2) in seen:
            loop.call_later(1, finish)
        return True

    nsq.Reader(
        topic="pynsq",
        channel="c",
        message_handler=handle,
        nsqd_tcp_addresses=[address],
        max_in_flight=10,
        msg_timeout=1,
        requeue_delay=0,
        max_backoff_duration=0.1,
        **settings,
    )
    writer = nsq.Writer([address], **settings)
    writer.auth_secret = settings.get("auth_secret")

    def told(_connection: Any, data: Any) -> None:
        if isinstance(data, nsq.Error):
            print(f"not published: {data!r}", file=sys.stderr)
            loop.stop()

    def publish() -> None:
        if not writer.conns:
            loop.call_later(0.05, publish)
            return
        writer.pub("pynsq", b"fine", told)
        writer.mpub("pynsq", [b"again", b"slow", b"forgotten"], told)
        writer.dpub("pynsq", 300, b"deferred", told)

    loop.call_later(0.1, publish)
    loop.call_later(25, loop.stop)
    loop.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
