"""A delivery in the form of its medium.

Everything that a tenant wrote is data here: JSON escapes it by itself; a chat would read markup and mentions, so it is
escaped and stands in code; a mail has headers, which take one line of text and nothing else.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

from astrago_trainer.notify.notices import Delivery
from astrago_trainer.notify.texts import Text, notice_to_text


def webhook_body(delivery: Delivery) -> bytes:
    """The JSON of a plain webhook; docs/notifications.md lists its fields."""
    notice, text = delivery.notice, notice_to_text(delivery.notice)
    body: dict[str, Any] = {
        "id": delivery.id,
        "type": f"job.{notice.kind}",
        "timestamp": _iso(notice.time),
        "data": {
            "namespace": notice.namespace,
            "job": notice.job,
            "uid": notice.uid,
            "attempt": notice.attempt,
            "maxRestarts": notice.max_restarts,
            "reason": text.reason,
            "message": text.message,
            "durationSeconds": notice.duration_seconds,
            "title": text.title,
            "command": text.command,
            "url": text.url,
        },
    }
    return json.dumps(body, allow_nan=False).encode("ascii")


def chat_body(delivery: Delivery) -> bytes:
    """What Slack and its likes take: `text` alone, because not all of them know blocks."""
    text = notice_to_text(delivery.notice)
    lines = [f"*{_escaped(text.title)}*"]
    if text.reason or text.facts:
        lines.append(_escaped(": ".join(part for part in (text.reason, text.facts) if part)))
    if text.message:
        lines.append(f"`{_escaped(text.message)}`")
    lines.append(f"`{_escaped(text.command)}`")
    if text.url:
        lines.append(_escaped(text.url))
    return json.dumps({"text": "\n".join(lines)}).encode("ascii")


def mail_message(delivery: Delivery, sender: str, recipient: str) -> EmailMessage:
    """Plain text, with an id that stays the same when it is sent again."""
    text = notice_to_text(delivery.notice)
    mail = EmailMessage(policy=SMTP)
    mail["From"] = Address("Astrago Trainer", addr_spec=sender)
    mail["To"] = Address(addr_spec=recipient)
    mail["Subject"] = text.title
    mail["Date"] = datetime.fromtimestamp(delivery.notice.time, UTC)
    mail["Message-ID"] = f"<{delivery.id}@{sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: no holiday replies, please
    mail.set_content(_mail_text(text))
    return mail


def _mail_text(text: Text) -> str:
    first = f"{text.title}: {text.facts}." if text.facts else f"{text.title}."
    labelled = (("Reason", text.reason), ("Message", text.message))
    details = [f"{label}: {value}" for label, value in labelled if value]
    more = [f"    {line}" for line in (text.command, text.url) if line]
    blocks = ([first], details, ["More:"], more)
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _escaped(text: str) -> str:
    """For Slack's markup. A backtick would end the code that it stands in; * _ ~ only decorate, `|` only separates."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("`", "'")


def _iso(time: float) -> str:
    return (
        datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
