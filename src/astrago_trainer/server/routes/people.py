"""Tenants, members, users, tokens, and the audit of it all."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.core.names import check_user_id, tenant_namespace
from astrago_trainer.server import bodies, openapi, rules, schemas
from astrago_trainer.server.answers import acting, json_answer, said
from astrago_trainer.server.context import Caller, Context, Shared
from astrago_trainer.server.problems import forbidden
from astrago_trainer.service.access import IssuedToken
from astrago_trainer.service.errors import NotFound
from astrago_trainer.service.identity import Identity, Role
from astrago_trainer.service.view import (
    invitation_to_view,
    tenant_to_view,
    time_to_text,
    token_to_view,
    user_to_view,
)
from astrago_trainer.store.audit import AuditRow

router = APIRouter(prefix="/api/v1", tags=["people"])

_ANYBODY = Identity("(sign-up)")

Id = Annotated[str, Path(max_length=64)]
User = Annotated[str, Path(max_length=200)]


@router.get("/sign-in", responses={200: said(schemas.SignIn)}, operation_id="howToSignIn")
async def how_to_sign_in(shared: Shared) -> Response:
    """What a page needs to know before anybody is signed in."""
    settings = shared.settings
    oidc = (
        {"issuer": settings.oidc_issuer, "client_id": settings.oidc_audience}
        if settings.oidc_issuer
        else None
    )
    return json_answer({"sign_up": settings.signup, "oidc": oidc})


@router.post(
    "/signup",
    status_code=201,
    responses={201: said(schemas.SignedUp)},
    openapi_extra=openapi.body("SignUp", {"user": "user123"}),
    operation_id="signUp",
)
async def sign_up(request: Request, shared: Shared) -> Response:
    """A user, a namespace of their own, and a token: M5. Where sign-up is enabled."""
    caller: Identity | None = request.scope["identity"]
    is_open = shared.settings.signup == "open"
    if not is_open and (caller is None or not caller.is_administrator):
        raise forbidden("sign-up is not enabled here; ask an administrator.")
    body = await bodies.read_model(request, schemas.SignUp, may_be_empty=True)
    # Somebody whom the issuer of OIDC has named signs up under that name.
    is_named = caller is not None and not caller.is_administrator
    user = body.user or (caller.name if caller is not None else "")
    if is_named and caller is not None:
        bodies.check_user(user, caller, "user")
    if problems := check_user_id(user):
        raise InvalidRequest(problems)
    shared.sign_ups.take()
    actor = acting(caller or _ANYBODY, request)
    await shared.service.tenancy.sign_up(actor, user, body.title)
    token = await shared.service.access.create_token(actor, user, "sign-up")
    answer = {"user": user, "namespace": tenant_namespace(user), "token": _secret(token)}
    return json_answer(answer, 201)


@router.get(
    "/tokens",
    responses={200: said(schemas.TokenList, "Without secrets.")},
    operation_id="listTokens",
)
async def tokens(
    shared: Shared,
    caller: Caller,
    user: Annotated[
        str, Query(max_length=200, description="Default oneself; administrators may name others.")
    ] = "",
) -> Response:
    """Tokens of a user."""
    bodies.check_user(user or caller.name, caller, "user")
    found = shared.service.access.tokens(user or caller.name)
    return json_answer({"items": [token_to_view(each) for each in found]})


@router.post(
    "/tokens",
    status_code=201,
    responses={201: said(schemas.NewToken, "With its secret, this once.")},
    openapi_extra=openapi.body("TokenRequest", {"label": "laptop", "seconds": 86400}),
    operation_id="createToken",
)
async def create_token(request: Request, shared: Shared, caller: Caller) -> Response:
    """A new token."""
    body = await bodies.read_model(request, schemas.TokenRequest)
    user = body.user or caller.name
    bodies.check_user(user, caller, "user")
    token = await shared.service.access.create_token(
        acting(caller, request), user, body.label, seconds=body.seconds
    )
    return json_answer({**_secret(token), "user": user, "label": body.label}, 201)


@router.delete("/tokens/{id}", status_code=204, response_class=Response, operation_id="revokeToken")
async def revoke_token(id: Id, request: Request, shared: Shared, caller: Caller) -> Response:
    """It opens nothing any more."""
    owners = {each.id: each.user for each in shared.service.access.tokens()}
    if owners.get(id) != caller.name and not caller.is_administrator:
        raise NotFound(f"there is no token {id!r}, or it is revoked already.")
    await shared.service.access.revoke_token(acting(caller, request), id)
    return Response(status_code=204)


@router.get(
    "/tenants",
    responses={200: said(schemas.TenantList, "Those of the caller.")},
    operation_id="listTenants",
)
async def tenants(shared: Shared, caller: Caller) -> Response:
    """Namespaces that the caller may look into."""
    found = [
        tenant_to_view(each)
        for each in shared.service.access.tenants()
        if caller.may(Role.VIEWER, each.namespace)
    ]
    return json_answer({"items": found, "quota": _quota(shared)})


def _quota(shared: Context) -> dict[str, str]:
    """One for all, and on a cluster alone."""
    if shared.settings.engine != "kubernetes":
        return {}
    from astrago_trainer.server.cluster import read_tenants

    return read_tenants(shared.settings.tenants).quota


@router.post(
    "/tenants",
    status_code=201,
    responses={201: said(schemas.TenantBody, "The new tenant.")},
    openapi_extra=openapi.body("TenantRequest", {"namespace": "team-a", "title": "Team A"}),
    operation_id="createTenant",
)
async def create_tenant(request: Request, shared: Shared, caller: Caller) -> Response:
    """A namespace for several people."""
    body = await bodies.read_model(request, schemas.TenantRequest)
    made = await shared.service.tenancy.create_tenant(
        acting(caller, request), body.namespace, body.title
    )
    return json_answer(tenant_to_view(made), 201)


_MEMBERS = "/tenants/{namespace}/members"


@router.get(
    _MEMBERS, responses={200: said(schemas.MemberList, "All of them.")}, operation_id="listMembers"
)
async def members(namespace: str, shared: Shared) -> Response:
    """Who may do what in a namespace."""
    found = shared.service.access.members(namespace)
    return json_answer({"items": [each._asdict() for each in found]})


@router.put(
    _MEMBERS + "/{user}",
    responses={200: said(schemas.MemberBody, "As it is now.")},
    openapi_extra=openapi.body("MemberRequest", {"role": "member"}),
    operation_id="setMember",
)
async def set_member(
    namespace: str, user: User, request: Request, shared: Shared, caller: Caller
) -> Response:
    """Change the role of a member; administrators of the installation also add members. Others are invited."""
    body = await bodies.read_model(request, schemas.MemberRequest)
    role = Role(body.role)
    access = shared.service.access
    change = access.set_member if caller.is_administrator else access.change_role
    await change(acting(caller, request), namespace, user, role)
    return json_answer({"namespace": namespace, "user": user, "role": role.value})


@router.delete(
    _MEMBERS + "/{user}", status_code=204, response_class=Response, operation_id="removeMember"
)
async def remove_member(
    namespace: str, user: User, request: Request, shared: Shared, caller: Caller
) -> Response:
    """Remove a member from the namespace."""
    await shared.service.access.remove_member(acting(caller, request), namespace, user)
    return Response(status_code=204)


@router.post(
    "/tenants/{namespace}:leave",
    status_code=204,
    response_class=Response,
    operation_id="leaveTenant",
)
async def leave(namespace: str, request: Request, shared: Shared, caller: Caller) -> Response:
    """Leave a namespace; its only administrator cannot (409)."""
    await shared.service.access.leave(acting(caller, request), namespace)
    return Response(status_code=204)


_INVITATIONS = "/tenants/{namespace}/invitations"


@router.get(
    _INVITATIONS,
    responses={200: said(schemas.InvitationList, "The open invitations.")},
    operation_id="listInvitations",
)
async def invitations(namespace: str, shared: Shared) -> Response:
    """List the open invitations to a namespace."""
    found = shared.service.access.invitations(namespace)
    return json_answer({"items": [invitation_to_view(each) for each in found]})


@router.post(
    _INVITATIONS,
    status_code=202,
    responses={202: said(schemas.InvitationBody, "The same whether or not there is such a user.")},
    openapi_extra=openapi.body("InvitationRequest", {"user": "user123", "role": "member"}),
    operation_id="inviteMember",
)
async def invite(namespace: str, request: Request, shared: Shared, caller: Caller) -> Response:
    """Invite a user to a namespace: they become a member when they accept, within 14 days."""
    body = await bodies.read_model(request, schemas.InvitationRequest)
    made = await shared.service.access.invite(
        acting(caller, request), namespace, body.user, Role(body.role)
    )
    return json_answer(invitation_to_view(made), 202)


@router.delete(
    _INVITATIONS + "/{user}",
    status_code=204,
    response_class=Response,
    operation_id="withdrawInvitation",
)
async def withdraw(
    namespace: str, user: User, request: Request, shared: Shared, caller: Caller
) -> Response:
    """Withdraw an invitation."""
    await shared.service.access.withdraw(acting(caller, request), namespace, user)
    return Response(status_code=204)


@router.get(
    "/invitations",
    responses={200: said(schemas.InvitationList, "Those of the caller.")},
    operation_id="listMyInvitations",
)
async def my_invitations(shared: Shared, caller: Caller) -> Response:
    """List the caller's invitations."""
    found = shared.service.access.invitations_of(caller.name)
    return json_answer({"items": [invitation_to_view(each) for each in found]})


