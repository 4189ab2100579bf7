"""A STOMP client that processes a queue and gets answers.

Start a server, then run it (it needs stomp.py)::

    tmqp-server --door stomp
    python examples/stomp_client.py 127.0.0.1 61613

It works with any broker that supports STOMP 1.2.
"""

from __future__ import annotations

import queue
import sys

import stomp


class Inbox(stomp.ConnectionListener):
    """Keeps arriving frames."""

    def __init__(self) -> None:
        self.frames: queue.Queue[stomp.utils.Frame] = queue.Queue()
        self.receipts: queue.Queue[str] = queue.Queue()

    def on_message(self, frame: stomp.utils.Frame) -> None:
        """Keep a message."""
        self.frames.put(frame)

    def on_receipt(self, frame: stomp.utils.Frame) -> None:
        """Keep the id of a request that the server has completed."""
        self.receipts.put(frame.headers["receipt-id"])


def main(host: str, port: int) -> None:
    """Send two jobs, process them in transactions, and read the answers."""
    connection = stomp.Connection12([(host, port)])
    inbox = Inbox()
    connection.set_listener("", inbox)
    connection.connect(wait=True)

    for number in (6, 7):
        headers = {"reply-to": "/temp-queue/answers", "correlation-id": str(number)}
        connection.send("/queue/jobs", str(number), headers=headers, receipt=f"job-{number}")
        print(f"the server has {inbox.receipts.get(timeout=10)}")

    connection.subscribe("/queue/jobs", id="jobs", ack="client-individual")
    for _ in range(2):
        job = inbox.frames.get(timeout=10)
        # The answer is sent and the job is acknowledged, or neither.
        transaction = connection.begin()
        connection.send(
            job.headers["reply-to"],
            str(int(job.body) ** 2),
            headers={"correlation-id": job.headers["correlation-id"]},
            transaction=transaction,
        )
        connection.ack(job.headers["ack"], transaction=transaction)
        connection.commit(transaction)

    connection.subscribe("/temp-queue/answers", id="answers")
    for _ in range(2):
        answer = inbox.frames.get(timeout=10)
        print(f"{answer.headers['correlation-id']} squared is {answer.body}")
    connection.disconnect(receipt="bye")
    print(f"the server says {inbox.receipts.get(timeout=10)}")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(given[0] if given else "127.0.0.1", int(given[1]) if len(given) > 1 else 61_613)
