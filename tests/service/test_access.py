"""Tenants, members and tokens in the service."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.service import access as access_module
from astrago_trainer.service.errors import Conflict, NotFound
from astrago_trainer.service.identity import Identity, Role
from tests.service.jobs import SetClock, serving

ROOT = Identity("root", is_administrator=True)


def test_sign_up_makes_a_user_and_the_namespace_of_that_user(tmp_path):
    async def scenario():
        async with serving(tmp_path) as service:
            identity = await service.access.sign_up(
                replace(ROOT, request_id="r1"), "user123", "Ms 123"
            )
            with pytest.raises(Conflict, match="the user 'user123' or the namespace 'user-123'"):
                await service.access.sign_up(ROOT, "user123")
            with pytest.raises(InvalidRequest, match="reserved"):
                await service.access.sign_up(ROOT, "kube-system")
            return identity, service.access.tenants(), await service.audit()

    identity, tenants, audit = asyncio.run(scenario())

    assert identity == Identity("user123", {"user-123": Role.ADMINISTRATOR})
    assert [(tenant.namespace, tenant.title) for tenant in tenants] == [("user-123", "Ms 123")]
    assert [(row.action, row.request_id) for _, row in audit] == [("user.signup", "r1")]


@pytest.mark.parametrize(
    ("held", "asked", "may"),
    [
        (Role.VIEWER, Role.VIEWER, True),
        (Role.VIEWER, Role.MEMBER, False),
        (Role.MEMBER, Role.VIEWER, True),
        (Role.MEMBER, Role.ADMINISTRATOR, False),
        (Role.ADMINISTRATOR, Role.MEMBER, True),
    ],
)
def test_a_role_holds_in_its_tenant_only(held, asked, may):
    ann = Identity("ann", {"team": held})

    assert ann.may(asked, "team") is may
    assert not ann.may(asked, "other")
    assert ROOT.may(asked, "other")


def test_a_token_opens_until_it_is_revoked_and_is_nowhere_in_the_database(tmp_path):
    async def scenario():
        async with serving(tmp_path) as service:
            access = service.access
            ann = await access.sign_up(ROOT, "ann")
            issued = await access.create_token(ann, "ann", "laptop")
            before = access.verify(issued.secret)
            listed = access.tokens("ann")
            await access.revoke_token(ann, issued.id)
            with pytest.raises(NotFound, match="revoked already"):
                await access.revoke_token(ann, issued.id)
            return issued, before, access.verify(issued.secret), listed

    issued, before, after, listed = asyncio.run(scenario())

    assert replace(before, token="") == Identity("ann", {"ann": Role.ADMINISTRATOR})
    assert after is None
    assert issued.secret.startswith("astrago_")
    assert len(issued.secret) > 45
    assert issued.secret not in str(listed)
    for file in tmp_path.glob("astrago.db*"):
        assert issued.secret.encode() not in file.read_bytes()


def test_a_token_ends_with_its_time_give_or_take_a_minute(tmp_path):
    clock = SetClock()

    async def scenario():
        async with serving(tmp_path, clock=clock.clock) as service:
            await service.access.sign_up(ROOT, "ann")
            issued = await service.access.create_token(ROOT, "ann", seconds=100)
            found = []
            for seconds in (100, 59, 2):
                clock.pass_(seconds)
                found.append(service.access.verify(issued.secret) is not None)
            return found

    assert asyncio.run(scenario()) == [True, True, False]


@pytest.mark.parametrize("secret", ["", "nothing", "astrago_", "\ud800", "x" * 100_000, "Ünïcode"])
def test_what_is_no_token_opens_nothing(tmp_path, secret):
    async def scenario():
        async with serving(tmp_path) as service:
            await service.access.sign_up(ROOT, "ann")
            await service.access.create_token(ROOT, "ann")
            return service.access.verify(secret)

    assert asyncio.run(scenario()) is None


def test_members_come_and_go(tmp_path):
    async def scenario():
        async with serving(tmp_path) as service:
            access = service.access
            await access.create_tenant(ROOT, "team", "The team")
            await access.create_user(ROOT, "bob")
            issued = await access.create_token(ROOT, "bob")
            await access.set_member(ROOT, "team", "bob", Role.VIEWER)
            await access.set_member(ROOT, "team", "bob", Role.MEMBER)
            roles = [access.verify(issued.secret).roles]
            await access.remove_member(ROOT, "team", "bob")
            roles.append(access.verify(issued.secret).roles)
            for refused in (
                access.remove_member(ROOT, "team", "bob"),
                access.set_member(ROOT, "team", "nobody", Role.VIEWER),
                access.set_member(ROOT, "nowhere", "bob", Role.VIEWER),
                access.create_token(ROOT, "nobody"),
            ):
                with pytest.raises(NotFound):
                    await refused
            with pytest.raises(InvalidRequest):
                await access.create_tenant(ROOT, "Not A Name")
            return roles, [row.action for _, row in await service.audit()]

    roles, actions = asyncio.run(scenario())

    assert roles == [{"team": Role.MEMBER}, {}]
    assert actions == [
        "member.remove", "member.set", "member.set", "token.create", "user.create", "tenant.create",
    ]  # fmt: skip


def test_what_was_decided_is_known_after_a_new_start(tmp_path):
    async def first():
        async with serving(tmp_path) as service:
            await service.access.sign_up(ROOT, "ann")
            kept = await service.access.create_token(ROOT, "ann")
            revoked = await service.access.create_token(ROOT, "ann")
            await service.access.revoke_token(ROOT, revoked.id)
            return kept.secret, revoked.secret

    async def second(secrets):
        async with serving(tmp_path) as service:
            return [service.access.verify(secret) is not None for secret in secrets]

    assert asyncio.run(second(asyncio.run(first()))) == [True, False]


def test_a_token_never_outlives_the_one_it_was_made_with(tmp_path):
    async def scenario():
        clock = SetClock()
        async with serving(tmp_path, clock=clock.clock) as service:
            access = service.access
            await access.sign_up(ROOT, "ann")
            short = await access.create_token(ROOT, "ann", seconds=3600)
            ann = access.verify(short.secret)
            child = await access.create_token(ann, "ann", seconds=10 * 3600)
            endless = await access.create_token(access.verify(child.secret), "ann")
            assert (child.expires_at, endless.expires_at) == (short.expires_at, short.expires_at)
            other = await access.create_token(
                ROOT, "ann"
            )  # of the administrator, not of that token
            grandchild = await access.create_token(access.verify(other.secret), "ann")
            await access.revoke_token(ROOT, short.id)
            assert access.verify(child.secret) is None
            assert access.verify(endless.secret) is None
            assert access.verify(grandchild.secret) is not None
            assert await access.revoke_all(ROOT, "ann") == 4
            assert access.verify(grandchild.secret) is None

    asyncio.run(scenario())


def test_the_tokens_of_a_user_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(access_module, "MOST_TOKENS", 3)

    async def scenario():
        async with serving(tmp_path) as service:
            access = service.access
            await access.sign_up(ROOT, "ann")
            tokens = [await access.create_token(ROOT, "ann") for _ in range(3)]
            with pytest.raises(Conflict, match="'ann' has 3 tokens"):
                await access.create_token(ROOT, "ann")
            await access.revoke_token(ROOT, tokens[0].id)
            await access.create_token(ROOT, "ann")

    asyncio.run(scenario())


def test_users_are_disabled_enabled_and_deleted_but_never_the_last_administrator(tmp_path):
    async def scenario():
        async with serving(tmp_path) as service:
            access = service.access
            await access.sign_up(ROOT, "ann")
            token = await access.create_token(ROOT, "ann")
            await access.set_disabled(ROOT, "ann", is_disabled=True)
            assert access.verify(token.secret) is None
            await access.set_disabled(ROOT, "ann", is_disabled=False)
            assert access.verify(token.secret).name == "ann"
            await access.delete_user(ROOT, "ann")
            assert access.verify(token.secret) is None
            assert access.members("user-ann" if access.has_tenant("user-ann") else "ann") == []
            with pytest.raises(Conflict):  # the namespace of the old one is there
                await access.sign_up(ROOT, "ann")
            with pytest.raises(NotFound, match="there is no user 'ann'"):
                await access.delete_user(ROOT, "ann")

            await access.create_user(ROOT, "boss", is_administrator=True)
            for change in (
                access.delete_user(ROOT, "boss"),
                access.set_disabled(ROOT, "boss", is_disabled=True),
            ):
                with pytest.raises(Conflict, match="the only administrator"):
                    await change
            await access.create_user(ROOT, "second", is_administrator=True)
            await access.delete_user(ROOT, "boss")

    asyncio.run(scenario())
