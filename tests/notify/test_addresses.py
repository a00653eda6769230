"""Where messages may go, and the many spellings of where they may not."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from astrago_trainer.notify.addresses import Policy, check_target, is_public, refusal
from astrago_trainer.notify.notices import Chat, Mail, Webhook

PRIVATE = [
    "127.0.0.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200",
    "168.63.129.16", "192.0.2.1", "198.18.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1",
    "::ffff:127.0.0.1", "::ffff:169.254.169.254", "2002:7f00:1::", "2002:a9fe:a9fe::1", "64:ff9b::7f00:1",
    "64:ff9b:1::a9fe:a9fe", "64:ff9b:1:ffff::101:101", "::169.254.169.254", "::8.8.8.8", "::ffff:0:169.254.169.254",
    "192.0.0.8", "192.0.0.9", "192.0.0.192", "64:ff9b::a9fe:a9fe", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
]  # fmt: skip
PUBLIC = ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]


@pytest.mark.parametrize("address", PRIVATE)
def test_what_only_the_server_can_reach_is_not_public(address):
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_the_internet_is_public(address):
    assert is_public(ip_address(address))


def test_one_bad_address_refuses_all_of_a_name():
    mixed = [ip_address("1.1.1.1"), ip_address("169.254.169.254")]

    assert refusal(mixed, Policy(), is_encrypted=True) == "169.254.169.254 is no public address"
    assert refusal(mixed[:1], Policy(), is_encrypted=True) == ""
    assert refusal([], Policy(), is_encrypted=True) == "it has no address"


def test_an_administrator_can_allow_a_network():
    policy = Policy(networks=(ip_network("10.0.0.0/8"),))

    assert refusal([ip_address("10.1.2.3")], policy, is_encrypted=False) == ""
    assert refusal([ip_address("10.1.2.3"), ip_address("192.168.0.1")], policy, is_encrypted=True)


def test_plain_http_goes_to_nobody_else():
    public = [ip_address("1.1.1.1")]

    assert refusal(public, Policy(), is_encrypted=False) == "plain HTTP is not allowed"
    assert refusal(public, Policy(allows_http=True), is_encrypted=False) == ""


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example/services/T0/B0/x",
        "https://hooks.example:8443/a?b=c&d=%20",
        "https://1.1.1.1/x",
        "https://[2606:4700:4700::1111]/x",
        "https://xn--bcher-kva.example",
    ],
)
def test_good_addresses_are_accepted(url):
    assert check_target(Chat(url=url), Policy()) == ()


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("", "bad-url"),
        ("ftp://x.example/", "bad-url"),
        ("file:///etc/passwd", "bad-url"),
        ("https://", "bad-url"),
        ("https:///x", "bad-url"),
        ("https://user:secret@x.example/", "bad-url"),
        ("https://good.example\\@evil.example/", "bad-url"),
        ("https://good.example#@evil.example/", "bad-url"),
        ("https://x.example/\r\nHost: evil", "bad-url"),
        ("https://x.example/ a", "bad-url"),
        ("https://x.example:0/", "bad-url"),
        ("https://x.example:99999/", "bad-url"),
        ("https://bücher.example/", "bad-url"),
        ("https://x.example/" + "a" * 2000, "bad-url"),
        ("https://127.0.0.1/", "refused-address"),
        ("https://[::1]/", "refused-address"),
        ("https://[::ffff:169.254.169.254]/", "refused-address"),
        ("http://169.254.169.254/latest/meta-data", "refused-address"),
        ("http://x.example/", "no-http"),
    ],
)
def test_bad_addresses_are_refused_when_they_are_set(url, code):
    problems = check_target(Webhook(url=url), Policy(), "notify[0]")

    assert [(problem.path, problem.code) for problem in problems] == [("notify[0].url", code)]
    assert "secret" not in str(problems), "an address may hold a secret"


@pytest.mark.parametrize(
    "address", ["a@b.example", "first.last+tag@mail.corp.example", "root@localhost"]
)
def test_mail_addresses_are_accepted(address):
    assert check_target(Mail(address=address), Policy()) == ()


@pytest.mark.parametrize(
    "address",
    [
        "", "a", "a@", "@b", "a b@c", "a@b@c", "a@b,c@d", "a@b\nBcc: x@y", "<a@b>", '"a b"@c', "a@-b", "a@b..c", ".a@b",
        "a@" + "b" * 64, "a" * 65 + "@b", "ä@b", "a@b>\r\nRCPT TO:<x@y",
    ],
)  # fmt: skip
def test_other_mail_addresses_are_refused(address):
    problems = check_target(Mail(address=address), Policy())

    assert [(problem.path, problem.code) for problem in problems] == [
        ("target.address", "bad-address")
    ]


def test_a_weak_secret_is_refused():
    problems = check_target(Webhook(url="https://x.example/", secrets=("whsec_AAAA",)), Policy())

    assert [(problem.path, problem.code) for problem in problems] == [
        ("target.secrets[0]", "bad-secret")
    ]
