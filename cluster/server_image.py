"""The image of our own server, as the Dockerfile makes it: this checkout's wheel, its dependencies, and a Python.

No Docker is asked. The wheel is built here, the dependencies are those of the project's environment, and both are laid
out as a Python environment on the Debian that the pods' images have.
"""

from __future__ import annotations

import compileall
import hashlib
import io
import py_compile
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from cluster.checkout import ROOT
from cluster.errors import ClusterError
from cluster.frameworks import IMAGE_PYTHON, RUNNING_PYTHON, NoSuchPython
from cluster.images import Image, Layer, folder_layer
from cluster.pod_images import debian_layer

PROJECT = "astrago-trainer"
USER = "65532:65532"
"""Nobody's, as in deploy/server.yaml and the Dockerfile."""
_HOME = "opt/astrago"
_PACKAGES = f"{_HOME}/lib/python{IMAGE_PYTHON}/site-packages"
_START = f"""\
#!/{_HOME}/bin/python
from astrago_trainer.cli.main import run

run()
"""


def server_image() -> Image:
    """Of this checkout, as it is now; named as `astrago install` asks for it."""
    if RUNNING_PYTHON != IMAGE_PYTHON:
        raise NoSuchPython(
            f"the environment .venv has Python {RUNNING_PYTHON}, the image {IMAGE_PYTHON}.",
            f"Make it anew: rm -r .venv && make PYTHON=python{IMAGE_PYTHON} setup",
        )
    name, wheel = _wheel()
    own = folder_layer(
        f"server {hashlib.sha256(wheel).hexdigest()[:16]}", lambda root: _fill(root, wheel)
    )
    version = name.split("-")[1]
    layers = (debian_layer(), _dependencies(), own)
    return Image(f"{PROJECT}:{version}", layers, entry=(f"/{_HOME}/bin/astrago",), user=USER)


def requirements(project: str = PROJECT) -> dict[str, Distribution]:
    """What it needs at run time, and what that needs: name -> as installed here."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(project, "")]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) not in seen:
            seen.add((name, extra))
            found[name] = distribution(name)
            for each in map(Requirement, found[name].requires or ()):
                if each.marker is None or each.marker.evaluate({"extra": extra}):
                    waiting += [(_normal(each.name), one) for one in ("", *each.extras)]
    del found[project]
    return dict(sorted(found.items()))


def _wheel() -> tuple[str, bytes]:
    """Its name and content; the same sources give the same bytes."""
    with tempfile.TemporaryDirectory() as built:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", built]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise ClusterError(
                f"the wheel cannot be built: {done.stderr.strip()[-1500:]}", "See `make build`."
            )
        (wheel,) = Path(built).glob("*.whl")
        return wheel.name, wheel.read_bytes()


def _dependencies() -> Layer:
    needed = requirements()
    told = " ".join(f"{name}={each.version}" for name, each in needed.items())
    key = hashlib.sha256(told.encode()).hexdigest()[:16]

    def fill(root: Path) -> None:
        packages = root / _PACKAGES
        for each in needed.values():
            for source, name in _files(each):
                target = packages / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
        _compile(packages)

    return folder_layer(f"server's dependencies {key} 1", fill)


def _files(installed: Distribution) -> Iterator[tuple[Path, str]]:
    """Inside site-packages alone: programs of the dependencies are not needed."""
    for each in installed.files or ():
        if ".." not in each.parts and "__pycache__" not in each.parts:
            yield Path(str(installed.locate_file(each))), str(each)


def _fill(root: Path, wheel: bytes) -> None:
    packages = root / _PACKAGES
    packages.mkdir(parents=True)
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        archive.extractall(packages)
    _compile(packages)
    programs = root / _HOME / "bin"
    programs.mkdir()
    (programs / "python").symlink_to("/usr/bin/python3")
    (root / _HOME / "pyvenv.cfg").write_text("home = /usr/bin\n", encoding="utf-8")
    start = programs / "astrago"
    start.write_text(_START, encoding="utf-8")
    start.chmod(0o755)
    link = root / "usr/local/bin/astrago"
    link.parent.mkdir(parents=True)
    link.symlink_to(f"/{_HOME}/bin/astrago")


def _compile(folder: Path) -> None:
    """Now, and without times, which the image does not keep: its root is read-only when it runs."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(folder, quiet=2, invalidation_mode=mode, workers=2)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
