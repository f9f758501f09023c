"""One mail handed in to one server, or how far that got: what a failure proves hangs on the step it met.

Not here: what is handed in (letter), or what each end means for an effect (smtp).
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, cast

from aiosmtplib import (
    SMTP,
    SMTPException,
    SMTPHeloError,
    SMTPResponse,
    SMTPResponseException,
    SMTPServerDisconnected,
)

from bot.connectors.dial import CANDIDATES, Resolve
from bot.connectors.exchange import system_trust
from bot.connectors.letter import Letter
from bot.environment import MailServer
from bot.policy.elapsed import elapsed_seconds

SHUTTING_DOWN: Final = (
    421  # The server leaves: said after the final dot, it does not say what it did with the mail.
)


_AT_THE_DOOR: Final = (
    "securing",
    "greeting",
)  # Nothing was said of the mail yet: any other would fare the same.


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended: `cause` names a row of smtp.OUTCOMES, `code` is what the server answered, if it did."""

    cause: str
    code: int | None = None


class _NoLogin(Exception):
    """The server takes no password, or would take it over an open line; the cause is the message."""


@dataclass(slots=True)
class _Progress:
    """How far it got. Nobody delivers a mail whose final dot was not sent; from then on nobody knows.

    `ends` is when its time is over.
    """

    ends: float
    step: str = "connecting"

    @property
    def is_ambiguous(self) -> bool:
        return self.step == "dot"

    def to_the_dot(self) -> None:
        """Go on to the final dot. Raises TimeoutError where the machine slept: we were given up."""
        if elapsed_seconds() > self.ends:
            raise TimeoutError
        self.step = "dot"

    def answered(self, code: int) -> Ended:
        """What a reply other than the wished one means at this step."""
        family = code // 100
        if family not in (4, 5):
            return self.broken()
        if self.step in _AT_THE_DOOR:
            return Ended(f"door_{family}xx", code)
        if not self.is_ambiguous:
            return Ended(f"smtp_{family}xx", code)
        return Ended("dot_421" if code == SHUTTING_DOWN else f"dot_{family}xx", code)

    def broken(self) -> Ended:
        """What a line that went dead, or talks no SMTP, means at this step."""
        match self.step:
            case "connecting":
                return Ended("connect_failed")
            case "securing":
                return Ended("tls_failed")
            case _:
                return Ended("cut" if self.is_ambiguous else "cut_early")

    def late(self) -> Ended:
        """What running out of time means at this step."""
        match self.step:
            case "connecting" | "securing":
                return Ended("connect_timeout")
            case _:
                return Ended("timeout" if self.is_ambiguous else "timeout_early")


@dataclass(frozen=True, slots=True)
class Submission:
    """One mail server, and how it is reached. `tls` is for tests; None takes the system's authorities."""

    server: MailServer
    local_name: str
    resolve: Resolve
    tls: ssl.SSLContext | None = None

    async def hand_in(self, letter: Letter, *, within_seconds: float) -> Ended:
        """Hand one mail in, once; the time is a total. Cancelling drops the line at once."""
        return await self._within(within_seconds, letter)

    async def greet(self, *, within_seconds: float) -> Ended:
        """Go as far as a mail would, login included, then NOOP; `sent` if all of that was answered well."""
        return await self._within(within_seconds, None)

    async def _within(self, seconds: float, letter: Letter | None) -> Ended:
        progress = _Progress(elapsed_seconds() + seconds)
        try:
            async with asyncio.timeout(seconds), self._connected(progress) as client:
                await self._prepare(client, progress)
                await (_submit(client, letter, progress) if letter else client.noop())
        except TimeoutError:
            return progress.late()
        except _NoLogin as refusal:
            return Ended(str(refusal))
        except ConnectionRefusedError:
            return Ended("connection_refused")
        except socket.gaierror:
            return Ended("dns_failed")
        except SMTPResponseException as said:
            return progress.answered(said.code)
        except (SMTPException, OSError, UnicodeError):  # ssl.SSLError is an OSError
            return progress.broken()
        return Ended("sent")

    @asynccontextmanager
    async def _connected(self, progress: _Progress) -> AsyncIterator[SMTP]:
        client = SMTP(
            hostname=self.server.host,
            sock=await self._dial(),
            port=None,
            use_tls=self.server.tls,
            start_tls=False,
            local_hostname=self.local_name,
            tls_context=self.tls or system_trust(),
            timeout=None,
        )
        progress.step = "securing" if self.server.tls else "greeting"
        try:
            await client.connect()
            progress.step = "greeting"
            yield client
        finally:
            transport = client.transport
            client.close()
            if transport is not None:
                cast(
                    "asyncio.WriteTransport", transport
                ).abort()  # close() would go on sending what waits to be written

    async def _dial(self) -> socket.socket:
        """Connect to the first address that answers."""
        failure: OSError | None = None
        found = dict.fromkeys(await self.resolve(self.server.host, self.server.port))
        for address in list(found)[:CANDIDATES]:
            family = socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET  # noqa: PLR2004
            made = socket.socket(family, socket.SOCK_STREAM)
            made.setblocking(False)  # noqa: FBT003 - the standard library has no keyword for it
            try:
                await asyncio.get_running_loop().sock_connect(made, (address, self.server.port))
            except OSError as error:
                made.close()
                failure = failure or error
            except BaseException:
                made.close()
                raise
            else:
                return made
        raise failure or socket.gaierror

    async def _prepare(self, client: SMTP, progress: _Progress) -> None:
        """EHLO (HELO where that is all there is), TLS where it is offered, and the login."""
        try:
            await client.ehlo()
        except SMTPHeloError as said:
            if said.code // 100 != 5:  # noqa: PLR2004 - "not now" is no "I do not know that word"
                raise
            await client.helo()
        if not self.server.tls and client.supports_extension("starttls"):
            progress.step = "securing"
            await client.starttls(server_hostname=self.server.host)
            progress.step = "greeting"
            await client.ehlo()
        if self.server.user is None or self.server.password is None:
            return
        if client.get_transport_info("sslcontext") is None and not _is_here(client):
            raise _NoLogin("auth_needs_tls")  # whoever sits on the line may have taken the offer out
        if not client.supported_auth_methods:
            raise _NoLogin("auth_not_offered")
        await client.login(self.server.user, self.server.password.get_secret_value())


async def _submit(client: SMTP, letter: Letter, progress: _Progress) -> None:
    progress.step = "envelope"
    await client.mail(letter.sender)
    await client.rcpt(letter.recipient)  # the only one: refused, nothing is sent
    _expect(3, await client.execute_command(b"DATA"))
    protocol = client.protocol
    if protocol is None:
        raise SMTPServerDisconnected("Connection lost")
    progress.to_the_dot()  # Written in one piece: from here on the dot may have arrived.
    protocol.write(letter.data + b".\r\n")
    _expect(2, await protocol.read_response())


def _expect(family: int, response: SMTPResponse) -> None:
    """RFC 5321, 4.2.1: the first digit says it all; 3 is "go on", 2 "done"."""
    if response.code // 100 != family:
        raise SMTPResponseException(response.code, "")


def _is_here(client: SMTP) -> bool:
    """Whether the server is on this machine: nobody sits on that line."""
    peer = client.get_transport_info("peername")
    return bool(peer) and ip_address(peer[0]).is_loopback
