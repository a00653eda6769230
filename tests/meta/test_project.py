"""Rules about the project itself: what ships, what is documented, what must not be in it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from astrago_trainer.cli import cmd_preview
from astrago_trainer.core.merge import VERSIONS
from astrago_trainer.core.platform import TRAINER_VERSIONS

ROOT = Path(__file__).parents[2]


def tracked_texts() -> list[tuple[Path, str]]:
    """What would be in a commit: tracked files and new ones that git does not ignore, but for pictures."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    paths = [ROOT / name for name in listed.stdout.splitlines()]
    texts = [path for path in paths if path.is_file() and path.suffix != ".png"]
    return [(path, path.read_text(encoding="utf-8")) for path in texts]


def test_the_lock_file_pins_hashes_and_names_no_address():
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")

    assert "://" not in text
    pins = re.findall(r"^[a-z0-9][a-z0-9._-]*==\S+", text, re.MULTILINE)
    assert len(pins) > 20
    assert text.count("--hash=sha256:") >= len(pins)


def test_no_file_names_a_package_registry():
    hosts = (
        "pypi" + ".org",
        "pythonhosted" + ".org",
        "proxy.golang" + ".org",
        "registry.npmjs" + ".org",
    )

    found = [(path.name, host) for path, text in tracked_texts() for host in hosts if host in text]

    assert found == []


def test_the_core_asks_no_clock():
    for path in (ROOT / "src/astrago_trainer/core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("now", "utcnow", "today"), f"{path}:{node.lineno}"


def test_the_versions_are_the_same_everywhere():
    assert VERSIONS == TRAINER_VERSIONS == cmd_preview.VERSIONS


def test_every_target_of_the_makefile_says_what_it_does():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)

    assert phony is not None
    for target in phony[1].split():
        assert re.search(rf"^{target}:.*## \S", makefile, re.MULTILINE), target


def test_every_document_that_is_linked_exists():
    for path, text in tracked_texts():
        if path.suffix == ".md":
            for target in re.findall(r"\]\((?!https?://)([^)#]+)", text):
                assert (path.parent / target).exists(), f"{path.name} links {target}"


def _typed(readme: str) -> list[str]:
    """Indented lines without their comments."""
    text = (ROOT / readme).read_text(encoding="utf-8")
    return [line.split("  #")[0].rstrip() for line in text.splitlines() if line.startswith("    ")]


@pytest.mark.req("M137")
def test_the_korean_readme_has_the_same_commands_pictures_and_links():
    assert _typed("README.ko.md") == _typed("README.md")
    korean, english = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("README.ko.md", "README.md")
    )
    assert "[한국어](README.ko.md)" in english[:200]
    assert "[English](README.md)" in korean[:200]
    links = [sorted(re.findall(r"\]\(([^)]+)\)", text)) for text in (korean, english)]
    swapped = {"README.md": "README.ko.md"}
    assert sorted(swapped.get(each, each) for each in links[0]) == links[1]


def test_the_commands_of_the_readme_exist():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = set(re.findall(r"^ {4}(?:\.venv/bin/)?astrago (\w+)", readme, re.MULTILINE))
    targets = set(re.findall(r"^ {4}make ([\w-]+)", readme, re.MULTILINE))

    assert commands == {"doctor", "list", "preview", "run", "runtimes"}
    for command in commands:
        subprocess.run(
            [sys.executable, "-m", "astrago_trainer", command, "--help"],
            check=True,
            capture_output=True,
        )
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_the_project_states_its_python_and_license():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert (project["requires-python"], project["license"]) == (">=3.11", "Apache-2.0")
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
