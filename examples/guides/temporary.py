"""Channels that are removed with the client that created them, or with their last consumer."""

from __future__ import annotations

import os

import anyio

from tmqp.models import ChannelOptions
from tmqp_client import OperationFailed, connect

ADDRESS = os.environ.get("TMQP_ADDRESS", "tmq://127.0.0.1:2622")


async def main() -> None:
    async with connect(ADDRESS) as worker:
        await worker.create_queue("sums", 1, status="round-robin")
        async with connect(ADDRESS) as asker, asker.temporary_queue("answers") as answers:
            await asker.push("sums", 1, "1 2 3", headers={"Reply-To": answers.channel})
            async with worker.consume("sums", 1, acknowledge="manual") as questions:
                question = await questions.get()
                reply_to = question.header("Reply-To") or ""
                total = sum(int(each) for each in question.text.split())
                await worker.push(reply_to, 0, str(total))
                await question.ack()
            print("the sum:", (await answers.get()).text)
            try:
                await worker.join(reply_to)
            except OperationFailed as error:
                print("the worker may not listen:", error.code)
        names = [each.name for each in await worker.channels("answers.*")]
        print("left when the asker has gone:", names)

        # This channel is removed with its last consumer, not with its creator.
        await worker.create_channel("standup", ChannelOptions(lifetime="consumers"))
        await worker.create_queue("standup", 1, status="broadcast")
        async with connect(ADDRESS) as listener:
            await listener.join("standup")
            print("with a listener:", [each.name for each in await worker.channels("standup")])
            await listener.leave("standup")
            print("without one:", [each.name for each in await worker.channels("standup")])


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
