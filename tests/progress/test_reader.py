"""What lines say: those of the shipped scripts, of the usual libraries, and of people who mean harm."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from astrago_trainer.progress.names import is_metric, series_name
from astrago_trainer.progress.reader import MAX_LINE, Reading, read_line

ROOT = Path(__file__).parents[2]

LINES = {
    "loss=0.5": Reading(values={"loss": 0.5}),
    "Loss: 2.30": Reading(values={"loss": 2.3}),
    "train/loss: 1.5 train/acc: .5": Reading(values={"train_loss": 1.5, "train_accuracy": 0.5}),
    "accuracy 0.91": Reading(values={"accuracy": 0.91}),
    "Test Accuracy: 91.2%": Reading(values={"test_accuracy": 91.2}),
    "INFO:root:loss=1e-3, lr=5e-05": Reading(values={"loss": 0.001, "learning_rate": 5e-05}),
    "epoch 1/3": Reading(epoch=1, epochs=3),
    "Epoch 1, Batch 10/47, Loss: 2.1": Reading(epoch=1, step=10, steps=47, values={"loss": 2.1}),
    "Epoch [2/3], Step [10/47], Loss: 0.5": Reading(
        epoch=2, epochs=3, step=10, steps=47, values={"loss": 0.5}
    ),
    "Epoch: [1][ 10/391]\tTime 0.1 (0.2)\tLoss 2.3e+00 (2.4e+00)": Reading(
        epoch=1, step=10, steps=391, values={"loss": 2.3}
    ),
    "Epoch 3/3 done, mean loss: 0.5": Reading(
        epoch=3, epochs=3, ends_epoch=True, values={"mean_loss": 0.5}
    ),
    "Epoch 2/3 loss 0.5 val_loss 0.6": Reading(
        epoch=2, epochs=3, ends_epoch=True, values={"loss": 0.5, "val_loss": 0.6}
    ),
    "iter 100: train loss 3.4, val loss 3.5": Reading(
        step=100, values={"train_loss": 3.4, "val_loss": 3.5}
    ),
    "loss: 2.303494  [   64/60000]": Reading(step=64, steps=60000, values={"loss": 2.303494}),
    "  Num Epochs = 3": Reading(epochs=3),
    " 45%|####5     | 45/100 [00:03<00:04, 12.1it/s, loss=0.31]": Reading(
        step=45, steps=100, remaining_seconds=4, is_bar=True, values={"loss": 0.31}
    ),
    " 12%|█▏        | 3/25 [1:00:10<7:01:13,  3.3s/it]": Reading(
        step=3, steps=25, remaining_seconds=25273, is_bar=True
    ),
    "  0%|          | 0/25 [00:00<?, ?it/s]": Reading(step=0, steps=25, is_bar=True),
    "Training:  50%|#####     | 1.50k/3.00k [00:10<00:10, 150it/s]": Reading(
        step=1500, steps=3000, remaining_seconds=10, is_bar=True
    ),
    "Epoch 0:  45%|████▌     | 45/100 [00:03<00:04, 12.1it/s, v_num=0, train_loss=0.31]": Reading(
        epoch=0, step=45, steps=100, remaining_seconds=4, is_bar=True, values={"train_loss": 0.31}
    ),
    "Epoch 0/9 ━━━━━━━━ 45/100 0:00:03 • 0:00:04 12.1it/s v_num: 0 train_loss: 0.31": Reading(
        epoch=0, epochs=9, step=45, steps=100, values={"train_loss": 0.31}
    ),
    "46/46 - 2s - 40ms/step - accuracy: 0.91 - loss: 0.3": Reading(
        step=46, steps=46, values={"accuracy": 0.91, "loss": 0.3}
    ),
    "46/46 [==============================] - 2s 40ms/step - loss: 0.3 - cosine: 0.5": Reading(
        step=46, steps=46, values={"loss": 0.3, "cosine": 0.5}
    ),
    " 6/10 [=================>............] - ETA: 0s - loss: 2.1946 - accuracy: 0.2057\b\b\b": Reading(
        step=6, steps=10, values={"loss": 2.1946, "accuracy": 0.2057}
    ),
    "\b\b\b\x1b[1m 7/46\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━\x1b[0m \x1b[1m2s\x1b[0m 40ms/step - loss: 0.3": Reading(
        step=7, steps=46, values={"loss": 0.3}
    ),
    "{'loss': 0.5, 'learning_rate': 5e-05, 'tokens': 12, 'epoch': 0.1}": Reading(
        position=0.1, values={"tokens": 12, "loss": 0.5, "learning_rate": 5e-05}
    ),
    "{'loss': '0.5', 'grad_norm': '1.25', 'epoch': '1.0'}": Reading(
        position=1.0, values={"loss": 0.5, "grad_norm": 1.25}
    ),
    '{"step": 7, "loss": 0.25}': Reading(step=7, values={"loss": 0.25}),
    "loss=nan": Reading(values={"loss": None}),
    "loss: -inf": Reading(values={"loss": None}),
    "loss 1e999": Reading(values={"loss": None}),
}  # fmt: skip

SILENT = [
    "Rank: 0/2, world size: 2, device: cpu",
    "  - Rank: 0/2",
    "  - World Size: 2",
    "  - MASTER_PORT: 29500",
    "📊 노드 수: 2",
    "🚀 분산 학습 시작 (총 2개 노드)",
    "✅ Worker 0 initialized with 2 replicas",
    "Resuming at epoch 3: epoch 2 is saved in /data/7",
    "Rank 1: stopped by SIGTERM in epoch 2",
    '{"level": 30, "port": 8080}',
    "Map: 100%|██████████| 1000/1000 [00:01<00:00, 900.1 examples/s]",
    "Loading checkpoint shards: 100%|██████████| 2/2 [00:01<00:00,  1.9it/s]",
    "model.bin:  45%|████▌     | 45.2M/100M [00:03<00:04, 12.1MB/s]",
    "loss",
    "loss=",
    "lossless 5",
    "step 9999999999999999",
    "",
]


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_understood(line):
    assert read_line(line) == LINES[line]


@pytest.mark.parametrize("line", SILENT)
def test_numbers_that_are_no_progress_are_left_alone(line):
    assert read_line(line) is None


def scripts() -> list[Path]:
    return [
        *sorted((ROOT / "src/astrago_trainer/runtimes").glob("*/train.py")),
        ROOT / "samples/mnist-ddp.py",
        ROOT / "samples/fsdp/t5-fsdp.py",
    ]


def printed_lines(script: Path) -> list[str]:
    """Every f-string that a script prints, with the number 7 for each of its values."""
    return [
        "".join(
            str(part.value) if isinstance(part, ast.Constant) else "7"
            for part in node.args[0].values
        )
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in ("print", "report")
        and isinstance(node.args[0], ast.JoinedStr)
    ]


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.parent.name)
def test_every_result_that_a_shipped_script_prints_is_picked(script):
    results = [
        line
        for line in printed_lines(script)
        if "loss" in line.lower() or "accuracy" in line.lower()
    ]

    assert results
    for line in results:
        reading = read_line(line)
        assert reading is not None, line
        assert list(reading.values.values()) == [7.0], line
        assert set(reading.values) <= {"loss", "mean_loss", "accuracy"}, line


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.parent.name)
def test_nothing_else_that_it_prints_makes_a_series(script):
    others = [
        line
        for line in printed_lines(script)
        if "loss" not in line.lower() and "accuracy" not in line.lower()
    ]

    assert [line for line in others if (reading := read_line(line)) and reading.values] == []


HOSTILE = [
    "1%|" * 5000,
    "1%|" + "#" * 5000,
    "loss " * 5000,
    "loss" + " " * 5000,
    "a." * 5000,
    "mean " * 5000,
    "final mean average " * 2000 + "loss",
    "[ 1/" * 5000,
    "1/1 " + "s/step" * 2000,
    "\x1b[" * 5000,
    "\x1b[1;1;1;" * 3000,
    "loss=" + "9" * 5000,
    "loss=1e" + "9" * 5000,
    "{" * 5000,
    "epoch epoch " * 3000,
    "\b" * 5000,
    "9" * 5000,
    "━ 1" * 5000,
]


@pytest.mark.parametrize("line", HOSTILE, ids=lambda line: repr(line[:12]))
def test_a_hostile_line_takes_no_longer_than_its_length_asks_for(line):
    start = time.thread_time()
    for _ in range(10):
        read_line(line)

    assert (time.thread_time() - start) / 10 < 0.02


def test_what_lies_beyond_the_limit_does_not_count():
    assert read_line(" " * (MAX_LINE - 8) + "loss=0.5") == Reading(values={"loss": 0.5})
    assert read_line(" " * MAX_LINE + "loss=0.5") is None


@given(st.text(max_size=300))
@example("loss=٣")
@example("45%|#| 1.2.3/100 [00:03<:, 1it/s]")
def test_no_line_breaks_the_reader(line):
    for text in (line, f"loss={line}", f"{line}: 45%|{line}| 45/100 [00:03<00:04, {line}]"):
        reading = read_line(text)
        for name in reading.values if reading else ():
            assert 0 < len(name) <= 64
            assert name == series_name(name)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("Train/Loss", "train_loss"),
        ("training-loss", "train_loss"),
        ("validation accuracy", "val_accuracy"),
        ("final mean loss", "mean_loss"),
        ("최종 평균 Loss", "mean_loss"),
        ("최종 Accuracy", "accuracy"),
        ("Avg. Loss", "mean_loss"),
        ("lr", "learning_rate"),
        ("acc@1", "acc@1"),
        ("손실", ""),
        ("x" * 100, "x" * 64),
    ],
)
def test_names_have_one_spelling(raw, name):
    assert series_name(raw) == name


def test_only_known_words_are_metrics_by_themselves():
    assert [is_metric(name) for name in ("box_loss", "grad_norm", "lossless", "port")] == [
        True,
        True,
        False,
        False,
    ]
