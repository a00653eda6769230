"""Mail over real connections, to good servers and to bad ones."""

from __future__ import annotations

import asyncio
import email
import ssl
from dataclasses import dataclass, field
from email.policy import default

import pytest
import trustme
from tests.notify.receivers import LIMIT, a_delivery, listening, run

from astrago_trainer.notify.notices import Mail, Webhook
from astrago_trainer.notify.senders import SendFailed, SendRefused
from astrago_trainer.notify.smtp import MailServer, SmtpSender

TO = Mail(address="user@corp.example")


@dataclass
class Postbox:
    """An SMTP server that keeps what it gets; `replies` replaces its answers by command."""

    replies: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    commands: list[str] = field(default_factory=list)
    mails: list[bytes] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 test\r\n")
        while line := (await reader.readline()).decode().rstrip("\r\n"):
            verb = line.split(" ")[0].upper()
            self.commands.append(line)
            reply = self.replies.get(verb) or {
                "EHLO": "250-test\r\n250 STARTTLS" if self.tls else "250-test\r\n250 AUTH PLAIN",
                "STARTTLS": "220 go",
                "AUTH": "235 ok",
                "DATA": "354 go",
                "QUIT": "221 bye",
            }.get(verb, "250 ok")
            writer.write(reply.encode() + b"\r\n")
            await writer.drain()
            if verb == "STARTTLS":
                await writer.start_tls(self.tls)
                self.tls = None
            if reply.startswith("354"):
                self.mails.append(await reader.readuntil(b"\r\n.\r\n"))
                writer.write(b"250 kept\r\n")
                await writer.drain()


def sender(port: int, limit_seconds: float = LIMIT, **options) -> SmtpSender:
    fields = {
        "host": "127.0.0.1",
        "sender": "astrago@corp.example",
        "port": port,
        "security": "none",
    }
    return SmtpSender(MailServer(**{**fields, **options}), limit_seconds=limit_seconds)


def test_a_mail_arrives_with_a_stable_id():
    async def main():
        postbox = Postbox()
        async with listening(postbox.serve) as port:
            delivery = a_delivery(TO, message="é\n.\nRCPT TO:<x@evil.example>")
            for _ in range(2):
                await sender(port).send(delivery, 0.0)

        first, second = (email.message_from_bytes(mail, policy=default) for mail in postbox.mails)
        assert first["Subject"] == "Job mnist in team-a failed"
        assert first["Message-ID"] == second["Message-ID"] == f"<{delivery.id}@corp.example>"
        assert "é . RCPT TO:<x@evil.example>" in first.get_content()
        recipients = [line for line in postbox.commands if line.upper().startswith("RCPT")]
        assert recipients == ["RCPT TO:<user@corp.example>"] * 2

    run(main())


def test_a_user_and_password_are_used_where_they_are_set():
    async def main():
        postbox = Postbox()
        async with listening(postbox.serve) as port:
            await sender(port, user="me", password="p").send(a_delivery(TO), 0.0)
        assert [line for line in postbox.commands if line.startswith("AUTH")] == [
            "AUTH PLAIN AG1lAHA="
        ]

    run(main())


def test_encryption_is_asked_for_and_the_certificate_checked():
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(client)

    async def main():
        postbox = Postbox(tls=server)
        async with listening(postbox.serve) as port:
            await sender(port, security="starttls", context=client).send(a_delivery(TO), 0.0)
        assert postbox.commands[1] == "STARTTLS"
        assert len(postbox.mails) == 1

        stranger = Postbox(tls=server)
        async with listening(stranger.serve) as port:
            with pytest.raises(SendFailed, match="CERTIFICATE_VERIFY_FAILED"):
                await sender(port, security="starttls").send(a_delivery(TO), 0.0)
        assert stranger.mails == []

    run(main())


def test_without_encryption_on_offer_nothing_is_sent():
    async def main():
        postbox = Postbox()
        async with listening(postbox.serve) as port:
            with pytest.raises(SendFailed, match="STARTTLS"):
                await sender(port, security="starttls", user="me", password="p").send(
                    a_delivery(TO), 0.0
                )
        assert [line for line in postbox.commands if line.startswith(("AUTH", "MAIL"))] == []

    run(main())


@pytest.mark.parametrize(
    ("replies", "error", "says"),
    [
        ({"RCPT": "550 nobody"}, SendRefused, "refused the recipient with 550"),
        ({"RCPT": "450 later"}, SendFailed, "refused the recipient with 450"),
        ({"MAIL": "550 not you"}, SendFailed, "550"),
        ({"DATA": "451 later"}, SendFailed, "answered 451"),
        ({"EHLO": "421 busy", "HELO": "421 busy"}, SendFailed, "421"),
        ({"EHLO": "250-" + "x" * 100_000}, SendFailed, "127.0.0.1"),
        ({"EHLO": "\r\n".join(["250-x"] * 20_000)}, SendFailed, "127.0.0.1"),
    ],
    ids=["nobody", "greylisted", "sender", "data", "busy", "long-line", "long-answer"],
)
def test_what_the_server_says_is_told(replies, error, says):
    async def main():
        postbox = Postbox(replies)
        async with listening(postbox.serve) as port:
            with pytest.raises(error, match=says):
                await sender(port).send(a_delivery(TO), 0.0)
        assert postbox.mails == []

    run(main())


def test_a_silent_server_costs_a_bounded_time():
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async def main():
        async with listening(silent) as port:
            with pytest.raises(SendFailed, match=r"needed more than 0\.2 s"):
                await sender(port, limit_seconds=0.2).send(a_delivery(TO), 0.0)

    run(main())


@pytest.mark.parametrize(
    "target", [Mail(address="a@b\r\nRCPT TO:<x@y>"), Webhook(url="https://x.example/")]
)
def test_what_is_no_mail_address_is_refused_before_anything_is_sent(target):
    with pytest.raises(SendRefused, match="no mail address"):
        run(sender(1).send(a_delivery(target), 0.0))
