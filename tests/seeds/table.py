"""`docs/seeds.md`, made from the steps: `python -m tests.seeds.table` writes it, a test holds it equal."""

from __future__ import annotations

from collections import Counter

from tests.seeds.documents import ROOT, tidy
from tests.seeds.steps import DOCUMENTS, Document, Step, read_all

PAGE = ROOT / "docs" / "seeds.md"
LONGEST = 110
"""Of a command in the table; a longer one is cut."""
WHERE = {"local": "`make test`", "cluster": "`make test-cluster`", "never": "not run"}
OUTCOMES = ("as written", "changed", "cannot")

INTRODUCTION = """\
# The five documents, step by step

Five documents asked for this product: S0, a backend integration guide; S1, a guide from the form to the TrainJob; S2,
an overview with a quick start; S3, a workshop on the legacy Training Operator; S4, a workshop on Trainer v2. This page
lists every command, request, manifest and expected output in them, in their order, and the result here:

- **as written**: typed or sent as the document has it, with the result that the document promises;
- **changed**: works with the change in the last column. `X1` to `X23` are decisions where the documents contradict
  each other or the software that they use;
- **cannot**: is not possible here, for the reason in the last column.

Reasons that are not decisions: *no GPU*, *no network* and *no EKS* are limits of the machine that runs the tests, and
do not apply to a GPU cluster with a network; *other system* is a command for another operating system; *security* is
a rule of ours.

The tests run these steps: `make test` those on one machine, with a server and the local engine; `make test-cluster`
those on a real Kubernetes with Kubeflow Trainer. Waiting (`kubectl wait`) and the values for `<pod-name>` and similar
placeholders are part of the tests, not of the table. Commands of S0 and S1 are typed in
`kubeflow-training-integration/`, those of S4 in an empty folder, all others in the root of a checkout.

This page is generated from `tests/seeds/S0.yaml` to `S4.yaml`, which the tests run. After a change there, run
`.venv/bin/python -m tests.seeds.table`.
"""


def page() -> str:
    documents = read_all()
    parts = [INTRODUCTION, _summary(documents), *(_section(each) for each in documents)]
    return "\n".join(parts)


def _summary(documents: list[Document]) -> str:
    lines = [
        f"| document | steps | {' | '.join(OUTCOMES)} |",
        f"| --- | --- |{' --- |' * len(OUTCOMES)}",
    ]
    for each in documents:
        counts = Counter(step.outcome for step in each.steps)
        numbers = " | ".join(str(counts[outcome]) for outcome in OUTCOMES)
        lines.append(f"| {each.name}: {each.title} | {len(each.steps)} | {numbers} |")
    return "\n".join(lines) + "\n"


def _section(document: Document) -> str:
    lines = [
        f"## {document.name}: {document.title}",
        "",
        "| step | section | in the document | outcome | run by | change, reason or remark |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    section = ""
    for step in document.steps:
        shown = "" if step.section == section else step.section
        section = step.section
        cells = (step.id, shown, _typed(step), step.outcome, WHERE[step.where], _change(step))
        lines.append(f"| {' | '.join(each.replace('|', chr(92) + '|') for each in cells)} |")
    return "\n".join(lines) + "\n"


def _typed(step: Step) -> str:
    if step.what:
        return tidy(step.what)
    text = tidy(step.type)
    return f"`{text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}`"


def _change(step: Step) -> str:
    if not step.instead:
        return tidy(step.reason or step.note)
    commands = "; ".join(f"`{line}`" for line in step.instead.strip().splitlines())
    return f"{tidy(step.reason)}. Typed instead: {commands}"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {', '.join(DOCUMENTS)}")


if __name__ == "__main__":
    main()
