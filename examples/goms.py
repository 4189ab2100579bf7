"""Topics of goMS, and TMQP clients that publish to them and listen.

Start a server whose configuration has a door for goMS with the topic ``weather``, then run it::

    [[doors]]
    protocol = "goms"
    listen = ["127.0.0.1:55545"]
    options = { topics = ["weather"] }

    python examples/goms.py 127.0.0.1:55545 tmq://127.0.0.1:2622

A topic is a channel whose queue is broadcast to all clients that have registered or joined.
"""

from __future__ import annotations

import json
import socket
import sys

from tmqp_client.sync import connect


class Member:
    """A client of goMS, which writes and reads one JSON object per line."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port))
        self._lines = self._socket.makefile("rb")

    def say(self, **request: object) -> None:
        """Send a request."""
        self._socket.sendall(json.dumps(request).encode() + b"\n")

    def hear(self) -> dict[str, str]:
        """Wait for the next message or error."""
        told: dict[str, str] = json.loads(self._lines.readline())
        return told

    def leave(self) -> None:
        """Unregister, and close the connection."""
        self.say(type="close")
        self._lines.close()
        self._socket.close()


def main(goms: str, tmqp: str) -> None:
    """Publish with each protocol, and receive with the other one."""
    host, _, port = goms.rpartition(":")
    member = Member(host, int(port))
    # The answer about the unknown topic also shows that the earlier request was carried out.
    member.say(type="register", topics=["weather", "gossip"])
    told = member.hear()
    print(f"goMS: {told['type']} {told['error-code']}: {told['error']}")
    with connect(tmqp) as client, client.consume("weather", 0) as reports:
        client.push("weather", 0, "rain")
        print(f"goMS: {member.hear()['data']}")
        member.say(type="send", topics=["weather"], data="sunshine")
        for number, report in enumerate(reports, start=1):
            print(f"TMQP: {report.text}")
            if number == 2:
                break
    member.leave()


if __name__ == "__main__":
    main(*(sys.argv[1:] or ("127.0.0.1:55545", "tmq://127.0.0.1:2622")))
