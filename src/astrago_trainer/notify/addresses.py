"""Which targets may be sent to.

A tenant names the target and the server opens the connection, so the server must not be talked into reaching what only
it can reach: itself, its neighbours, the metadata service of its cloud. A name is looked up once, every address it has
is checked, and the connection goes to the address that was checked: a second answer of the same name changes nothing.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from astrago_trainer.core.errors import Problem
from astrago_trainer.notify.notices import Chat, Mail, Webhook
from astrago_trainer.notify.signing import MAX_KEY, MIN_KEY, PREFIX, find_key

MAX_URL = 2000
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Only what every URL parser reads in the same way: no user, no backslash, no space, no character beyond ASCII.
_URL = re.compile(
    r"https?://(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?"
    r"(?:[/?][A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]*)?"
)
_MAIL = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+)*"
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
)
_WIRE_SERVER = ipaddress.ip_address("168.63.129.16")
"""Azure's address for its virtual machines: it looks public and answers to them alone."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_NEVER_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            "192.0.0.0/24",  # of protocols; also where a provider's gateways are
            "64:ff9b:1::/48",  # a network's own NAT64, which may reach what is behind it
            "::/96",  # IPv4 addresses in an old spelling
            "::ffff:0:0:0/96",  # and in that of translators
        ),
    )
)
"""Python takes these for public."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the administrator allows."""

    networks: tuple[Network, ...] = ()
    """Networks that may be sent to although they are not public."""
    allows_http: bool = False
    """Messages without encryption, beyond those networks."""


def check_target(
    target: Webhook | Chat | Mail, policy: Policy, path: str = "target"
) -> tuple[Problem, ...]:
    """What is wrong with a target that somebody wants to use, as far as it can be seen without looking up names."""
    if isinstance(target, Mail):
        return _check_mail(target.address, f"{path}.address")
    problems = list(_check_url(target.url, policy, f"{path}.url"))
    if isinstance(target, Webhook):
        problems += [
            Problem(
                f"{path}.secrets[{index}]",
                "bad-secret",
                f"a secret is {PREFIX} and the base64 of {MIN_KEY} to {MAX_KEY} bytes; this one is not.",
                "Leave it out to be given one.",
            )
            for index, secret in enumerate(target.secrets)
            if find_key(secret) is None
        ]
    return tuple(problems)


def refusal(addresses: Sequence[Address], policy: Policy, *, is_encrypted: bool) -> str:
    """Why none of a name's addresses may be sent to; empty when all of them may.

    One bad address among good ones refuses them all: such a name is a trap or a mistake.
    """
    for address in addresses:
        if any(address in network for network in policy.networks):
            continue
        if not is_public(address):
            return f"{address} is no public address"
        if not (is_encrypted or policy.allows_http):
            return "plain HTTP is not allowed"
    return "" if addresses else "it has no address"


def is_public(address: Address) -> bool:
    """Whether anybody on the Internet could reach it; addresses within addresses are looked into."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None or address.is_site_local:
            return False
    if any(address in network for network in _NEVER_PUBLIC):
        return False
    return address.is_global and not address.is_multicast and address != _WIRE_SERVER


def _check_url(url: str, policy: Policy, path: str) -> tuple[Problem, ...]:
    if len(url) > MAX_URL or not _URL.fullmatch(url) or not _has_good_port(url):
        message = (
            f"an address is https://host/path, with at most {MAX_URL} characters; this one is not."
        )
        remedy = (
            "Leave out user names and spaces; write other characters as %XX, host names with xn--."
        )
        return (Problem(path, "bad-url", message, remedy),)
    parts = urlsplit(url)
    try:
        address = ipaddress.ip_address(parts.hostname or "")
    except ValueError:
        if parts.scheme == "http" and not (policy.allows_http or policy.networks):
            return (Problem(path, "no-http", "plain HTTP is not allowed.", "Use https."),)
        return ()
    reason = refusal([address], policy, is_encrypted=parts.scheme == "https")
    if reason:
        remedy = "Use a public https address, or ask the administrator to allow this network."
        return (
            Problem(path, "refused-address", f"messages are not sent there: {reason}.", remedy),
        )
    return ()


def _has_good_port(url: str) -> bool:
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def _check_mail(address: str, path: str) -> tuple[Problem, ...]:
    if len(address) <= 254 and len(address.partition("@")[0]) <= 64 and _MAIL.fullmatch(address):
        return ()
    return (Problem(path, "bad-address", "a mail address is name@host; this one is not."),)
