"""A real Git server over https on loopback, with its own certificate, for the clone tests."""

import os
import queue
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster.checkout import GitOverHttp, server

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
    https = server(("127.0.0.1", 0), _Handler, certificate, key)
    git = GitServer(f"https://127.0.0.1:{https.server_address[1]}", certificate)
    _Handler.git, _Handler.folder = git, folder
    thread = threading.Thread(target=https.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield git
    finally:
        git.released.set()
        https.shutdown()
        https.server_close()
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


class _Handler(GitOverHttp):
    git: GitServer

    def do_GET(self) -> None:  # noqa: N802 (the name is that of the library)
        self.git.requests.append(self.path)
        if self.path.startswith(REDIRECT):
            target = self.path.replace(REDIRECT, "/repositories", 1)
            self.answer(302, {"Location": f"{self.git.base}{target}"})
        elif self.path.startswith(WALL):
            self.answer(401, {"WWW-Authenticate": 'Basic realm="test"'})
        elif self.path.startswith(HANG):
            self.git.hanging.put(self.path)
            self.git.released.wait()
        else:
            super().do_GET()

    do_POST = do_GET  # noqa: N815 (the name is that of the library)

    def log_message(self, *_: Any) -> None:
        """Be silent: a test that fails shows what the client said."""
