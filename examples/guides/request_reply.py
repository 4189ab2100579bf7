"""Send many concurrent requests to another client, with timeouts and refusals."""

from __future__ import annotations

import os

import anyio
import attrs

from tmqp_client import OperationFailed, Refuse, connect, to_name

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")
SQUARE_ROOT = 1  # you choose the numbers of content types


@attrs.define
class Root:
    """The answer."""

    of: int
    value: float


async def main() -> None:
    async with connect(ADDRESS, name="calculator") as server, connect(ADDRESS) as client:

        @server.responder(SQUARE_ROOT, concurrency=10)
        async def square_root(number: int) -> Root:
            if number < 0:
                raise Refuse("not of this world", 1_001)
            return Root(number, number**0.5)

        async with anyio.create_task_group() as tasks:
            await tasks.start(server.run)

            async def ask(number: int) -> None:
                target = to_name("calculator")
                answer = await client.request(target, str(number), 2.0, content_type=SQUARE_ROOT)
                if answer.ok:
                    roots.append(client.decode(answer, Root))
                else:
                    print(f"{number}: {answer.code} {answer.text}")

            roots: list[Root] = []
            async with anyio.create_task_group() as questions:
                for number in (9, 16, -1, 25):
                    questions.start_soon(ask, number)
            for root in sorted(roots, key=lambda root: root.of):
                print(f"{root.of}: {root.value}")
            tasks.cancel_scope.cancel()
        try:
            await client.request(to_name("missing"), "hello?")
        except OperationFailed as error:
            print(f"missing: {error.code}")


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
