"""Mail over SMTP.

The server is the administrator's, and only recipients come from tenants: its address is not checked. It may still be
slow or broken, so a whole conversation has one time limit (and an answer 32 KiB, which is aiosmtplib's).
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Literal

import aiosmtplib

from astrago_trainer.notify.addresses import Policy, check_target
from astrago_trainer.notify.formats import mail_message
from astrago_trainer.notify.notices import Delivery, Mail
from astrago_trainer.notify.senders import SendFailed, SendRefused

LIMIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class MailServer:
    """The administrator's mail server."""

    host: str
    sender: str
    """The address in From, and the one that gets what cannot be delivered."""
    port: int = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)
    context: ssl.SSLContext | None = field(default=None, repr=False)
    """Where the system's certificates do not do."""


class SmtpSender:
    """Sends mails, one conversation each."""

    def __init__(self, server: MailServer, *, limit_seconds: float = LIMIT_SECONDS) -> None:
        self._server = server
        self._limit = limit_seconds

    async def send(self, delivery: Delivery, now: float) -> None:
        target, host = delivery.target, self._server.host
        if not isinstance(target, Mail) or check_target(target, Policy()):
            raise SendRefused("the target is no mail address")
        try:
            async with asyncio.timeout(self._limit):
                await self._converse(delivery, target.address)
        except TimeoutError as error:
            raise SendFailed(f"{host} needed more than {self._limit:g} s") from error
        except aiosmtplib.SMTPRecipientsRefused as error:
            code = error.recipients[0].code
            kind = SendRefused if code >= 500 else SendFailed
            raise kind(f"{host} refused the recipient with {code}") from error
        except aiosmtplib.SMTPResponseException as error:
            raise SendFailed(f"{host} answered {error.code}") from error
        except (aiosmtplib.SMTPException, OSError) as error:
            raise SendFailed(f"{host} cannot be used: {error}") from error

    async def _converse(self, delivery: Delivery, recipient: str) -> None:
        server = self._server
        await aiosmtplib.send(
            mail_message(delivery, server.sender, recipient),
            sender=server.sender,
            recipients=[recipient],
            hostname=server.host,
            port=server.port,
            username=server.user or None,
            password=server.password or None,
            # Else it asks the system for its name, which may mean to wait for DNS.
            local_hostname=server.sender.rpartition("@")[2],
            timeout=self._limit,
            use_tls=server.security == "tls",
            start_tls=server.security == "starttls",
            tls_context=server.context,
        )
