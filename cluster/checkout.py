"""This checkout as a Git repository inside the cluster, under the address that the samples clone.

Pods reach nothing outside. The name service of the cluster answers for the host of the samples' repository with the
node's own address; there `git http-backend` serves the files as they lie here, committed or not, as branch main.
"""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cluster.layout import NODE_IP, Layout

GIT_HOST = "github.com"
REPOSITORY = "xiilab/astrago-trainer.git"
ROOT = Path(__file__).parents[1]


def publish(layout: Layout) -> None:
    """Commits the files of the checkout into a repository of the cluster's; the checkout's own is not touched."""
    bare = layout.git / REPOSITORY
    if not (bare / "HEAD").exists():
        _git("init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    own = (f"--git-dir={bare}", f"--work-tree={ROOT}", "-c", "core.bare=false")
    _git(*own, "add", "--all")
    tree = _git(*own, "write-tree").strip()
    commit = _git(*own, "commit-tree", tree, "-m", "The files of the checkout").strip()
    _git(*own, "update-ref", "refs/heads/main", commit)


def _git(*arguments: str) -> str:
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "cluster"), ("EMAIL", "cluster@example.org"))
    }
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", **who}
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


class GitOverHttp(BaseHTTPRequestHandler):
    """Hands every request to `git http-backend`, which speaks CGI, for the repositories below `folder`."""

    folder: Path

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        environment = {
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
            "REMOTE_ADDR": self.client_address[0],
        }
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        done = subprocess.run(
            ["git", "http-backend"], env=environment, input=body, capture_output=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.answer(int(headers.pop("Status", "200").split()[0]), headers, content)

    do_POST = do_GET  # noqa: N815 (the name is that of the library)

    def answer(self, status: int, headers: dict[str, str], content: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def server(
    address: tuple[str, int], handler: type[GitOverHttp], certificate: Path, key: Path
) -> ThreadingHTTPServer:
    """An https server; the handshake is done in the thread of the request, so that nobody can hold up the others."""
    found = ThreadingHTTPServer(address, handler)
    found.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    found.socket = context.wrap_socket(
        found.socket, server_side=True, do_handshake_on_connect=False
    )
    return found


def main() -> None:
    layout = Layout(Path(sys.argv[1]))
    GitOverHttp.folder = layout.git
    pki = layout.pki
    server((NODE_IP, 443), GitOverHttp, pki / "git.crt", pki / "git.key").serve_forever()


if __name__ == "__main__":
    main()
