"""Jobs of Simple MQ, and workers that speak its line protocol or TMQP.

Start a server, then run it::

    tmqp-server --door smq
    python examples/simple_mq.py 127.0.0.1:2201 tmq://127.0.0.1:2622

A worker counts finished jobs as done; jobs that a worker has not counted when it disconnects go to
the next worker, of either protocol.
"""

from __future__ import annotations

import socket
import sys

from tmqp_client.sync import connect


def produce(address: tuple[str, int], jobs: list[str]) -> None:
    """Push jobs, one per line; the server sends no answer, and the end of the connection loses no
    job."""
    with socket.create_connection(address) as producer:
        producer.sendall("".join(f"M:jobs:{job}\n" for job in jobs).encode())


def work(address: tuple[str, int], count: int) -> None:
    """Take jobs, count this number as done, and leave the others."""
    with socket.create_connection(address) as worker, worker.makefile("rb") as lines:
        worker.sendall(b"C:jobs:\n")
        for _ in range(count):
            print(f"Simple MQ: {lines.readline().decode().rstrip()}")
        worker.sendall(b"D:jobs:%d\n" % count)


def finish(address: str, count: int) -> None:
    """Do the same with TMQP, where the loop acknowledges each finished job."""
    with connect(address) as client, client.consume("jobs", 0) as jobs:
        for number, job in enumerate(jobs, start=1):
            print(f"TMQP: {job.text}")
            if number == count:
                break


def main(lines: str, tmqp: str) -> None:
    """Process three jobs: one with Simple MQ, the others with TMQP."""
    host, _, port = lines.rpartition(":")
    produce((host, int(port)), ["resize 1", "resize 2", "resize 3"])
    work((host, int(port)), 1)
    finish(tmqp, 2)


if __name__ == "__main__":
    main(*(sys.argv[1:] or ("127.0.0.1:2201", "tmq://127.0.0.1:2622")))
