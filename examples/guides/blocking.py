"""Use the client without async: in a script, from threads, at a prompt."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from tmqp_client.sync import connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")


def main() -> None:
    with connect(ADDRESS, backend=os.environ.get("TMQP_BACKEND", "asyncio")) as client:
        client.create_queue("numbers", 1, status="push")
        with ThreadPoolExecutor(4) as pool:  # one client serves any number of threads
            ids = list(pool.map(lambda n: client.push("numbers", 1, str(n)), range(5)))
        print(f"{len(set(ids))} pushed")
        with client.consume("numbers", 1) as messages:
            numbers: list[int] = []
            for message in messages:
                numbers.append(int(message.text))
                if len(numbers) == 5:
                    break
        print(sorted(numbers))


if __name__ == "__main__":
    main()
