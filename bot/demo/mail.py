"""A mail server that keeps what it is handed and breaks off as ordered, at any step of the conversation.

Not here: the other half of the outside world (world). It delivers nothing to anybody.
"""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Final

READ_BYTES: Final = 64 * 1024
# Where trouble may be ordered: before the greeting, at a command, or after the final dot.
STEPS: Final = ("greeting", "ehlo", "starttls", "auth", "mail", "rcpt", "data", "dot")


@dataclass(frozen=True, slots=True)
class Trouble:
    """What happens at a step: this reply, or else the line is cut, or nothing ever comes.

    `done`: after the final dot, the mail is kept all the same.
    """

    reply: str = ""
    hang: bool = False
    done: bool = False


CUT: Final = Trouble()


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail that was taken; `raw` with the doubled dots undone."""

    sender: str
    recipients: tuple[str, ...]
    raw: bytes

    def parsed(self) -> EmailMessage:
        """The mail as a reader sees it."""
        read = message_from_bytes(self.raw, policy=policy.default)
        assert isinstance(read, EmailMessage)  # noqa: S101 - what policy.default promises
        return read


@dataclass(slots=True)
class _Talk:
    """One conversation."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    secure: bool
    known: bool = False
    sender: str = ""
    recipients: list[str] = field(default_factory=list)

    async def say(self, *lines: str) -> None:
        self.writer.write("".join(f"{line}\r\n" for line in lines).encode())
        await self.writer.drain()


class PostOffice:
    """One listening mail server. `login`: user and password that it asks for; `tls`: offers STARTTLS."""

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        login: tuple[str, str] | None = None,
        at_once: bool = False,
    ) -> None:
        self.mails: list[Mail] = []
        self.commands: list[str] = []
        self._tls = tls
        self._login = login
        self._at_once = at_once
        self._troubles: dict[str, Trouble] = {}
        self._left: dict[str, int] = {}
        self._listeners: list[Callable[[Mail], None]] = []
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server is not None  # noqa: S101 - between start and stop
        return int(self._server.sockets[0].getsockname()[1])

    def listen(self, listener: Callable[[Mail], None]) -> None:
        """Call `listener` for each mail that is taken from now on."""
        self._listeners.append(listener)

    def misbehave(self, step: str, trouble: Trouble = CUT, *, times: int | None = None) -> None:
        """Have trouble at a step, so many times or until `behave`."""
        if step not in STEPS:
            raise ValueError(f"no such step: {step}; one of {', '.join(STEPS)}")
        self._troubles[step] = trouble
        self._left.pop(step, None)
        if times is not None:
            self._left[step] = times

    def behave(self) -> None:
        """No more trouble."""
        self._troubles.clear()
        self._left.clear()

    async def reached(self, command: str) -> None:
        """Wait until a command was read; `.` is the final dot."""
        while command not in self.commands:
            self._changed.clear()
            await self._changed.wait()

    async def start(self, port: int = 0) -> None:
        """Listen on this machine; port 0 takes a free one."""
        context = self._tls if self._at_once else None
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, ssl=context)

    async def stop(self) -> None:
        """Cut every line and let go of the port."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._converse(_Talk(reader, writer, secure=self._at_once)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, talk: _Talk) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                if await self._meet(talk, "greeting", "220 post.example ready"):
                    while await self._next(talk):
                        pass
        finally:
            talk.writer.transport.abort()

    async def _meet(self, talk: _Talk, step: str, *lines: str) -> bool:
        """Answer as usual, or as ordered; False ends the conversation."""
        trouble = self._troubles.get(step)
        if trouble is None:
            await talk.say(*lines)
            return True
        if step in self._left:
            self._left[step] -= 1
            if not self._left[step]:
                del self._troubles[step], self._left[step]
        if trouble.hang:
            await asyncio.Event().wait()
        if trouble.reply:
            await talk.say(trouble.reply)
        return bool(trouble.reply)

    async def _next(self, talk: _Talk) -> bool:
        line = (await talk.reader.readuntil(b"\r\n")).decode("utf-8", "replace").strip()
        word = line.partition(" ")[0].upper()
        self._note(word)
        match word:
            case "EHLO":
                return await self._meet(talk, "ehlo", *self._offers(talk))
            case "STARTTLS":
                return await self._secure(talk)
            case "AUTH":
                return await self._meet(talk, "auth", self._judge_login(talk, line))
            case "MAIL":
                return await self._take_sender(talk, line)
            case "RCPT":
                talk.recipients.append(_address(line))
                return await self._meet(talk, "rcpt", "250 2.1.5 ok")
            case "DATA":
                is_ordered = "data" in self._troubles
                usual = await self._meet(talk, "data", "354 go on")
                return usual and (is_ordered or await self._take_text(talk))
            case "QUIT":
                await talk.say("221 2.0.0 bye")
                return False
            case _:
                await talk.say("250 2.0.0 ok" if word == "NOOP" else "502 5.5.1 what?")
                return True

    def _offers(self, talk: _Talk) -> list[str]:
        offers = ["post.example"]
        offers += ["STARTTLS"] if self._tls is not None and not talk.secure else []
        offers += ["AUTH PLAIN"] if self._login is not None else []
        return [f"250-{offer}" for offer in offers] + ["250 HELP"]

    async def _secure(self, talk: _Talk) -> bool:
        is_ordered = "starttls" in self._troubles
        if not await self._meet(talk, "starttls", "220 2.0.0 go on") or self._tls is None:
            return False
        if not is_ordered:
            await talk.writer.start_tls(self._tls)
            talk.secure = True
        return True

    def _judge_login(self, talk: _Talk, line: str) -> str:
        expected = base64.b64encode("\0".join(("", *(self._login or ("", "")))).encode()).decode()
        talk.known = line == f"AUTH PLAIN {expected}"
        return "235 2.7.0 ok" if talk.known else "535 5.7.8 no"

    async def _take_sender(self, talk: _Talk, line: str) -> bool:
        if self._login is not None and not talk.known:
            await talk.say("530 5.7.0 who are you?")
            return True
        talk.sender, talk.recipients = _address(line), []
        return await self._meet(talk, "mail", "250 2.1.0 ok")

    async def _take_text(self, talk: _Talk) -> bool:
        lines: list[bytes] = []
        while (line := await talk.reader.readuntil(b"\r\n")) != b".\r\n":
            lines.append(line[1:] if line.startswith(b".") else line)
        trouble = self._troubles.get("dot")
        if trouble is None or trouble.done:
            mail = Mail(talk.sender, tuple(talk.recipients), b"".join(lines))
            self.mails.append(mail)
            for listener in self._listeners:
                listener(mail)
        self._note(".")
        return await self._meet(talk, "dot", "250 2.0.0 queued")

    def _note(self, command: str) -> None:
        self.commands.append(command)
        self._changed.set()


@asynccontextmanager
async def serve_mail(office: PostOffice | None = None, *, port: int = 0) -> AsyncIterator[PostOffice]:
    """A mail server on a free port of this machine, in the running loop."""
    made = office or PostOffice()
    await made.start(port)
    try:
        yield made
    finally:
        await made.stop()


def _address(line: str) -> str:
    return line.partition("<")[2].partition(">")[0]
