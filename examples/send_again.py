"""Send dead letters back to their original queue, with the HTTP API.

Start a server, then run it::

    tmqp-server --door admin
    python examples/send_again.py 127.0.0.1:2680 tmq://127.0.0.1:2622

A queue that is too small gives up two of three orders, which become dead letters.  The program then
uses the API to increase the queue's limit, to show where the letters would go, and to send them
again.  ``TMQP_TOKEN`` is the token of a server that has an access table.
"""

from __future__ import annotations

import json
import os
import sys
from http.client import HTTPConnection
from typing import Any

from tmqp_client.sync import connect


class Api:
    """The HTTP API of one server."""

    def __init__(self, address: str, token: str) -> None:
        self._connection = HTTPConnection(address)
        self._fields = {"Content-Type": "application/json"}
        if token:
            self._fields["Authorization"] = f"Bearer {token}"

    def ask(self, method: str, path: str, value: object = None) -> Any:
        """Send a request, and return the body of the answer."""
        body = None if value is None else json.dumps(value)
        self._connection.request(method, f"/api/v1{path}", body, self._fields)
        answer = self._connection.getresponse()
        data = answer.read()
        found: Any = json.loads(data) if data else None
        if answer.status >= 400:
            raise SystemExit(f"{method} {path}: {answer.status} {found['detail']}")
        return found


def main(admin: str, tmqp: str) -> None:
    """Let two orders become dead letters, and send them again."""
    token = os.environ.get("TMQP_TOKEN", "")
    api = Api(admin, token)
    dead = {"channel": "dead", "queue": 1}
    api.ask("PUT", "/channels/dead/queues/1", {"status": "pull"})
    room = {"message_limit": 1, "when_full": "dead-letter"}
    api.ask("PUT", "/channels/orders/queues/1", {"status": "pull", "dead_letter": dead, **room})
    with connect(tmqp, token=token) as client:
        for number in (1, 2, 3):
            client.push("orders", 1, f"order {number}")
    letters = api.ask("GET", "/channels/dead/queues/1/messages")["items"]
    print(f"dead letters: {', '.join([each['text'] for each in letters])}")
    api.ask("PATCH", "/channels/orders/queues/1", {"message_limit": 100})
    transfers = "/channels/dead/queues/1/transfers"
    trial = api.ask("POST", transfers, {"to": "first", "dry_run": True})
    for target in trial["targets"]:
        print(f"would go to {target['channel']}/{target['queue']}: {target['count']}")
    print(f"moved: {api.ask('POST', transfers, {'to': 'first'})['moved']}")
    queues = api.ask("GET", "/queues?sort=-waiting&fields=waiting")
    for each in queues["items"]:
        print(f"{each['channel']}/{each['queue']}: {each['waiting']} waiting")


if __name__ == "__main__":
    main(*(sys.argv[1:] or ("127.0.0.1:2680", "tmq://127.0.0.1:2622")))
