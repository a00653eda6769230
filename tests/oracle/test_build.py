"""The oracle is built once, whole or not at all, and its absence is told plainly."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.oracle import build
from tests.oracle.build import VERSIONS, Oracle, OracleError, oracle_binary, skip_reason


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a folder that comes first on PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("ASTRAGO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return programs


def install_go(programs: Path, script: str) -> None:
    """A stand-in for Go, since a real build takes minutes."""
    go = programs / "go"
    go.write_text(f"#!/bin/sh\n{script}\n")
    go.chmod(go.stat().st_mode | stat.S_IXUSR)


GOOD = r"""printf '#!/bin/sh\necho "{}"\n' > oracle && chmod +x oracle
echo built >> "$ASTRAGO_CACHE/count" """


@pytest.mark.parametrize("version", VERSIONS)
def test_without_go_there_is_no_oracle_and_the_reason_says_how_to_get_it(
    machine: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("PATH", str(machine))
    assert oracle_binary(version) is None
    assert VERSIONS[version] in skip_reason(version)
    assert "install Go 1." in skip_reason(version)


def test_an_oracle_is_built_once(machine: Path) -> None:
    install_go(machine, GOOD)
    first = oracle_binary("2.1")
    assert first is not None
    assert first.exists()
    assert oracle_binary("2.1") == first
    assert (build.cache_folder() / "count").read_text() == "built\n"
    assert oracle_binary("2.2") != first


@pytest.mark.parametrize(
    "script",
    [
        "echo no >&2; exit 1",
        "printf '#!/bin/sh\\nexit 3\\n' > oracle; chmod +x oracle",
        "touch oracle; chmod +x oracle",
    ],
    ids=["does not compile", "does not run", "is half written"],
)
def test_a_broken_build_is_told_and_not_kept(machine: Path, script: str) -> None:
    install_go(machine, script)
    with pytest.raises((OracleError, OSError)):
        oracle_binary("2.1")
    install_go(machine, GOOD)
    assert oracle_binary("2.1") is not None


def test_an_oracle_that_dies_is_told_with_the_line_it_died_on(tmp_path: Path) -> None:
    program = tmp_path / "oracle"
    program.write_text("#!/bin/sh\nread line; echo '{}'; echo fatal >&2; exit 7\n")
    program.chmod(0o755)
    with (
        Oracle(program) as oracle,
        pytest.raises(OracleError, match=r"1 of 2 .*second(.|\n)*fatal"),
    ):
        oracle.ask([{"pair": "first"}, {"pair": "second"}])


def test_large_batches_do_not_block(tmp_path: Path) -> None:
    program = tmp_path / "oracle"
    program.write_text("#!/bin/sh\nexec cat\n")
    program.chmod(0o755)
    pairs = [{"pair": index, "text": "ü" * 5000} for index in range(500)]
    with Oracle(program) as oracle:
        assert oracle.ask(pairs) == pairs
        assert oracle.ask(pairs[:3]) == pairs[:3]
