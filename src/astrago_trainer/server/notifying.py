"""Who is told of which jobs, as a file of the administrator says, and the loop that tells them.

{"targets": [{"namespace": "team-a", "target": {"kind": "webhook", "url": "https://…", "secrets": ["whsec_…"]}},
             {"namespace": "*", "target": {"kind": "mail", "address": "ops@example.org"}}],
 "mail": {"host": "smtp.example.org", "sender": "astrago@example.org", "user": "…", "password": "…"},
 "policy": {"networks": ["10.1.0.0/16"], "allows_http": false}}
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from astrago_trainer.notify.addresses import Policy, check_target
from astrago_trainer.notify.deliverer import Deliverer
from astrago_trainer.notify.http import HttpSender
from astrago_trainer.notify.notices import Chat, Mail, Target, Webhook
from astrago_trainer.notify.outbox import Outbox
from astrago_trainer.notify.senders import Sender
from astrago_trainer.notify.smtp import MailServer, SmtpSender
from astrago_trainer.server.settings import BadSettings

EVERYBODY = "*"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Told(_Strict):
    namespace: str
    """Whose jobs; `*` for all."""
    target: Target


class MailSettings(_Strict):
    host: str
    sender: str
    port: int = Field(587, ge=1, le=65535)
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str = ""
    password: str = Field("", repr=False)


class PolicySettings(_Strict):
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()
    allows_http: bool = False


class Notifications(_Strict):
    """The file."""

    targets: tuple[Told, ...] = ()
    mail: MailSettings | None = None
    policy: PolicySettings = PolicySettings()

    def targets_of(self, namespace: str) -> Iterable[Webhook | Chat | Mail]:
        return [each.target for each in self.targets if each.namespace in (namespace, EVERYBODY)]

    def deliverer(self, outbox: Outbox, clock: Callable[[], float]) -> Deliverer:
        policy = Policy(self.policy.networks, self.policy.allows_http)
        http = HttpSender(policy)
        senders: dict[str, Sender] = {"webhook": http, "slack": http}
        if self.mail is not None:
            senders["mail"] = SmtpSender(MailServer(**self.mail.model_dump()))
        return Deliverer(outbox, senders, clock=clock)


def read_notifications(path: Path | None) -> Notifications:
    """Raises BadSettings that names places, and no value: addresses and passwords are secrets."""
    if path is None:
        return Notifications()
    try:
        found = Notifications.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadSettings(f"ASTRAGO_NOTIFY: {path}: {error.strerror}.") from error
    except ValidationError as error:
        where = "; ".join(
            f"{'.'.join(map(str, each['loc']))}: {each['msg']}"
            for each in error.errors(include_input=False, include_url=False, include_context=False)[
                :5
            ]
        )
        raise BadSettings(f"ASTRAGO_NOTIFY: {path}: {where}.") from None
    _check(found, path)
    return found


def _check(found: Notifications, path: Path) -> None:
    policy = Policy(found.policy.networks, found.policy.allows_http)
    problems: list[str] = []
    for index, told in enumerate(found.targets):
        problems += map(str, check_target(told.target, policy, f"targets[{index}].target"))
        if isinstance(told.target, Mail) and found.mail is None:
            problems.append(f"targets[{index}]: mail needs the server of mail, under 'mail'.")
    if problems:
        raise BadSettings(f"ASTRAGO_NOTIFY: {path}: {' '.join(problems[:5])}")