Tenant = Annotated[str, Path(max_length=63, description="The namespace of the invitation.")]


@router.post(
    "/invitations/{tenant}:accept",
    responses={200: said(schemas.MemberBody, "The caller is a member now.")},
    operation_id="acceptInvitation",
)
async def accept(tenant: Tenant, request: Request, shared: Shared, caller: Caller) -> Response:
    """Accept an invitation of the caller."""
    made = await shared.service.access.accept(acting(caller, request), tenant)
    return json_answer(made._asdict())


@router.post(
    "/invitations/{tenant}:decline",
    status_code=204,
    response_class=Response,
    operation_id="declineInvitation",
)
async def decline(tenant: Tenant, request: Request, shared: Shared, caller: Caller) -> Response:
    """Decline an invitation of the caller."""
    await shared.service.access.decline(acting(caller, request), tenant)
    return Response(status_code=204)


@router.get(
    "/users", responses={200: said(schemas.UserList, "All of them.")}, operation_id="listUsers"
)
async def users(shared: Shared) -> Response:
    """Everybody who was let in."""
    found = [user_to_view(*each) for each in shared.service.access.users()]
    return json_answer({"items": found})


@router.post(
    "/users",
    status_code=201,
    responses={201: said(schemas.UserBody, "The new user.")},
    openapi_extra=openapi.body("UserRequest", {"name": "user123"}),
    operation_id="createUser",
)
async def create_user(request: Request, shared: Shared, caller: Caller) -> Response:
    """Somebody without a namespace of their own; members of a tenant are users."""
    body = await bodies.read_model(request, schemas.UserRequest)
    if problems := check_user_id(body.name, path="name"):
        raise InvalidRequest(problems)
    made = await shared.service.access.create_user(
        acting(caller, request), body.name, is_administrator=body.is_administrator
    )
    return json_answer({"name": made.name, "is_administrator": made.is_administrator}, 201)


