"""Webhooks over HTTP.

The receiver is a stranger. It gets one request to the address that was checked, with its name in TLS and in the Host
header; no redirect is followed, no proxy or cookie of this machine used, its answer's body is never read, and all of it
together has one time limit.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx

from astrago_trainer import __version__
from astrago_trainer.notify.addresses import Address, Policy, refusal
from astrago_trainer.notify.formats import chat_body, webhook_body
from astrago_trainer.notify.notices import Delivery, Mail, Webhook
from astrago_trainer.notify.senders import SendFailed, SendRefused
from astrago_trainer.notify.signing import signature_headers

LIMIT_SECONDS = 15.0
_MAX_ADDRESSES = 3
"""That are tried one after the other: a name with an IPv6 address on a machine without a route to it."""
_MAX_RETRY_AFTER = 3600.0

_LOOK_UPS = ThreadPoolExecutor(8, thread_name_prefix="notify-look-up")
"""Threads of their own: a tenant's name server can hold one for half a minute, and the event loop's are for all."""

Resolve = Callable[[str, int], Awaitable[list[Address]]]


class HttpSender:
    """Sends to webhooks and chats."""

    def __init__(
        self,
        policy: Policy,
        *,
        limit_seconds: float = LIMIT_SECONDS,
        resolve: Resolve | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """`context` where the usual certificates do not do."""
        self._policy = policy
        self._limit = limit_seconds
        self._resolve = resolve or look_up
        self._context = context

    async def send(self, delivery: Delivery, now: float) -> None:
        target = delivery.target
        if isinstance(target, Mail):
            raise SendRefused("a mail address is no address of HTTP")
        url = httpx.URL(target.url)
        if isinstance(target, Webhook):
            body = webhook_body(delivery)
            headers = signature_headers(delivery.id, body, target.secrets, now)
        else:
            body, headers = chat_body(delivery), {}
        try:
            async with asyncio.timeout(self._limit):
                addresses = await self._allowed_addresses(url)
                await self._post(url, addresses, body, headers)
        except TimeoutError as error:
            raise SendFailed(f"{url.host} did not answer within {self._limit:g} s") from error

    async def _allowed_addresses(self, url: httpx.URL) -> list[Address]:
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            addresses = await self._resolve(url.host, port)
        except OSError as error:
            raise SendFailed(f"{url.host} was not found: {error.strerror or error}") from error
        reason = refusal(addresses, self._policy, is_encrypted=url.scheme == "https")
        if reason:
            raise SendRefused(
                f"{url.host} may not be sent to: {reason}; an administrator can allow its network"
            )
        return addresses[:_MAX_ADDRESSES]

    async def _post(
        self, url: httpx.URL, addresses: list[Address], body: bytes, headers: dict[str, str]
    ) -> None:
        headers = {
            **headers,
            "host": url.netloc.decode("ascii"),
            "content-type": "application/json",
            "user-agent": f"astrago-trainer/{__version__}",
            "accept-encoding": "identity",
            "connection": "close",
        }
        if self._context is None:  # once, because it reads all certificates: 20 ms
            self._context = await asyncio.to_thread(httpx.create_ssl_context, trust_env=False)
        async with httpx.AsyncClient(
            verify=self._context,
            trust_env=False,
            follow_redirects=False,
            timeout=None,  # noqa: S113 - `send` limits all of it together
        ) as client:
            for number, address in enumerate(addresses, 1):
                request = client.build_request(
                    "POST",
                    url.copy_with(host=str(address)),
                    content=body,
                    headers=headers,
                    extensions={"sni_hostname": url.host},
                )
                try:
                    answer = await client.send(request, stream=True)
                except httpx.ConnectError as error:
                    if number == len(addresses):
                        raise SendFailed(f"{url.host} cannot be reached: {error}") from error
                except httpx.HTTPError as error:
                    reason = str(error) or type(error).__name__
                    raise SendFailed(f"{url.host} broke off: {reason}") from error
                else:
                    await answer.aclose()
                    _check_answer(url.host, answer)
                    return


def _check_answer(host: str, answer: httpx.Response) -> None:
    status = answer.status_code
    if 200 <= status < 300:
        return
    if status == 410:
        raise SendRefused(f"{host} answered 410: it wants no more messages")
    if 300 <= status < 400:
        raise SendFailed(
            f"{host} answered {status}: redirects are not followed; use the final address"
        )
    raise SendFailed(f"{host} answered {status}", retry_after=_retry_after(answer))


def _retry_after(answer: httpx.Response) -> float | None:
    """In seconds; the form with a date is rare and not worth a second clock."""
    text = answer.headers.get("retry-after", "")
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        return None
    return min(float(text), _MAX_RETRY_AFTER)


async def look_up(host: str, port: int) -> list[Address]:
    """The addresses of a name, in the order in which the system would try them."""
    ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_LOOK_UPS, ask)
    return [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found]
