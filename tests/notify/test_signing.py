"""Signatures that receivers can check with any library of Standard Webhooks."""

from __future__ import annotations

import pytest

from astrago_trainer.notify.signing import find_key, is_genuine, new_secret, signature_headers

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'


def test_it_agrees_with_the_example_of_the_standard():
    headers = signature_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", BODY, [SECRET], 1614265330.9)

    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_while_secrets_change_both_are_good():
    new = new_secret()
    headers = signature_headers("m", BODY, [new, SECRET], 1000.0)

    assert is_genuine(headers, BODY, new, 1000.0)
    assert is_genuine(headers, BODY, SECRET, 1000.0)
    assert not is_genuine(headers, BODY, new_secret(), 1000.0)


@pytest.mark.parametrize(
    ("changes", "body", "now"),
    [
        ({"webhook-id": "other"}, BODY, 1000.0),
        ({"webhook-timestamp": "1001"}, BODY, 1000.0),
        ({"webhook-timestamp": "x"}, BODY, 1000.0),
        ({"webhook-timestamp": "1" * 5000}, BODY, 1000.0),
        ({"webhook-signature": "v1,AAAA"}, BODY, 1000.0),
        ({"webhook-signature": ""}, BODY, 1000.0),
        ({}, BODY + b" ", 1000.0),
        ({}, BODY, 1301.0),
        ({}, BODY, 699.0),
    ],
)
def test_anything_changed_or_old_is_not_genuine(changes, body, now):
    headers = signature_headers("m", BODY, [SECRET], 1000.0)

    assert is_genuine(headers, BODY, SECRET, 1000.0)
    assert not is_genuine({**headers, **changes}, body, SECRET, now)


def test_without_a_secret_there_is_no_signature():
    assert "webhook-signature" not in signature_headers("m", BODY, [], 1.0)


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_ä" + "A" * 40]
)
def test_a_weak_or_foreign_secret_is_none(secret):
    assert find_key(secret) is None


def test_new_secrets_differ_and_are_good():
    first, second = new_secret(), new_secret()

    assert first != second
    assert len(find_key(first) or b"") == 32
