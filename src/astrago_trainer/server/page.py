"""The web page: files that a build has put beside this package, given to anybody who asks.

They are public and the same for everybody; what a person may see comes from the API. Nothing here reads a path that a
client made up: a name is one plain word in one folder.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Request, Response
from starlette.exceptions import HTTPException

BUILT = Path(__file__).parents[1] / "page"
"""Where `scripts.page` puts it; in the wheel it is package data."""
VIEWS = ("jobs", "new", "nodes", "runtimes", "admin", "sign-in")
"""First words of the page's own addresses. The browser asks for them after a reload, and gets the page."""
ASSETS = "/assets/{file}"
ICON = "/favicon.svg"
_VIEW_PATHS = ("/", *(path for each in VIEWS for path in (f"/{each}", f"/{each}/{{rest:path}}")))
PATHS = (*_VIEW_PATHS, ICON, ASSETS)
METHODS = ("GET", "HEAD")

NOT_BUILT = "The page is not built here; the API answers all the same. Build it with: make setup\n"


def policy(issuer: str = "") -> str:
    """What the browser lets the page do. Where people come from an issuer, the page asks it for their tokens."""
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "font-src 'self'",
            " ".join(("connect-src 'self'", *([_origin(issuer)] if issuer else []))),
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        )
    )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


_HEADERS = {
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "vary": "accept-encoding",
    "x-content-type-options": "nosniff",
}
_FOR_EVER = "public, max-age=31536000, immutable"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")

router = APIRouter(include_in_schema=False)


async def folder_of(request: Request) -> Path:
    folder: Path = request.app.state.page
    return folder


Folder = Annotated[Path, Depends(folder_of)]


async def view(request: Request, folder: Folder) -> Response:
    """The one document of the page; which view it shows is decided in the browser."""
    return _answer(request, folder, "index.html", "no-cache")


async def icon(request: Request, folder: Folder) -> Response:
    return _answer(request, folder, "favicon.svg", "no-cache")


async def asset(request: Request, folder: Folder, file: str) -> Response:
    """Its name holds the hash of its content, so it never changes."""
    return _answer(request, folder / "assets", file, _FOR_EVER)


for _path in _VIEW_PATHS:
    router.api_route(_path, methods=list(METHODS), response_class=Response)(view)
router.api_route(ICON, methods=list(METHODS), response_class=Response)(icon)
router.api_route(ASSETS, methods=list(METHODS), response_class=Response)(asset)


def _headers(request: Request) -> dict[str, str]:
    issuer = request.app.state.context.settings.oidc_issuer
    return {"content-security-policy": policy(issuer), **_HEADERS}


def _answer(request: Request, folder: Path, name: str, caching: str) -> Response:
    found = _found(request, folder, name, caching)
    if request.method == "HEAD":
        found.body = b""  # its length is told all the same
    return found


def _found(request: Request, folder: Path, name: str, caching: str) -> Response:
    kind = _TYPES.get(Path(name).suffix)
    path = folder / name
    if kind is None or not _NAME.fullmatch(name) or not path.is_file():
        if name == "index.html":
            return Response(NOT_BUILT, 404, _headers(request), _TYPES[".txt"])
        raise HTTPException(404)
    encoding, path = _smallest(path, request.headers.get("accept-encoding", ""))
    body = path.read_bytes()
    headers = {**_headers(request), "cache-control": caching}
    if encoding:
        headers["content-encoding"] = encoding
    if caching != _FOR_EVER:
        headers["etag"] = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
    return Response(body, 200, headers, kind)


def _smallest(path: Path, accepted: str) -> tuple[str, Path]:
    """The form that the build has compressed and the client takes."""
    offers = {
        word.partition(";")[0].strip().lower()
        for word in accepted.split(",")
        if not re.search(r";\s*q=0(\.0*)?\s*$", word)
    }
    for encoding, suffix in _ENCODINGS:
        packed = path.with_name(path.name + suffix)
        if encoding in offers and packed.is_file():
            return encoding, packed
    return "", path
