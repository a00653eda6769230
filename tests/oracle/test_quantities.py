"""Quantities are read, added and printed as Kubernetes does it, on thousands of texts that people
and fuzzers write.
"""

from __future__ import annotations

import json
from random import Random

import pytest

from astrago_trainer.core.quantity import Quantity, QuantityError
from tests.oracle.build import once, oracle_binary, skip_reason
from tests.oracle.values import QUANTITIES

LINES = 12000
SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
BAD = (
    "", "abc", "1 ", " 1", "1GiB", "1K", "Ki", "--1", "+-1", "1e", "e3", "1e3k", "1.2.3", "0x1",
    "1_0", "١", "1m3", ".", "-", "+.5Gi", "1i", "1kiB", "NaN", "Inf",
)  # fmt: skip


def draw_text(random: Random) -> str:
    choice = random.random()
    if choice < 0.15:
        return random.choice(QUANTITIES)
    if choice < 0.2:
        return random.choice(BAD)
    sign = random.choice(("", "", "", "", "-", "+"))
    whole = str(random.randrange(10 ** random.choice((1, 2, 3, 6, 9, 12, 18, 19, 20, 25, 40))))
    if random.random() < 0.1:
        whole = "0" * random.randrange(1, 4) + whole
    if random.random() < 0.15:
        whole += "0" * random.randrange(1, 12)
    part = ""
    if random.random() < 0.45:
        part = "." + "".join(random.choices("0123456789000", k=random.randrange(0, 14)))
        whole = whole if random.random() < 0.95 else ""
    if random.random() < 0.2:
        exponent = random.choice((0, 1, 2, 3, 6, 9, 10, 15, 18, 19, 25, 60, 100))
        suffix = random.choice("eE") + random.choice(("", "+", "-")) + str(exponent)
    else:
        suffix = random.choice(SUFFIXES)
    return f"{sign}{whole}{part}{suffix}"


def draw_line(random: Random) -> list[str]:
    length = random.choice((1, 1, 1, 2, 2, 3, 5))
    return [draw_text(random) for _ in range(length)]


def our_answer(texts: list[str]) -> list[str | int] | None:
    try:
        first, *others = [Quantity.parse(text) for text in texts]
    except QuantityError:
        return None
    total = first
    for other in others:
        total = total.plus(other)
    return [str(total), total.value()]


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(2))
def test_quantities_are_read_added_and_printed_as_kubernetes_does_it(seed: int) -> None:
    binary = oracle_binary("2.3")
    if binary is None:
        pytest.skip(skip_reason("2.3"))
    random = Random(seed)
    questions = [draw_line(random) for _ in range(LINES // 2)]
    answers = once(binary, "quantities", [json.dumps(texts) for texts in questions])
    assert len(answers) == len(questions)
    wrong = [
        f"{texts}: theirs {theirs}, ours {ours}"
        for texts, theirs in zip(questions, map(json.loads, answers), strict=True)
        if (ours := our_answer(texts)) != theirs
    ]
    assert wrong == [], f"{len(wrong)} of {len(questions)} lines differ"