@router.post(
    "/users/{user}:disable", status_code=204, response_class=Response, operation_id="disableUser"
)
async def disable_user(user: User, request: Request, shared: Shared, caller: Caller) -> Response:
    """Nothing opens for this user until they are enabled again; jobs go on."""
    await shared.service.access.set_disabled(acting(caller, request), user, is_disabled=True)
    return Response(status_code=204)


@router.post(
    "/users/{user}:enable", status_code=204, response_class=Response, operation_id="enableUser"
)
async def enable_user(user: User, request: Request, shared: Shared, caller: Caller) -> Response:
    """With the roles and tokens from before."""
    await shared.service.access.set_disabled(acting(caller, request), user, is_disabled=False)
    return Response(status_code=204)


@router.delete("/users/{user}", status_code=204, response_class=Response, operation_id="deleteUser")
async def delete_user(user: User, request: Request, shared: Shared, caller: Caller) -> Response:
    """With roles and tokens; jobs and namespaces stay."""
    await shared.service.access.delete_user(acting(caller, request), user)
    return Response(status_code=204)


@router.delete(
    "/users/{user}/tokens", status_code=204, response_class=Response, operation_id="revokeTokens"
)
async def revoke_tokens(user: User, request: Request, shared: Shared, caller: Caller) -> Response:
    """Revoke all tokens of a user: one's own, or as an administrator anybody's."""
    bodies.check_user(user, caller, "user")
    await shared.service.access.revoke_all(acting(caller, request), user)
    return Response(status_code=204)


@router.put(
    "/backends/{user}",
    responses={200: said(schemas.BackendBody, "As it is now.")},
    openapi_extra=openapi.body("BackendRequest", {"namespaces": ["user-*"]}),
    operation_id="setBackend",
)
async def set_backend(user: User, request: Request, shared: Shared, caller: Caller) -> Response:
    """Create a backend, which acts for any user in these namespaces, or change them."""
    body = await bodies.read_model(request, schemas.BackendRequest)
    made = await shared.service.access.set_backend(acting(caller, request), user, body.namespaces)
    return json_answer({"name": made.name, "namespaces": list(made.backend)})


@router.delete(
    "/backends/{user}", status_code=204, response_class=Response, operation_id="removeBackend"
)
async def remove_backend(user: User, request: Request, shared: Shared, caller: Caller) -> Response:
    """Remove a backend and its tokens; the jobs that it submitted stay."""
    await shared.service.access.remove_backend(acting(caller, request), user)
    return Response(status_code=204)


@router.get("/audit", responses={200: said(schemas.AuditPage)}, operation_id="listAudit")
async def audit(
    shared: Shared,
    caller: Caller,
    namespace: Annotated[str, Query(max_length=63, description="Of this one alone.")] = "",
    actor: Annotated[str, Query(max_length=200, description="By this one alone.")] = "",
    action: Annotated[
        str, Query(max_length=100, description="Actions that begin so: job, or job.delete.")
    ] = "",
    before: Annotated[int | None, Query(ge=0, le=2**53, description="Of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Response:
    """Who changed what, newest first."""
    if namespace:
        rules.enter(Role.ADMINISTRATOR, caller, namespace)
    elif not caller.is_administrator:
        raise forbidden("name a namespace that you administer: ?namespace=….")
    found = await shared.service.audit(
        namespace or None, actor=actor, action=action, before=before, limit=limit
    )
    more = found[-1][0] if len(found) == limit else None
    items = [_audit_view(number, row) for number, row in found]
    return json_answer({"items": items, "next_before": more})


def _audit_view(number: int, row: AuditRow) -> dict[str, Any]:
    return {"number": number, **row._asdict(), "time": time_to_text(row.time)}


def _secret(token: IssuedToken) -> dict[str, Any]:
    return {
        "id": token.id,
        "secret": token.secret,
        "expires_at": time_to_text(token.expires_at),
    }
