"""The page is served as files that nobody can step out of, with headers that let nothing else in."""

from __future__ import annotations

import asyncio
import gzip
import re
from pathlib import Path

import httpx
import pytest
from scripts.page import SCHEMA, WEB, api_document, types_header

from astrago_trainer.server import page
from astrago_trainer.server.app import make_app
from tests.server.serving import HERE, a_site, bearer

INDEX = "<!doctype html><title>Astrago Trainer</title>"
SCRIPT = "console.log('hello')\n" * 100
VIEWS = ["/", "/jobs", "/jobs/team/hello", "/new", "/nodes", "/runtimes/a", "/admin/x", "/sign-in"]


@pytest.fixture
def built(tmp_path) -> Path:
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(INDEX)
    (folder / "favicon.svg").write_text("<svg/>")
    (folder / "assets" / "index-abc123.js").write_text(SCRIPT)
    (folder / "assets" / "index-abc123.js.gz").write_bytes(gzip.compress(SCRIPT.encode()))
    (folder / "secret.txt").write_text("secret")
    (tmp_path / "outside.js").write_text("outside")
    return folder


def _ask(tmp_path, built, *paths, headers=None, method="GET", **settings) -> list[httpx.Response]:
    async def story():
        async with a_site(tmp_path / "data", **settings) as site:
            transport = httpx.ASGITransport(make_app(site.context, built))
            async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
                return [await client.request(method, path, headers=headers) for path in paths]

    return asyncio.run(story())


def test_every_view_is_the_one_document_and_nothing_else_may_run_in_it(tmp_path, built):
    for answer in _ask(tmp_path, built, *VIEWS):
        assert (answer.status_code, answer.text) == (200, INDEX)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "*" not in policy
        rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
        assert rules == {
            "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self'",
            "font-src": "'self'", "connect-src": "'self'", "form-action": "'self'",
            "frame-ancestors": "'none'", "base-uri": "'none'",
        }  # fmt: skip


def test_the_document_is_asked_for_again_and_not_sent_again(tmp_path, built):
    (first,) = _ask(tmp_path, built, "/jobs")
    (again,) = _ask(tmp_path, built, "/", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_files_with_a_hash_are_kept_for_ever_and_sent_packed_to_who_can_read_it(tmp_path, built):
    (packed,) = _ask(tmp_path, built, "/assets/index-abc123.js")
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert packed.headers["vary"] == "accept-encoding"
    refusing = {"accept-encoding": "gzip;q=0, deflate"}
    (plain,) = _ask(tmp_path, built, "/assets/index-abc123.js", headers=refusing)
    assert "content-encoding" not in plain.headers
    assert plain.text == packed.text == SCRIPT
    assert plain.headers["content-type"] == "text/javascript; charset=utf-8"


def test_who_asks_for_the_head_gets_what_a_get_has_without_its_body(tmp_path, built):
    paths = [*VIEWS, "/favicon.svg", "/assets/index-abc123.js", "/assets/nothing.js"]
    whole = _ask(tmp_path, built, *paths)
    heads = _ask(tmp_path / "again", built, *paths, method="HEAD")
    for head, answer in zip(heads, whole, strict=True):
        assert head.status_code == answer.status_code
        if head.status_code == 200:
            del head.headers["x-request-id"], answer.headers["x-request-id"]
            assert (head.content, head.headers) == (b"", answer.headers)


@pytest.mark.parametrize(
    "path",
    [
        "/assets/nothing.js", "/assets/../index.html", "/assets/..%2findex.html", "/assets/%2e%2e/secret.txt",
        "/assets/..%2f..%2foutside.js", "/assets/%2fetc%2fpasswd", "/assets/.js", "/assets/a%00.js",
        "/assets/", "/assets", "/assets/index-abc123.js.gz", "/secret.txt", "/index.html", "/nothing",
        "/jobsy", "/api", "/api/v1/nothing", "/apis/nothing", "/healthz/x",
    ],
)  # fmt: skip
def test_nothing_else_is_served(tmp_path, built, path):
    (answer,) = _ask(tmp_path, built, path)
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert "secret" not in answer.text.replace("secret.txt", "")


def test_the_page_needs_no_token_and_hides_no_route_of_the_api(tmp_path, built):
    paths = ["/", "/assets/index-abc123.js", "/healthz", "/openapi.json", "/api/v1/whoami"]
    answers = _ask(tmp_path, built, *paths, auth="tokens")
    assert [each.status_code for each in answers] == [200, 200, 200, 200, 401]
    assert answers[3].json()["openapi"]
    bad = _ask(tmp_path, built, "/api/v1/whoami", headers=bearer("no"), auth="tokens")
    assert bad[0].headers["content-type"] == "application/problem+json"


def test_without_a_built_page_it_says_how_to_build_it(tmp_path):
    answer, health = _ask(tmp_path, tmp_path / "nothing", "/", "/healthz")
    assert (answer.status_code, health.status_code) == (404, 200)
    assert "make setup" in answer.text
    assert answer.headers["content-type"].startswith("text/plain")


def test_every_address_of_the_page_is_known_to_the_server():
    routes = (WEB / "src" / "routes.tsx").read_text(encoding="utf-8")
    paths = re.findall(r'path: "(/[^"]*)"', routes)
    assert len(paths) > 5
    assert {path.split("/")[1] for path in paths} <= {"", *page.VIEWS}


def test_the_types_of_the_page_are_those_of_this_api():
    header = SCHEMA.read_text(encoding="utf-8").partition("\n")[0]
    assert header == types_header(api_document()), "run: python -m scripts.page types"


def test_the_lock_file_of_the_page_names_no_place_to_download_from():
    text = (WEB / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in text
    assert text.count('"integrity": "sha512-') > 100
