"""What `make build` makes, installed into empty environments: the command works away from the checkout."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.pythons import python_of, uv

from astrago_trainer import __version__
from astrago_trainer.catalogue import runtimes

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/astrago_trainer"
PATIENCE = 120
"""Seconds; only a failing test takes them."""

SCRIPT = """
import os, sys
print("rank", os.environ["PET_NODE_RANK"], "of", os.environ["PET_NNODES"], "on", "%d.%d" % sys.version_info[:2])
"""


@dataclass
class Installed:
    """An environment with the package in it, and nothing of this machine's user around it."""

    python: str
    """Its version."""
    home: Path
    command: Path

    @property
    def variables(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "ASTRAGO_CACHE": str(self.home / "cache"),
            # A script without a framework needs none of the environments that stand for images.
            "ASTRAGO_ENVIRONMENTS": f"*={self.command.parent.parent}",
        }

    def __call__(self, *arguments: object) -> str:
        done = subprocess.run(
            [self.command, *map(str, arguments)],
            cwd=self.home, env=self.variables, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    inherited = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    done = subprocess.run(
        ["make", "build", f"DIST={folder}"], cwd=ROOT, env=inherited, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def of_kind(folder: Path, kind: str) -> Path:
    (found,) = folder.glob({"wheel": "*.whl", "source": "*.tar.gz"}[kind])
    return found


def install(version: str, archive: Path, folder: Path) -> Installed:
    environment, home = folder / "environment", folder / "home"
    home.mkdir()
    make = [uv(), "venv", "--quiet", "--no-project", "--python", python_of(version), environment]
    # The lock's versions, so that uv has them in its cache.
    chosen = ["--python", environment, "--constraint", ROOT / "requirements.lock"]
    for command in (make, [uv(), "pip", "install", "--quiet", *chosen, archive]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return Installed(version, home, environment / "bin" / "astrago")


@pytest.mark.req("M64")
@pytest.mark.parametrize("kind", ["wheel", "source"])
def test_the_archives_hold_the_package_and_nothing_else(built, kind):
    """The wheel is made from the source archive, so what one lacks the other lacks."""
    if kind == "wheel":
        names = zipfile.ZipFile(of_kind(built, kind)).namelist()
    else:
        with tarfile.open(of_kind(built, kind)) as archive:
            names = [name.partition("/")[2].removeprefix("src/") for name in archive.getnames()]
    inside = {name for name in names if name.startswith("astrago_trainer/")}
    expected = {
        str(Path("astrago_trainer", path.relative_to(PACKAGE)))
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert inside == expected
    for entry in runtimes():
        for file in ("runtime.yaml", "trainjob.yaml", "train.py"):
            assert f"astrago_trainer/runtimes/{entry.folder}/{file}" in inside
    assert any(name.startswith("astrago_trainer/deploy/") for name in inside)
    assert "astrago_trainer/page/index.html" in inside
    others = {name.split("/")[0] for name in set(names) - inside}
    about = {f"astrago_trainer-{__version__}.dist-info"}
    texts = {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "PKG-INFO", ".gitignore"}
    assert others <= (about if kind == "wheel" else texts)


@pytest.mark.req("M64")
@pytest.mark.parametrize("kind", ["wheel", "source"])
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_it_works_where_only_it_is_installed(python, kind, built, tmp_path):
    astrago = install(python, of_kind(built, kind), tmp_path)

    assert astrago("version").startswith(f"astrago {__version__}\nPython {python}.")
    check_run(astrago)
    check_preview(astrago)
    check_page(astrago)


def check_run(astrago: Installed) -> None:
    (astrago.home / "script.py").write_text(SCRIPT)
    shown = astrago("run", "script.py", "--nodes", 2)
    for rank in (0, 1):
        assert f"rank {rank} of 2 on {astrago.python}" in shown


def check_preview(astrago: Installed) -> None:
    (astrago.home / "job.yaml").write_text(astrago("runtimes", "pytorch-simple", "--sample"))
    (astrago.home / "runtime.yaml").write_text(astrago("runtimes", "pytorch-simple", "-o", "yaml"))
    pair = ("--runtime", "runtime.yaml", "--trainjob", "job.yaml")
    assert "kind: TrainJob" in astrago("preview", *pair, "-o", "yaml")


def check_page(astrago: Installed) -> None:
    with serving(astrago) as address:
        page = read(f"{address}/")
        assert '<div id="root">' in page
        assets = re.findall(r'(?:src|href)="(/[^"]+)"', page)
        assert len(assets) > 2
        for asset in assets:
            assert read(f"{address}{asset}")


@contextmanager
def serving(astrago: Installed) -> Iterator[str]:
    """The address of `astrago up`."""
    command = [astrago.command, "up", "--port", "0"]
    said = astrago.home / "stderr"
    with (
        said.open("w") as stderr,
        subprocess.Popen(
            command, cwd=astrago.home, env=astrago.variables, stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as server,
    ):  # fmt: skip
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            assert "answers at" in line, said.read_text()
            yield line.split()[3]
        finally:
            server.terminate()
            assert server.wait(PATIENCE) == 0


def read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
        return answer.read().decode()
