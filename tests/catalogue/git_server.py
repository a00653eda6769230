"""A real Git server over https on loopback, with its own certificate, for the clone tests."""

import os
import queue
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

REDIRECT = "/redirected"  # answers 302 to the same path below /repositories
WALL = "/private"  # answers 401
HANG = "/hanging"  # never answers


@dataclass
class GitServer:
    """Where the server is, which certificate it shows, and which paths were asked for."""

    base: str  # https://127.0.0.1:<port>
    certificate: Path
    requests: list[str] = field(default_factory=list)
    hanging: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    released: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serve(folder: Path) -> Iterator[GitServer]:
    """Serve the bare repositories below `folder/repositories` until the block ends."""
    certificate, key = make_certificate(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(
        server.socket,
        server_side=True,
        do_handshake_on_connect=False,  # the handshake is for the thread of the request
    )
    git = GitServer(f"https://127.0.0.1:{server.server_address[1]}", certificate)
    _Handler.git, _Handler.folder = git, folder
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield git
    finally:
        git.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def make_certificate(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-days", "2"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key


def make_repository(folder: Path, name: str, branches: dict[str, dict[str, str]]) -> Path:
    """Make `folder/repositories/<name>` with one commit per branch; the first is the default."""
    bare = folder / "repositories" / name
    work = folder / f"{name}.work"
    default = next(iter(branches))
    _git("init", "--quiet", "--bare", f"--initial-branch={default}", str(bare))
    _git("init", "--quiet", f"--initial-branch={default}", str(work))
    for branch, files in branches.items():
        _git("checkout", "--quiet", "--orphan", branch, cwd=work)
        for path, text in files.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(text)
        _git("add", "--all", cwd=work)
        _git("commit", "--quiet", "--message", branch, cwd=work)
        _git("push", "--quiet", str(bare), branch, cwd=work)
    return bare


def _git(*arguments: str, cwd: Path | None = None) -> None:
    identity = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Test"), ("EMAIL", "test@example.org"))
    }
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", **identity}
    subprocess.run(["git", *arguments], cwd=cwd, env=env, check=True, capture_output=True)


class _Handler(BaseHTTPRequestHandler):
    git: GitServer
    folder: Path

    def do_GET(self) -> None:
        self.git.requests.append(self.path)
        if self.path.startswith(REDIRECT):
            target = self.path.replace(REDIRECT, "/repositories", 1)
            self._answer(302, {"Location": f"{self.git.base}{target}"})
        elif self.path.startswith(WALL):
            self._answer(401, {"WWW-Authenticate": 'Basic realm="test"'})
        elif self.path.startswith(HANG):
            self.git.hanging.put(self.path)
            self.git.released.wait()
        else:
            self._run_git()

    do_POST = do_GET  # noqa: N815 (the name is that of the library)

    def _run_git(self) -> None:
        """Hand the request to `git http-backend`, which speaks CGI."""
        path, _, query = self.path.partition("?")
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        done = subprocess.run(["git", "http-backend"], env=env, input=body, capture_output=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        self._answer(status, headers, content)

    def _answer(self, status: int, headers: dict[str, str], content: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Be silent: a test that fails shows what the client said."""
