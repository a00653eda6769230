"""`make test` runs all parts, ends with a failure if one failed, and names it."""

from __future__ import annotations

import sys

from scripts.test import ROOT, Part, Result, parts, run_all, summary


def program(name: str, text: str, code: int = 0) -> Part:
    return Part(name, (sys.executable, "-c", f"print({text!r}); raise SystemExit({code})"))


def outcome(*others: Part, tests: Part) -> tuple[int, str]:
    said: list[str] = []
    code = run_all(tests, others, said.append)
    return code, "".join(said)


def test_all_parts_run_after_a_failure_and_the_summary_names_it():
    code, said = outcome(
        program("check", "a line is too long", 2),
        program("page", "Tests  3 passed"),
        program("web", "2 failed, 3 passed in 4.00s", 1),
        tests=program("tests", "10 passed, 1 skipped in 5.00s (0:00:05)"),
    )
    assert code == 1
    assert "a line is too long" in said  # the output of what failed
    assert "Tests  3 passed" not in said
    lines = said.splitlines()
    assert lines[-2] == "make test: failed: check, web"
    assert lines[-1].startswith("2 failed, 13 passed, 1 skipped in ")
    assert [line.split()[:2] for line in lines[-6:-2]] == [
        ["check", "FAILED"],
        ["page", "passed"],
        ["web", "FAILED"],
        ["tests", "passed"],
    ]


def test_a_failure_of_the_tests_alone_is_a_failure():
    code, said = outcome(program("check", ""), tests=program("tests", "1 failed in 2.00s", 1))
    assert code == 1
    assert "make test: failed: tests" in said


def test_all_well_ends_with_success_and_the_count():
    code, said = outcome(program("check", ""), tests=program("tests", "7 passed in 2.00s"))
    assert code == 0
    assert said.splitlines()[-2:][0] == "make test: all parts passed"
    assert said.splitlines()[-1].startswith("7 passed in ")


def test_a_part_that_dies_counts_as_failed():
    dead = Part("web", ("sh", "-c", "kill -9 $$"))
    code, said = outcome(dead, tests=program("tests", "7 passed in 2.00s"))
    assert code == 1
    assert "make test: failed: web" in said


def test_errors_are_counted_and_no_tests_are_said():
    results = [Result("tests", 1, 2.0, "3 passed, 1 warning, 2 errors in 1.00s")]
    assert summary(results, 1)[-1] == "2 error, 3 passed, 1 warning in 1.00s"
    assert summary([Result("tests", 4, 0.1, "ERROR: not found")], 1)[-1] == "no tests ran in 1.00s"


def test_every_folder_of_tests_but_the_clusters_belongs_to_one_part():
    shown, others = parts()
    (web,) = (each.command for each in others if each.name == "web")
    ignored = {each.partition("=")[2] for each in shown.command if each.startswith("--ignore=")}
    assert ignored == {"tests/cluster", "tests/web"}
    assert all((ROOT / each).is_dir() for each in ignored)
    assert "tests/web" in web
