"""Invitations: nobody becomes a member without wanting to, nobody learns who is a user, and members may leave."""

from __future__ import annotations

import asyncio

import pytest

from astrago_trainer.service.access import INVITATION_SECONDS, MOST_INVITATIONS
from astrago_trainer.service.clock import Clock
from astrago_trainer.service.identity import Role
from tests.server.serving import BOSS, a_site, bearer

TEAM = "/api/v1/tenants/team"
MINE = "/api/v1/invitations"
AUTH = {"auth": "tokens", "local_users": "trusted"}


def run(story):
    return asyncio.run(story())


class SetClock(Clock):
    """Set by the test."""

    now = 1_800_000_000.0

    def time(self) -> float:
        return self.now


async def people(site):
    """An owner of the namespace `team`, and bob, who has nothing to do with it."""
    ann = bearer(await site.token("ann", team=Role.ADMINISTRATOR))
    bob = bearer(await site.token("bob"))
    return ann, bob


async def invite(site, headers, user, role="member"):
    body = {"user": user, "role": role}
    return await site.client.post(f"{TEAM}/invitations", json=body, headers=headers)


def test_an_invitation_is_accepted_and_its_member_leaves(tmp_path):
    async def story():
        async with a_site(tmp_path, **AUTH) as site:
            ask = site.client.request
            ann, bob = await people(site)
            made = await invite(site, ann, "bob", "viewer")
            assert made.status_code == 202, made.text
            assert (made.json()["user"], made.json()["invited_by"]) == ("bob", "ann")
            # Nothing has changed for him but that he can answer.
            who = (await ask("GET", "/api/v1/whoami", headers=bob)).json()
            assert who["roles"] == {}
            assert (await ask("GET", f"{TEAM}/members", headers=bob)).status_code == 404
            assert (await ask("GET", MINE, headers=bob)).json()["items"] == [made.json()]
            assert (await ask("GET", MINE, headers=ann)).json()["items"] == []
            accepted = await ask("POST", f"{MINE}/team:accept", headers=bob)
            assert accepted.json() == {"namespace": "team", "user": "bob", "role": "viewer"}
            who = (await ask("GET", "/api/v1/whoami", headers=bob)).json()
            assert who["roles"] == {"team": "viewer"}
            for path in (MINE, f"{TEAM}/invitations"):
                left = await ask("GET", path, headers=bob if path == MINE else ann)
                assert left.json()["items"] == []
            assert (await ask("POST", f"{MINE}/team:accept", headers=bob)).status_code == 404
            assert (await invite(site, ann, "bob")).status_code == 409
            # An owner changes the role of a member, and the member leaves.
            role = await ask("PUT", f"{TEAM}/members/bob", json={"role": "member"}, headers=ann)
            assert role.status_code == 200
            assert (await ask("POST", f"{TEAM}:leave", headers=bob)).status_code == 204
            assert (await ask("POST", f"{TEAM}:leave", headers=bob)).status_code == 404
            trail = await ask("GET", "/api/v1/audit?namespace=team", headers=ann)
            rows = [
                (each["actor"], each["action"], each["object"]) for each in trail.json()["items"]
            ]
            assert rows[:4] == [
                ("bob", "member.remove", "bob"),
                ("ann", "member.set", "bob"),
                ("bob", "invitation.accept", "bob"),
                ("ann", "invitation.create", "bob"),
            ]

    run(story)


def test_nobody_learns_who_is_a_user(tmp_path):
    async def story():
        clock = SetClock()
        async with a_site(tmp_path, clock=clock, **AUTH) as site:
            ann, _ = await people(site)

            async def all_answers(user):
                told = [
                    await invite(site, ann, user),
                    await invite(site, ann, user, "viewer"),
                    await site.client.get(f"{TEAM}/invitations", headers=ann),
                    await site.client.delete(f"{TEAM}/invitations/{user}", headers=ann),
                    await site.client.delete(f"{TEAM}/invitations/{user}", headers=ann),
                    await site.client.put(
                        f"{TEAM}/members/{user}", json={"role": "member"}, headers=ann
                    ),
                    await site.client.delete(f"{TEAM}/members/{user}", headers=ann),
                ]
                texts = []
                for each in told:
                    found = each.json() if each.content else {}
                    found.pop("request_id", None)
                    texts.append((each.status_code, str(found).replace(user, "USER")))
                return texts

            known, unknown = await all_answers("bob"), await all_answers("nobody")
            assert known == unknown
            assert [status for status, _ in known] == [202, 202, 200, 204, 404, 404, 404]
            assert site.service.access.find("bob").roles == {}

    run(story)


