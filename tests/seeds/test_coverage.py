"""Nothing of the five documents is forgotten, every step is shown by a test, and `docs/seeds.md` says so."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.seeds import documents, table
from tests.seeds.documents import ROOT, fingerprint, tidy
from tests.seeds.steps import DOCUMENTS, Document, read, read_all

TESTS = ROOT / "tests"


def stored(document: Document, number: int) -> object:
    """What the steps have of a block, in the form that its fingerprint is of; None for a text."""
    steps = document.of_block(number)
    kind = document.kind(number)
    if kind == "shell":
        return [each.type for each in steps]
    if kind == "data":
        (data,) = (each.data for each in steps if each.data is not None)
        return data
    return None


def named() -> dict[str, list[Path]]:
    """Step -> the files with a test that names it in `@pytest.mark.seeds`."""
    found: dict[str, list[Path]] = {}
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "mark.seeds(" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.seeds":
                for argument in node.args:
                    found.setdefault(ast.literal_eval(argument), []).append(path)
    return found


def place(path: Path) -> str:
    """Where the tests of a file run, in the word of the steps."""
    return "cluster" if path.relative_to(TESTS).parts[0] == "cluster" else "local"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_stored_blocks_are_those_of_the_document(name):
    """Where the documents do not lie beside the checkout, the stored fingerprints are all there is to compare with."""
    document = read(name)
    if not documents.documents_are_here():
        assert len(document.blocks) == len(set(document.blocks)) > 4
        return
    found = documents.blocks(name)

    assert len(found) == len(document.blocks)
    for number, text in enumerate(found, start=1):
        kind = document.kind(number)
        assert fingerprint(kind, documents.content(kind, text)) == document.blocks[number - 1], (
            f"{name}, block {number}:\n{text}"
        )


@pytest.mark.req("M136")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_block_has_steps_and_they_are_what_it_says(name):
    """Every command of a shell block is a step, in its order, and data is the document's own."""
    document = read(name)
    for number, expected in enumerate(document.blocks, start=1):
        assert document.of_block(number), f"{name} has no step for block {number}"
        content = stored(document, number)
        if content is not None:
            kind = document.kind(number)
            assert fingerprint(kind, content) == expected, f"{name}, block {number}: {content}"
    assert max(step.block for step in document.steps) == len(document.blocks)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_steps_are_in_the_order_of_the_document(name):
    document = read(name)
    numbers = [step.block for step in document.steps if step.block]

    assert [step.id for step in document.steps] == [
        f"{name}-{number:02d}" for number in range(1, len(document.steps) + 1)
    ]
    assert numbers == sorted(numbers)
    known = {step.id for step in document.steps if step.is_replayed and step.type}
    assert {step.of for step in document.steps if step.of} <= known


@pytest.mark.req("M136")
def test_every_step_is_run_and_no_test_names_one_that_is_not_there():
    """A replayed step is run from the file; any other by a test that names it; one that cannot be run by none."""
    names = named()
    steps = {step.id: step for document in read_all() for step in document.steps}

    assert sorted(set(names) - set(steps)) == [], "named by a test, but in no document"
    for step in steps.values():
        at = {place(path) for path in names.get(step.id, ())}
        if step.where == "never":
            assert at == set(), f"{step.id} is run, so it can be"
        elif not step.is_replayed:
            assert step.where in at, f"{step.id} is run by no test of {step.where}"


def test_the_page_is_made_of_the_steps():
    assert table.PAGE.read_text(encoding="utf-8") == table.page(), (
        "made of other steps: .venv/bin/python -m tests.seeds.table"
    )


# --- reading a document


def test_commands_are_found_as_a_shell_finds_them():
    text = (
        "# a comment\n\nkubectl get pods   # and what it does\ncurl -d '{\n  \"a\": 1 # no comment\n}' x\n"
        'kubectl get nodes -o custom-columns="A:.a, \\\n   B:.b"\ncat <<EOF > f\nx: 1 # y\nEOF\nls\n'
    )
    assert documents.commands(text) == [
        "kubectl get pods",
        "curl -d '{ \"a\": 1 # no comment }' x",
        'kubectl get nodes -o custom-columns="A:.a, B:.b"',
        "cat <<EOF > f x: 1 # y EOF",
        "ls",
    ]


@pytest.mark.parametrize(
    ("one", "other", "is_alike"),
    [
        ({"a": "x\n# note\n\ny"}, {"a": "x\ny\n"}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": "x\ny"}, {"a": "x\nz"}, False),
        ({"a": 1}, {"a": "1"}, False),
        ([1, 2], [2, 1], False),
    ],
)
def test_a_fingerprint_of_data_leaves_out_remarks_alone(one, other, is_alike):
    assert (fingerprint("data", one) == fingerprint("data", other)) is is_alike


def test_data_is_read_from_every_form_that_the_documents_use():
    body = {"a": 1}
    assert documents.data_of('POST /x\n{"a": 1}\n') == body
    assert documents.data_of('{\n  "a": 1  // one\n}\n') == body
    assert documents.data_of("a: 1 # one\n") == body
    assert documents.data_of("cat <<EOF > f\na: \\$HOME\nEOF\n") == {"a": "$HOME"}


def test_a_dropped_command_or_a_changed_manifest_is_noticed():
    document = read("S0")
    number = next(n for n in range(1, 40) if document.kind(n) == "shell")
    (first, *rest) = document.of_block(number)

    assert fingerprint("shell", [step.type for step in rest]) != document.blocks[number - 1]
    assert tidy(first.type) == first.type
