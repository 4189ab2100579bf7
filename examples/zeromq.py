"""ZeroMQ sockets with a broker between them: tasks, news and requests.

Start a server, then run it (it needs pyzmq)::

    tmqp-server --door zmtp
    python examples/zeromq.py tcp://127.0.0.1:5555

The sockets are those of any ZeroMQ program.  All of them connect to the server, which keeps a task
until a worker takes it, and a request until a worker has replied.
"""

from __future__ import annotations

import sys
import time

import zmq


def tasks(context: zmq.Context[zmq.Socket[bytes]], address: str) -> None:
    """PUSH and PULL: a task waits until a worker connects."""
    with context.socket(zmq.PUSH) as producer:
        producer.connect(address)
        producer.linger = 5_000  # how long close() may take to send the rest
        for number in range(3):
            producer.send_multipart([b"resize", b"picture-%d" % number])
    # The producer has disconnected; no worker has started yet.
    with context.socket(zmq.PULL) as worker:
        worker.connect(address)
        for _ in range(3):
            what, which = worker.recv_multipart()
            print(f"task: {what.decode()} {which.decode()}")


def news(context: zmq.Context[zmq.Socket[bytes]], address: str) -> None:
    """PUB and SUB: current subscribers get the messages with their prefix."""
    with context.socket(zmq.PUB) as publisher, context.socket(zmq.SUB) as subscriber:
        publisher.connect(address)
        subscriber.connect(address)
        subscriber.subscribe(b"sports")
        time.sleep(0.5)  # the subscription must arrive first, as with any PUB socket
        publisher.send_multipart([b"weather", b"rain"])
        publisher.send_multipart([b"sports", b"2:1"])
        topic, text = subscriber.recv_multipart()
        print(f"news: {topic.decode()} {text.decode()}")


def requests(context: zmq.Context[zmq.Socket[bytes]], address: str) -> None:
    """REQ and REP: a worker that leaves loses no request."""
    with context.socket(zmq.REQ) as asker:
        asker.connect(address)
        asker.send(b"6 * 7")
        with context.socket(zmq.REP) as clumsy:
            clumsy.connect(address)
            print(f"taken: {clumsy.recv().decode()}")
            # It disconnects without a reply.
        with context.socket(zmq.REP) as worker:
            worker.connect(address)
            question = worker.recv().decode()
            worker.send(b"42")
            print(f"reply: {question} = {asker.recv().decode()}")


def main(address: str) -> None:
    """Run all three."""
    with zmq.Context() as context:
        tasks(context, address)
        news(context, address)
        requests(context, address)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tcp://127.0.0.1:5555")
