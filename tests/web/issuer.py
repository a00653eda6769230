"""The small issuer of the server's tests, with the two doors that a browser needs: authorize and token."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.server.test_oidc import SmallIssuer, serving

CLIENT = "astrago"


class BrowserIssuer(SmallIssuer):
    """Lets everybody in as `user` at once; a code is good once, for who has the verifier of its challenge."""

    def __init__(self) -> None:
        super().__init__()
        issuer = self
        self.user = "user123"
        self.claims: dict[str, Any] = {}
        """Instead of what a token would say."""
        self.codes: dict[str, dict[str, str]] = {}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                if parts.path == "/authorize":
                    self.send_response(302)
                    self.send_header("location", issuer.authorize(_first(parts.query)))
                    self.end_headers()
                else:
                    self._answer(200, issuer.pages().get(parts.path, {}))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                found = issuer.exchange(_first(body))
                self._answer(200 if found else 400, found or {"error": "invalid_grant"})

            def _answer(self, status: int, content: Any) -> None:
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("access-control-allow-origin", "*")
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server.RequestHandlerClass = Handler

    def pages(self) -> dict[str, Any]:
        found = super().pages()
        found["/.well-known/openid-configuration"] |= {
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
        }
        return found

    def authorize(self, query: dict[str, str]) -> str:
        assert query["client_id"] == CLIENT
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        answer = {"code": code, "state": query["state"], "iss": self.url}
        return f"{query['redirect_uri']}?{urlencode(answer)}"

    def exchange(self, form: dict[str, str]) -> dict[str, Any] | None:
        asked = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if asked is None or asked["code_challenge"] != challenge:
            return None
        if form["redirect_uri"] != asked["redirect_uri"]:
            return None
        claims = {"sub": self.user, "nonce": asked["nonce"], **self.claims}
        return {"id_token": self.token(**claims), "token_type": "Bearer"}


def _first(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text).items()}


def an_issuer() -> AbstractContextManager[BrowserIssuer]:
    return serving(BrowserIssuer())
