"""What is said, in the form of each medium, whatever tenants call their jobs."""

from __future__ import annotations

import email
import json
from email.policy import default

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.notify.receivers import a_delivery, a_notice

from astrago_trainer.notify.formats import chat_body, mail_message, webhook_body
from astrago_trainer.notify.notices import TARGETS, Chat, Delivery, Mail, Webhook, deliveries
from astrago_trainer.notify.texts import Text, notice_to_text, plain

HOOK = Webhook(url="https://hooks.example/x")


def test_a_failure_is_told_with_its_reason_and_the_next_command():
    assert notice_to_text(a_notice()) == Text(
        title="Job mnist in team-a failed",
        reason="BackoffLimitExceeded",
        message="rank 1 exited with 1",
        facts="after 1 restart, ran 12 min 34 s",
        command="astrago explain mnist --namespace team-a",
        url="",
    )


@pytest.mark.parametrize(
    ("changes", "title", "facts", "command"),
    [
        (
            {"kind": "complete", "attempt": 0, "duration_seconds": 200_000},
            "Job mnist in team-a completed",
            "ran 2 d 7 h",
            "astrago status mnist --namespace team-a",
        ),
        (
            {"kind": "restarted", "attempt": 2, "duration_seconds": None},
            "Job mnist in team-a was restarted",
            "restart 2 of at most 3",
            "astrago logs -f mnist --namespace team-a",
        ),
    ],
    ids=["complete", "restarted"],
)
def test_other_news_have_their_own_words(changes, title, facts, command):
    text = notice_to_text(a_notice(**changes))

    assert (text.title, text.facts, text.command) == (title, facts, command)


def test_the_webhook_has_everything_as_data():
    delivery = a_delivery(HOOK, url="https://astrago.example/jobs/1")

    assert json.loads(webhook_body(delivery)) == {
        "id": delivery.id,
        "type": "job.failed",
        "timestamp": "2027-01-15T08:00:00.000Z",
        "data": {
            "namespace": "team-a",
            "job": "mnist",
            "uid": "u-1",
            "attempt": 1,
            "maxRestarts": 3,
            "reason": "BackoffLimitExceeded",
            "message": "rank 1 exited with 1",
            "durationSeconds": 754.0,
            "title": "Job mnist in team-a failed",
            "command": "astrago explain mnist --namespace team-a",
            "url": "https://astrago.example/jobs/1",
        },
    }


def test_the_chat_gets_a_short_text():
    body = json.loads(chat_body(a_delivery(Chat(url="https://chat.example/x"))))

    assert body == {
        "text": (
            "*Job mnist in team-a failed*\n"
            "BackoffLimitExceeded: after 1 restart, ran 12 min 34 s\n"
            "`rank 1 exited with 1`\n"
            "`astrago explain mnist --namespace team-a`"
        )
    }


def test_markup_and_mentions_are_shown_as_they_are():
    message = "<!channel> & <https://evil.example|click> `x` @channel\n*bold*"
    text = json.loads(chat_body(a_delivery(Chat(url="https://x.example"), message=message)))["text"]

    assert text.split("\n")[2] == (
        "`&lt;!channel&gt; &amp; &lt;https://evil.example|click&gt; 'x' @channel *bold*`"
    )


def test_the_mail_is_plain_text_that_can_be_sent_again():
    delivery = a_delivery(Mail(address="a@b.example"), url="https://astrago.example/jobs/1")
    mail = email.message_from_bytes(
        mail_message(delivery, "astrago@corp.example", "a@b.example").as_bytes(), policy=default
    )

    assert dict(mail.items()) == {
        "From": "Astrago Trainer <astrago@corp.example>",
        "To": "a@b.example",
        "Subject": "Job mnist in team-a failed",
        "Date": "Fri, 15 Jan 2027 08:00:00 +0000",
        "Message-ID": f"<{delivery.id}@corp.example>",
        "Auto-Submitted": "auto-generated",
        "Content-Type": 'text/plain; charset="utf-8"',
        "Content-Transfer-Encoding": "7bit",
        "MIME-Version": "1.0",
    }
    assert mail.get_content().replace("\r\n", "\n") == (
        "Job mnist in team-a failed: after 1 restart, ran 12 min 34 s.\n\n"
        "Reason: BackoffLimitExceeded\nMessage: rank 1 exited with 1\n\n"
        "More:\n\n    astrago explain mnist --namespace team-a\n    https://astrago.example/jobs/1\n"
    )


NASTY = st.text(max_size=200) | st.sampled_from(
    ["a\r\nBcc: x@evil.example", "a\n.\nMAIL FROM:<x>", "\x1b[2J\x1b]0;x\x07", "\u202egnp.exe", "x" * 3000, "\ud800"]
)  # fmt: skip


@given(NASTY, NASTY, NASTY)
def test_nothing_that_a_tenant_writes_changes_the_form(job, reason, message):
    changes = {"job": job, "reason": reason, "message": message}
    mail = mail_message(
        a_delivery(Mail(address="a@b.example"), **changes), "s@x.example", "a@b.example"
    )
    parsed = email.message_from_bytes(mail.as_bytes(), policy=default)

    assert [name for name in parsed if name.lower() in ("bcc", "cc", "reply-to")] == []
    assert parsed["To"] == "a@b.example"
    assert len(parsed.get_content().split("\n")) <= 11
    assert set(json.loads(chat_body(a_delivery(Chat(url="https://x.example"), **changes)))) == {
        "text"
    }
    data = json.loads(webhook_body(a_delivery(HOOK, **changes)))["data"]
    assert data["job"] == job
    for shown in (data["title"], data["reason"], data["message"], data["command"]):
        assert shown.isprintable()
        assert len(shown) <= 500


def test_long_words_are_cut_visibly():
    assert plain("a" * 20, 10) == "a" * 9 + "…"
    assert plain("  a\t\x00\u200bb\u2028c  ", 10) == "a b c"


def test_the_same_news_for_the_same_target_has_the_same_id():
    targets = [HOOK, HOOK, Mail(address="a@b.example")]
    first = deliveries(a_notice(), targets, 1.0)
    again = deliveries(a_notice(message="other words"), targets, 2.0)

    assert [each.id for each in first] == [each.id for each in again]
    assert len({each.id for each in first}) == len(first) == 2
    other = deliveries(a_notice(attempt=2), targets, 1.0)
    assert {each.id for each in first}.isdisjoint(each.id for each in other)


def test_a_delivery_survives_the_database_as_json():
    delivery = a_delivery(Webhook(url="https://x.example", secrets=("whsec_x",)))

    assert Delivery.model_validate_json(delivery.model_dump_json()) == delivery
    assert TARGETS.validate_python({"kind": "mail", "address": "a@b.example"}) == Mail(
        address="a@b.example"
    )


def test_secrets_and_addresses_are_not_shown():
    target = Webhook(url="https://x.example/T0KEN", secrets=("whsec_SECRET",))

    assert "T0KEN" not in repr(target)
    assert "SECRET" not in repr(a_delivery(target))
