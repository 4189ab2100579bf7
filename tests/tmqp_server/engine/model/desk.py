"""What all parts of the model broker stand on: the time, its words, who is told of events."""

from __future__ import annotations

from tests.tmqp_server.engine.model.things import Channel, Client, Letter, Line, Word

__all__ = ["Desk", "Settings"]


class Settings:
    """The bounds of the server, in the model's own hand."""

    def __init__(
        self,
        sessions: int = 10_000,
        channels: int = 10_000,
        queues: int = 1_000,
        messages: int = 1_000_000,
        message_bytes: int = 16_777_216,
        queue_bytes: int = 268_435_456,
        total_bytes: int = 1_073_741_824,
        put_backs: int = 1_000,
        hops: int = 4,
        pull_count: int = 1_000_000,
        pulls: int = 1_024,
        routers: int = 1_000,
        bindings: int = 100,
        acknowledge_timeout_ms: int = 3_600_000,
    ) -> None:
        self.sessions = sessions
        self.channels = channels
        self.queues = queues
        self.messages = messages
        self.message_bytes = message_bytes
        self.queue_bytes = queue_bytes
        self.total_bytes = total_bytes
        self.put_backs = put_backs
        self.hops = hops
        self.pull_count = pull_count
        self.pulls = pulls
        self.routers = routers
        self.bindings = bindings
        self.acknowledge_timeout_ms = acknowledge_timeout_ms


class Desk:
    """Keeps clients and channels; says words."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.now = 0.0
        self.said: list[Word] = []
        self.clients: dict[int, Client] = {}
        self.channels: dict[str, Channel] = {}
        #: Who hears of (event, channel key, queue id), with the channel as each spelt it.
        self.listeners: dict[tuple[str, str, int | None], dict[int, str]] = {}

    def say(self, *word: object) -> None:
        """Say one word."""
        self.said.append(word)

    # --- Finding ---------------------------------------------------------------------------------

    def channel(self, name: str) -> Channel | None:
        """Channels are found in any case (F46)."""
        return self.channels.get(name.lower())

    def line(self, name: str, queue_id: int) -> Line | None:
        """A queue that is there."""
        channel = self.channel(name)
        return None if channel is None else channel.queues.get(queue_id)

    def lines(self) -> list[Line]:
        """All queues."""
        return [line for channel in self.channels.values() for line in channel.queues.values()]

    def by_id(self, client_id: str) -> Client | None:
        """The client of an id (exactly, F46)."""
        for client in self.clients.values():
            if client.client_id == client_id:
                return client
        return None

    # --- Events ----------------------------------------------------------------------------------

    def tell(self, event: str, channel: str, queue_id: int | None, *fact: object) -> None:
        """Tell of an event those who listen and read (F129, F131)."""
        key = (event, channel.lower(), queue_id)
        for number, spelling in self.listeners.get(key, {}).items():
            if not self.clients[number].blocked:
                self.say("inform", number, event, spelling, fact)

    def tell_client(self, event: str, client: Client) -> None:
        """Of a client (F130)."""
        self.tell(event, "", None, client.client_id, client.name, client.kind)

    def tell_channel(self, event: str, channel: Channel) -> None:
        """Of a channel (F130)."""
        limit = channel.options["client_limit"]
        self.tell(event, "", None, channel.name, len(channel.members), limit)

    def tell_member(self, event: str, channel: Channel, client: Client) -> None:
        """Of a client that joined or left (F130)."""
        fact = (channel.name, client.client_id, client.name, client.kind)
        self.tell(event, channel.name, None, *fact)

    def tell_line(self, event: str, line: Line, status: object) -> None:
        """Of a queue (F130)."""
        fact = (line.channel.name, line.queue_id, line.options["tag"], status)
        counts = (len(line.high), len(line.regular))
        self.tell(event, line.channel.name, None, *fact, *counts)

    def tell_letter(self, line: Line, letter: Letter) -> None:
        """Of a message produced; of one that is being saved when that is known (F130)."""
        if letter.saving:
            letter.untold = True
            return
        who = letter.producer
        fact = (letter.spelling, line.queue_id, letter.message_id, letter.saved)
        producer = (who.client_id, who.name, who.kind)
        self.tell("MessageProduced", line.channel.name, line.queue_id, *fact, *producer)

    def forget_listeners(
        self, number: int | None, channel: str = "", queue_id: int | None = None
    ) -> None:
        """End subscriptions with their client, their queue or their channel."""
        for place, spellings in list(self.listeners.items()):
            if number is not None:
                spellings.pop(number, None)
            elif place[1] == channel.lower() and queue_id in {None, place[2]}:
                del self.listeners[place]
                for listener, spelling in spellings.items():
                    self.say("ended", listener, place[0], spelling)