def test_who_takes_the_name_later_was_not_invited(tmp_path):
    async def story():
        clock = SetClock()
        async with a_site(tmp_path, clock=clock, **AUTH) as site:
            ann, _ = await people(site)
            assert (await invite(site, ann, "carol")).status_code == 202
            clock.now += 60
            carol = bearer(await site.token("carol"))
            assert (await site.client.get(MINE, headers=carol)).json()["items"] == []
            refused = await site.client.post(f"{MINE}/team:accept", headers=carol)
            assert refused.status_code == 404
            assert (await invite(site, ann, "carol")).status_code == 202
            assert len((await site.client.get(MINE, headers=carol)).json()["items"]) == 1

    run(story)


@pytest.mark.parametrize("how", ["declined", "withdrawn", "expired"])
def test_an_invitation_that_is_over_lets_nobody_in(tmp_path, how):
    async def story():
        clock = SetClock()
        async with a_site(tmp_path, clock=clock, **AUTH) as site:
            ann, bob = await people(site)
            await invite(site, ann, "bob")
            if how == "declined":
                over = await site.client.post(f"{MINE}/team:decline", headers=bob)
                assert over.status_code == 204
            elif how == "withdrawn":
                over = await site.client.delete(f"{TEAM}/invitations/bob", headers=ann)
                assert over.status_code == 204
            else:
                clock.now += INVITATION_SECONDS + 1
            for path, headers in ((MINE, bob), (f"{TEAM}/invitations", ann)):
                assert (await site.client.get(path, headers=headers)).json()["items"] == []
            refused = await site.client.post(f"{MINE}/team:accept", headers=bob)
            assert refused.status_code == 404
            assert site.service.access.find("bob").roles == {}

    run(story)


def test_administrators_of_the_installation_add_members_directly(tmp_path):
    async def story():
        async with a_site(tmp_path, **AUTH) as site:
            ann, bob = await people(site)
            boss = bearer((tmp_path / "admin-token").read_text().strip())
            await invite(site, ann, "bob", "viewer")
            set_ = await site.client.put(
                f"{TEAM}/members/bob", json={"role": "administrator"}, headers=boss
            )
            assert set_.status_code == 200
            accepted = await site.client.post(f"{MINE}/team:accept", headers=bob)
            assert accepted.json()["role"] == "administrator", "an answer takes nothing away"

    run(story)


def test_the_only_owner_cannot_leave(tmp_path):
    async def story():
        async with a_site(tmp_path, **AUTH) as site:
            ann, bob = await people(site)
            await site.service.access.set_member(BOSS, "team", "bob", Role.MEMBER)
            alone = await site.client.post(f"{TEAM}:leave", headers=ann)
            assert alone.status_code == 409
            assert "only administrator of 'team'" in alone.json()["detail"]
            await site.service.access.set_member(BOSS, "team", "bob", Role.ADMINISTRATOR)
            assert (await site.client.post(f"{TEAM}:leave", headers=ann)).status_code == 204
            assert (await site.client.post(f"{TEAM}:leave", headers=bob)).status_code == 409

    run(story)


def test_bad_invitations_are_refused(tmp_path):
    async def story():
        async with a_site(tmp_path, **AUTH) as site:
            ann, bob = await people(site)
            assert (await invite(site, ann, "Not A Name")).status_code == 422
            assert (await invite(site, ann, "bob", "king")).status_code == 422
            assert (await invite(site, bob, "ann")).status_code == 404
            for number in range(MOST_INVITATIONS):
                await site.service.access.invite(BOSS, "team", f"user{number}", Role.VIEWER)
            more = await invite(site, ann, "bob")
            assert (more.status_code, "Withdraw some" in more.json()["detail"]) == (409, True)
            assert (await invite(site, ann, "user7")).status_code == 202, "again"

    run(story)


def test_an_invitation_that_changed_at_another_server_is_not_accepted_as_it_was(tmp_path):
    async def story():
        async with a_site(tmp_path, **AUTH) as site:
            ann, bob = await people(site)
            access = site.service.access
            await invite(site, ann, "bob", "administrator")
            before = access._known
            await invite(site, ann, "bob", "viewer")
            access._known = before  # as a server that has not heard of it yet
            refused = await site.client.post(f"{MINE}/team:accept", headers=bob)
            assert refused.status_code == 409, refused.text
            await access.load()
            assert access.find("bob").roles == {}

    run(story)
