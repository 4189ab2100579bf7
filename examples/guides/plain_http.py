"""One queue, reached by TMQP and by plain HTTP."""

from __future__ import annotations

import os

import anyio
import httpx

from tmqp.address import Address
from tmqp_client import connect
from tmqp_server import ServerConfig, WebConfig, running

QUEUE = "/api/v1/channels/letters/queues/1"


async def main() -> None:
    config = ServerConfig(
        listen=[Address("127.0.0.1", 0)], web=WebConfig(listen=["http://127.0.0.1:0"])
    )
    async with running(config) as server:
        url = server.web_addresses[0]
        async with (
            connect(str(server.addresses[0])) as client,
            httpx.AsyncClient(base_url=url) as web,
        ):
            await client.create_queue("letters", 1, status="pull")

            answer = await web.post(
                f"{QUEUE}/messages?id=a1",
                content="from the web",
                headers={"Content-Type": "text/plain", "Tmqp-Header-Country": "fr"},
            )
            print("published:", answer.status_code, answer.json())
            seen = [each.text async for each in client.peek("letters", 1)]
            print("TMQP sees:", seen)
            await client.join("letters")
            async for message in client.pull("letters", 1, count=1):
                print("TMQP got:", message.text, message.header("Country"))
                await message.ack()

            await client.push("letters", 1, "from TMQP", headers={"Country": "no"})
            answer = await web.get(f"{QUEUE}/messages")
            print("HTTP sees:", [each["text"] for each in answer.json()["items"]])
            answer = await web.post(f"{QUEUE}/deliveries?wait=5&ack=manual")
            [item] = answer.json()["items"]
            print("HTTP got:", item["text"], item["headers"])
            answer = await web.post(f"{QUEUE}/deliveries/{item['id']}/ack")
            print("acknowledged:", answer.status_code)


if __name__ == "__main__":
    anyio.run(main, backend=os.environ.get("TMQP_BACKEND", "asyncio"))
