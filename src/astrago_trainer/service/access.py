"""Tenants, members and tokens: verified in memory, changed in the database, known to other servers in a second.

A token is 256 random bits and shown once; what is kept is its hash, and a fast one, because there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.core.names import check_namespace, check_user_id, tenant_namespace
from astrago_trainer.core.namespace_rules import check_patterns, split_patterns
from astrago_trainer.service.clock import Clock
from astrago_trainer.service.errors import Conflict, NotFound
from astrago_trainer.service.identity import RANK, Identity, Role
from astrago_trainer.store import Store
from astrago_trainer.store import access as rows
from astrago_trainer.store.audit import AuditRow

PREFIX = "astrago_"
"""So that people and scanners of leaked secrets know what they found."""
SKEW_SECONDS = 60.0
"""A token works this long after its time: two clocks are never quite the same."""
MOST_TOKENS = 100
"""Of one user at a time."""
INVITATION_SECONDS = 14 * 86400.0
MOST_INVITATIONS = 100
"""Of one namespace at a time: each is a row, and may name anybody."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """What its owner is given, this once."""

    id: str
    secret: str
    expires_at: float | None


class Access:
    """Who may come in, and as what."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known = rows.Access([], [], [], [], [], -1)
        self._by_hash: Mapping[str, rows.Token] = {}
        self._by_id: Mapping[str, rows.Token] = {}
        self._users: Mapping[str, rows.User] = {}
        self._by_subject: Mapping[tuple[str, str], str] = {}
        self._identities: Mapping[str, Identity] = {}
        self._namespaces: frozenset[str] = frozenset()

    async def load(self, stamp: int | None = None) -> None:
        """Reads all of it, unless what is known is of this stamp."""
        if stamp is not None and stamp == self._known.stamp:
            return
        self._known = known = await self._store.read(rows.load_access)
        roles: dict[str, dict[str, Role]] = {}
        for member in known.members:
            roles.setdefault(member.user, {})[member.namespace] = Role(member.role)
        self._identities = {
            user.name: Identity(
                user.name,
                roles.get(user.name, {}),
                user.is_administrator,
                split_patterns(user.backend),
            )
            for user in known.users
        }
        self._namespaces = frozenset(each.namespace for each in known.tenants)
        self._by_hash = {token.hash: token for token in known.tokens if token.revoked_at is None}
        self._by_id = {token.id: token for token in self._by_hash.values()}
        self._users = {user.name: user for user in known.users}
        self._by_subject = {
            (user.issuer, user.subject): user.name for user in known.users if user.subject
        }

    @property
    def stamp(self) -> int:
        """Another one after each change."""
        return self._known.stamp

    def verify(self, secret: str) -> Identity | None:
        """Whose token this is; None for one that is unknown, revoked or too old, or made with such a one."""
        token = self._by_hash.get(_hash(secret))
        if token is None or not self._is_valid(token):
            return None
        identity = self._enabled(token.user)
        return None if identity is None else replace(identity, token=token.id)

    def _is_valid(self, token: rows.Token | None) -> bool:
        """Whether it opens something now: it and all tokens that it was made with."""
        now = self._clock.time()
        while token is not None:
            if token.expires_at is not None and now > token.expires_at + SKEW_SECONDS:
                return False
            if not token.parent:
                return True
            token = self._by_id.get(token.parent)
        return False

    def _enabled(self, user: str) -> Identity | None:
        row = self._users.get(user)
        return None if row is None or row.is_disabled else self._identities[user]

    async def of_issuer(
        self, issuer: str, subject: str, name: str, other_name: str
    ) -> Identity | None:
        """Somebody whom an issuer has verified; None for one who is disabled here.

        `name` is what this one is called here, `other_name` if that is taken: a user of the same name who came in
        with a token of ours, or by another issuer, is somebody else.
        """
        known = self._by_subject.get((issuer, subject))
        if known is not None:
            return self._enabled(known)
        row = self._users.get(name)
        if row is None:
            return Identity(name, verified=(issuer, subject))
        if row.issuer != rows.ANY_ISSUER or row.backend:
            return Identity(other_name, verified=(issuer, subject))
        if row.is_disabled:
            return None
        bound = row._replace(issuer=issuer, subject=subject)
        audit = self._audit(self._identities[name], "", "user.bind", name, issuer)
        await self._write(rows.AccessChange(audit, replace=(bound,)), "try again")
        return self._enabled(name)

    def find(self, user: str) -> Identity | None:
        """A user by name."""
        return self._identities.get(user)

    def users(self) -> list[tuple[rows.User, Identity]]:
        return [(row, self._identities[row.name]) for row in sorted(self._known.users)]

    def tenants(self) -> list[rows.Tenant]:
        return sorted(self._known.tenants)

    def has_tenant(self, namespace: str) -> bool:
        return namespace in self._namespaces

    def usable_by(self, identity: Identity) -> list[str]:
        """Tenants' namespaces in which somebody may run jobs."""
        return sorted(each for each in self._namespaces if identity.may(Role.MEMBER, each))

    def members(self, namespace: str) -> list[rows.Member]:
        self._tenant(namespace)
        return sorted(each for each in self._known.members if each.namespace == namespace)

    def tokens(self, user: str | None = None) -> list[rows.Token]:
        """Without their secrets, which nobody has."""
        return sorted(each for each in self._known.tokens if user is None or each.user == user)

    def check_free(self, namespace: str, user: str | None = None) -> None:
        """Raises Conflict when one of them is there."""
        if user is not None and (user in self._identities or self.has_tenant(namespace)):
            raise Conflict(_taken(user, namespace))
        if self.has_tenant(namespace):
            raise Conflict(f"the tenant {namespace!r} is there already.")

    async def sign_up(self, actor: Identity, user: str, title: str = "") -> Identity:
        """A user, the tenant of that user, and the right to run it; raises Conflict for a name that is taken."""
        namespace = tenant_namespace(user)
        now = self._clock.time()
        issuer, subject = actor.verified or ("", "")
        change = rows.AccessChange(
            self._audit(actor, namespace, "user.signup", user),
            new=(
                rows.Tenant(namespace, title[:200], now),
                rows.User(user, False, now, issuer=issuer, subject=subject),
                rows.Member(namespace, user, Role.ADMINISTRATOR.value),
            ),
        )
        await self._write(change, _taken(user, namespace).rstrip("."))
        return self._identities[user]

    async def create_user(
        self, actor: Identity, user: str, *, is_administrator: bool = False
    ) -> Identity:
        now = self._clock.time()
        row = rows.User(user, is_administrator, now, issuer=rows.ANY_ISSUER)
        change = rows.AccessChange(self._audit(actor, "", "user.create", user), new=(row,))
        await self._write(change, f"the user {user!r} is there already")
        return self._identities[user]

    async def set_backend(self, actor: Identity, user: str, namespaces: Sequence[str]) -> Identity:
        """A user that acts for others in these namespaces; made if it is new, changed if it is one already.

        Raises Conflict for a person: who has a role somewhere, or administers the installation.
        """
        problems = check_user_id(user) + check_patterns(namespaces, path="namespaces")
        if not namespaces:
            message = "must name at least one namespace or pattern."
            problems.append(Problem("namespaces", "FieldValueRequired", message, "Name user-*."))
        if problems:
            raise InvalidRequest(problems)
        known = self._identities.get(user)
        if known is not None and not known.backend:
            raise Conflict(
                f"{user!r} is a user already, and no backend. Take another name: a backend is no person."
            )
        patterns = ",".join(namespaces)
        before = next((each for each in self._known.users if each.name == user), None)
        row = rows.User(user, False, before.created_at if before else self._clock.time(), patterns)
        audit = self._audit(actor, "", "backend.set", user, patterns)
        await self._write(rows.AccessChange(audit, put=(row,)), "")
        return self._identities[user]

    async def remove_backend(self, actor: Identity, user: str) -> None:
        """Takes away the backend and its tokens; its jobs stay."""
        known = self._identities.get(user)
        if known is None or not known.backend:
            raise NotFound(f"there is no backend {user!r}.")
        row = rows.User(user, False, 0.0)
        audit = self._audit(actor, "", "backend.remove", user)
        await self._write(rows.AccessChange(audit, remove=(row,)), f"the backend {user!r} is gone")

    async def create_tenant(
        self, actor: Identity, namespace: str, title: str = "", *, is_adopted: bool = False
    ) -> rows.Tenant:
        if problems := check_namespace(namespace):
            raise InvalidRequest(problems)
        row = rows.Tenant(namespace, title[:200], self._clock.time(), is_adopted)
        action = "tenant.adopt" if is_adopted else "tenant.create"
        change = rows.AccessChange(self._audit(actor, namespace, action, namespace), new=(row,))
        await self._write(change, f"the tenant {namespace!r} is there already")
        return row

    async def set_member(self, actor: Identity, namespace: str, user: str, role: Role) -> None:
        self._tenant(namespace)
        self._user(user)
        change = rows.AccessChange(
            self._audit(actor, namespace, "member.set", user, role.value),
            put=(rows.Member(namespace, user, role.value),),
        )
        await self._write(change, "")

    def invitations(self, namespace: str) -> list[rows.Invitation]:
        """Of a namespace that have not expired, whether or not there are such users."""
        self._tenant(namespace)
        return sorted(each for each in self._open_invitations() if each.namespace == namespace)

    def invitations_of(self, user: str) -> list[rows.Invitation]:
        """Those that a user can answer. Somebody who took the name later was not invited."""
        row = self._users.get(user)
        if row is None:
            return []
        return sorted(
            each
            for each in self._open_invitations()
            if each.user == user and row.created_at <= each.created_at
        )

    async def invite(
        self, actor: Identity, namespace: str, user: str, role: Role
    ) -> rows.Invitation:
        """Asks a user to become a member; an earlier invitation is replaced. It tells nothing about users.

        Raises Conflict for a member, and where too many are open.
        """
        self._tenant(namespace)
        if problems := check_user_id(user, path="user"):
            raise InvalidRequest(problems)
        if any(each.user == user for each in self.members(namespace)):
            raise Conflict(
                f"{user!r} is a member of {namespace!r} already. Change the role instead."
            )
        others = [each for each in self.invitations(namespace) if each.user != user]
        if len(others) >= MOST_INVITATIONS:
            raise Conflict(
                f"{namespace!r} has {len(others)} open invitations, the most there may be. Withdraw some of them."
            )
        now = self._clock.time()
        row = rows.Invitation(
            namespace, user, role.value, actor.name, now, now + INVITATION_SECONDS
        )
        audit = self._audit(actor, namespace, "invitation.create", user, role.value)
        await self._write(rows.AccessChange(audit, put=(row,)), "try again")
        return row

    async def withdraw(self, actor: Identity, namespace: str, user: str) -> None:
        change = rows.AccessChange(
            self._audit(actor, namespace, "invitation.withdraw", user),
            remove=(rows.Invitation(namespace, user, "", "", 0.0, 0.0),),
        )
        if not await self._store.write(rows.change_access, change):
            raise NotFound(f"there is no invitation of {user!r} to {namespace!r}.")
        await self.load()

    async def accept(self, actor: Identity, namespace: str) -> rows.Member:
        """The actor becomes a member, and keeps a role that is higher already."""
        invitation = self._own_invitation(actor, namespace)
        held = self._identities[actor.name].roles.get(namespace)
        role = Role(invitation.role)
        if held is not None and RANK[held] > RANK[role]:
            role = held
        member = rows.Member(namespace, actor.name, role.value)
        audit = self._audit(actor, namespace, "invitation.accept", actor.name, role.value)
        change = rows.AccessChange(audit, put=(member,), take=(invitation,))
        await self._write(change, "the invitation was changed meanwhile; read it again")
        return member

    async def decline(self, actor: Identity, namespace: str) -> None:
        invitation = self._own_invitation(actor, namespace)
        audit = self._audit(actor, namespace, "invitation.decline", actor.name)
        change = rows.AccessChange(audit, take=(invitation,))
        await self._write(change, "the invitation was changed meanwhile; read it again")

    def _own_invitation(self, actor: Identity, namespace: str) -> rows.Invitation:
        for each in self.invitations_of(actor.name):
            if each.namespace == namespace:
                return each
        raise NotFound(f"there is no invitation of {actor.name!r} to {namespace!r}.")

    def _open_invitations(self) -> list[rows.Invitation]:
        now = self._clock.time()
        return [each for each in self._known.invitations if each.expires_at > now]

    async def leave(self, actor: Identity, namespace: str) -> None:
        """The actor is a member no longer; raises Conflict for the only administrator of the namespace."""
        roles = {each.user: each.role for each in self.members(namespace)}
        owners = [user for user, role in roles.items() if role == Role.ADMINISTRATOR]
        if owners == [actor.name]:
            raise Conflict(
                f"{actor.name!r} is the only administrator of {namespace!r}. Make another member one first."
            )
        await self.remove_member(actor, namespace, actor.name)

    async def change_role(self, actor: Identity, namespace: str, user: str, role: Role) -> None:
        """Of a member. Somebody else is invited: the answer is the same whether or not there is such a user."""
        if all(each.user != user for each in self.members(namespace)):
            raise NotFound(
                f"{user!r} is no member of {namespace!r}. Invite them: POST /api/v1/tenants/{namespace}/invitations."
            )
        await self.set_member(actor, namespace, user, role)

    async def remove_member(self, actor: Identity, namespace: str, user: str) -> None:
        change = rows.AccessChange(
            self._audit(actor, namespace, "member.remove", user),
            remove=(rows.Member(namespace, user, ""),),
        )
        if not await self._store.write(rows.change_access, change):
            raise NotFound(f"{user!r} is no member of {namespace!r}.")
        await self.load()

    async def create_token(
        self, actor: Identity, user: str, label: str = "", *, seconds: float | None = None
    ) -> IssuedToken:
        """Its secret is in the answer and nowhere else; `seconds` is how long it works, None for ever."""
        self._user(user)
        own = [each for each in self._by_id.values() if each.user == user]
        if len(own) >= MOST_TOKENS:
            raise Conflict(
                f"{user!r} has {len(own)} tokens, the most there may be. Revoke some of them."
            )
        secret, id_ = f"{PREFIX}{secrets.token_urlsafe(32)}", secrets.token_hex(8)
        now = self._clock.time()
        expires_at = None if seconds is None else now + seconds
        parent = self._by_id.get(actor.token) if actor.name == user else None
        if parent is not None and parent.expires_at is not None:
            expires_at = min(parent.expires_at, expires_at or parent.expires_at)
        row = rows.Token(
            id_,
            user,
            label[:200],
            _hash(secret),
            now,
            expires_at,
            None,
            "" if parent is None else parent.id,
        )
        change = rows.AccessChange(
            self._audit(actor, "", "token.create", user, id_),
            new=(row,),
            replace=self._kept_from_issuers(actor, user),
        )
        await self._write(change, "try again")
        return IssuedToken(id_, secret, expires_at)

    def _kept_from_issuers(self, actor: Identity, user: str) -> tuple[rows.User, ...]:
        """A user who is given a first token signs in with tokens from then on, and not through an issuer."""
        row = self._users[user]
        is_first = row.issuer == rows.ANY_ISSUER and not self.tokens(user) and actor.name != user
        return (row._replace(issuer=""),) if is_first else ()

    async def revoke_all(self, actor: Identity, user: str) -> int:
        """All tokens of a user; says how many there were."""
        self._user(user)
        ids = tuple(each.id for each in self._by_id.values() if each.user == user)
        if ids:
            audit = self._audit(actor, "", "token.revoke-all", user, str(len(ids)))
            await self._write(rows.AccessChange(audit, revoke=ids), "try again")
        return len(ids)

    async def set_disabled(self, actor: Identity, user: str, *, is_disabled: bool) -> None:
        """Who is disabled opens nothing; jobs, roles and tokens stay for the day of the return."""
        self._user(user)
        if is_disabled:
            self._check_not_last(user)
        row = self._users[user]._replace(is_disabled=is_disabled)
        action = "user.disable" if is_disabled else "user.enable"
        audit = self._audit(actor, "", action, user)
        await self._write(rows.AccessChange(audit, replace=(row,)), f"the user {user!r} is gone")

    async def delete_user(self, actor: Identity, user: str) -> None:
        """With roles and tokens; jobs and namespaces stay, so that a new user of the same name does not get them."""
        self._user(user)
        self._check_not_last(user)
        change = rows.AccessChange(
            self._audit(actor, "", "user.delete", user), remove=(self._users[user],)
        )
        await self._write(change, f"the user {user!r} is gone")

    def _check_not_last(self, user: str) -> None:
        others = [
            row
            for row in self._known.users
            if row.is_administrator and not row.is_disabled and row.name != user
        ]
        if self._users[user].is_administrator and not others:
            raise Conflict(f"{user!r} is the only administrator; make another one first.")

    async def revoke_token(self, actor: Identity, id_: str) -> None:
        """It opens nothing any more when this returns; on other servers a second later."""
        change = rows.AccessChange(self._audit(actor, "", "token.revoke", id_), revoke=(id_,))
        if not await self._store.write(rows.change_access, change):
            raise NotFound(f"there is no token {id_!r}, or it is revoked already.")
        await self.load()

    async def _write(self, change: rows.AccessChange, refusal: str) -> None:
        if not await self._store.write(rows.change_access, change):
            raise Conflict(f"{refusal}.")
        await self.load()

    def _tenant(self, namespace: str) -> None:
        if not self.has_tenant(namespace):
            raise NotFound(f"there is no tenant {namespace!r}.")

    def _user(self, user: str) -> None:
        if user not in self._identities:
            raise NotFound(f"there is no user {user!r}.")

    def _audit(
        self, actor: Identity, namespace: str, action: str, object_: str, detail: str = ""
    ) -> AuditRow:
        return AuditRow(
            self._clock.time(),
            actor.name,
            namespace,
            action,
            object_[:253],
            detail=detail,
            request_id=actor.request_id,
        )


def _taken(user: str, namespace: str) -> str:
    return f"the user {user!r} or the namespace {namespace!r} is there already."


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
