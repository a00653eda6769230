"""Points and progress from whole logs, in pieces, after a restart, in floods, and from hostile hands."""

from __future__ import annotations

import json
import random
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrago_trainer.progress.picker import MAX_SERIES, Picked, Picker
from astrago_trainer.progress.points import Point, Progress


def pick(log: str | bytes, *, times: float = 100.0, **options) -> Picked:
    """Everything that a whole log says."""
    data = log.encode() if isinstance(log, str) else log
    picker = Picker(attempt=1, rank=0, **options)
    first = picker.feed(0, data, time=times)
    last = picker.settle(time=times)
    return Picked([*first.points, *last.points], last.progress or first.progress)


def seed_log(epochs: int = 3, batches: int = 47, nodes: int = 2) -> str:
    """What the PyTorch scripts print."""
    lines = ["✅ 분산 학습 초기화 성공!", f"  - Rank: 0/{nodes}", f"  - World Size: {nodes}"]
    for epoch in range(1, epochs + 1):
        lines += [
            f"Epoch {epoch}, Batch {batch}/{batches}, Loss: {epoch}.{batch:02}00"
            for batch in range(0, batches, 10)
        ]
        lines.append(f"Epoch {epoch}/{epochs} done, mean loss: {epoch}.5000")
    return "\n".join(
        [*lines, "🎉 PyTorch 분산 학습 완료!", f"📉 최종 평균 Loss: {epochs}.5000", ""]
    )


def series(picked: Picked, name: str) -> list[tuple[int | None, float | None]]:
    return [(point.step, point.value) for point in picked.points if point.series == name]


def test_the_pytorch_script_gives_two_curves_over_all_steps():
    picked = pick(seed_log(epochs=2, batches=20))

    assert series(picked, "loss") == [(0, 1.0), (10, 1.1), (20, 2.0), (30, 2.1)]
    assert series(picked, "mean_loss") == [(20, 1.5), (40, 2.5), (40, 2.5)]
    assert {point.series for point in picked.points} == {"loss", "mean_loss"}
    assert picked.points[0] == Point("loss", 1.0, 0, 1, 100.0, 0, 1)
    assert picked.progress == Progress(1.0, 0.0, 100.0, step=10, steps=20, epoch=2, epochs=2)


def test_the_fraction_is_unknown_until_the_number_of_epochs_is():
    picker = Picker(attempt=0, rank=0)

    def fraction(line: str) -> float | None:
        picked = picker.feed(picker.offset, line.encode() + b"\n", time=1.0)
        assert picked.progress is not None
        return picked.progress.fraction

    assert fraction("Epoch 1, Batch 20/40, Loss: 2.1") is None
    assert fraction("Epoch 1/4 done, mean loss: 2.0") == 0.25
    assert fraction("Epoch 2, Batch 20/40, Loss: 1.9") == 0.375


def test_the_remaining_time_follows_from_what_was_made_in_this_attempt():
    picker = Picker(attempt=1, rank=0)
    # Resumed from a checkpoint: the first two epochs were made by the attempt before.
    picker.feed(0, b"Epoch 2/4 done, mean loss: 1\n", time=1000.0)

    picked = picker.feed(29, b"Epoch 3/4 done, mean loss: 1\n", time=1060.0)

    assert picked.progress == Progress(0.75, 60.0, 1060.0, None, None, 3, 4)


def test_keras_is_read_with_its_headings():
    log = (
        "🚀 분산 학습 시작 (총 2개 워커)\nEpoch 1/2\n46/46 - 2s - 40ms/step - accuracy: 0.5 - loss: 0.9\n"
        "Epoch 2/2\n46/46 - 1s - 30ms/step - accuracy: 0.75 - loss: 0.4\n🎯 최종 Accuracy: 0.7500\n"
    )
    picked = pick(log)

    assert series(picked, "loss") == [(46, 0.9), (92, 0.4)]
    assert series(picked, "accuracy") == [(46, 0.5), (92, 0.75), (92, 0.75)]
    assert picked.progress is not None
    assert (picked.progress.fraction, picked.progress.epoch) == (1.0, 2)


def bar(done: int, total: int, after: str = "", head: str = "") -> str:
    clocks = f"00:{done:02}<00:{total - done:02}"
    return (
        f"\r{head}{100 * done // total:3}%|####      | {done}/{total} [{clocks}, 1.00it/s{after}]"
    )


def test_every_state_of_a_bar_counts_and_the_last_one_when_it_settles():
    picked = pick("".join(bar(done, 40, f", loss=0.{done:02}") for done in (10, 20, 30)))

    assert series(picked, "loss") == [(10, 0.1), (20, 0.2), (30, 0.3)]
    assert picked.progress == Progress(0.75, 10.0, 100.0, step=30, steps=40)


def test_transformers_logs_between_the_states_of_its_bar():
    log = bar(10, 40) + "\r{'loss': 0.5, 'learning_rate': 5e-05, 'epoch': 0.25}\n" + bar(11, 40)
    picked = pick(log)

    assert picked.points == [
        Point("loss", 0.5, 10, 0.25, 100.0, 0, 1),
        Point("learning_rate", 5e-05, 10, 0.25, 100.0, 0, 1),
    ]


def test_the_bar_of_an_evaluation_is_not_the_training():
    log = bar(20, 40) + bar(1, 7) + bar(7, 7) + bar(21, 40) + bar(40, 40) + bar(3, 7)
    picked = pick(log)

    assert picked.progress is not None
    assert (picked.progress.step, picked.progress.fraction) == (40, 1.0)


def test_a_bar_per_epoch_counts_within_the_epochs():
    log = (
        bar(40, 40, head="Epoch 1/2: ")
        + bar(7, 7, head="Epoch 1/2: ")
        + bar(10, 40, head="Epoch 2/2: ")
    )
    fraction = pick(log).progress

    assert fraction is not None
    assert fraction.fraction == 0.625


def test_the_validation_after_an_epoch_does_not_take_progress_back():
    head = "Epoch 1/2: "
    progress = pick(bar(40, 40, head=head) + bar(1, 7, ", val_loss=0.5", head=head)).progress

    assert progress is not None
    assert progress.fraction == 0.5


def test_epochs_may_count_from_zero():
    log = "Epoch 0, Batch 5/10, Loss: 1\nEpoch 0/2 done, loss: 1\nEpoch 1, Batch 5/10, Loss: 1\n"
    picked = pick(log)

    assert series(picked, "loss") == [(5, 1.0), (10, 1.0), (15, 1.0)]
    assert picked.progress is not None
    assert picked.progress.fraction == 0.75


def test_steps_that_go_on_through_the_epochs_are_not_added_up():
    log = "epoch 1 step 90/300 loss 3\nepoch 2 step 110/300 loss 2\nepoch 2 step 150/300 loss 1\n"
    picked = pick(log)

    assert series(picked, "loss")[1:] == [(110, 2.0), (150, 1.0)]
    assert picked.progress is not None
    assert picked.progress.fraction == 0.5


@given(st.data())
def test_pieces_say_the_same_as_the_whole(data):
    log = (seed_log() + bar(10, 40, ", loss=0.5") + bar(20, 40, ", loss=0.4") + "\n").encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(log)), max_size=20)))
    picker, points, progress = Picker(attempt=1, rank=0), [], None

    for begin, end in zip([0, *cuts], [*cuts, len(log)], strict=True):
        picked = picker.feed(begin, log[begin:end], time=100.0)
        points += picked.points
        progress = picked.progress or progress

    assert Picked(points, progress) == (pick(log).points, pick(log).progress)


@given(st.integers(0, 2000))
def test_another_picker_goes_on_from_a_stored_state(cut):
    log = seed_log().encode()
    first = Picker(attempt=1, rank=0)
    before = first.feed(0, log[:cut], time=100.0)
    state = json.loads(json.dumps(first.state()))

    second = Picker(attempt=1, rank=0, state=state)
    after = second.feed(second.offset, log[second.offset :], time=100.0)

    assert [*before.points, *after.points] == pick(log).points
    assert (after.progress or before.progress) == pick(log).progress


def test_a_log_that_began_anew_does_not_join_two_halves_of_lines():
    picker = Picker(attempt=0, rank=0)
    picker.feed(0, b"loss=1\nloss=2", time=1.0)

    picked = picker.feed(0, b"5\nloss=3\n", time=2.0)

    assert [point.value for point in picked.points] == [3.0]
    assert picker.offset == 9


def test_a_flood_is_sampled_with_its_rare_lines_and_its_last():
    lines = [f"step {step} loss {step / 1000:.3f}\n" for step in range(20_000)]
    lines[12_345] = "validation loss: 0.77\n"
    picker, points = Picker(attempt=0, rank=0), []
    data = "".join(lines).encode()

    for begin in range(0, len(data), 1 << 16):
        points += picker.feed(begin, data[begin : begin + (1 << 16)], time=1.0).points

    assert [point.value for point in points if point.series == "val_loss"] == [0.77]
    losses = [point for point in points if point.series == "loss"]
    assert losses[-1].step == 19_999
    assert losses[-1].value == 19.999
    assert len(data) // 512 * 0.9 <= len(losses) <= len(data) // 512 + 32
    gaps = [after.step - before.step for before, after in pairwise(losses)]
    assert max(gaps) <= 2 * min(gaps[1:-1]) + 30, "not evenly spread"


def test_few_lines_are_all_read():
    assert len(pick("".join(f"step {step} loss 1\n" for step in range(32))).points) == 32


def test_random_text_cannot_make_every_line_be_read():
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefgh", k=12)) for _ in range(5000)]
    data = "".join(f"{word} loss {number}\n" for number, word in enumerate(words)).encode()
    picked = Picker(attempt=0, rank=0).feed(0, data, time=1.0)

    assert len(picked.points) <= len(data) // 512 * 4
    assert picked.points[-1].value == 4999.0


def test_series_beyond_the_limit_are_counted_and_left_out():
    picker, points = Picker(attempt=0, rank=0), []
    for number in range(MAX_SERIES + 10):
        name = "".join(chr(ord("a") + int(digit)) for digit in f"{number:04}")
        points += picker.feed(picker.offset, f"loss_{name}=1\n".encode(), time=1.0).points

    assert len({point.series for point in points}) == MAX_SERIES
    assert picker.left_out == 10


def test_an_endless_line_takes_no_memory_and_is_cut():
    picker = Picker(attempt=0, rank=0)
    for begin in range(0, 10 << 20, 1 << 16):
        assert picker.feed(begin, b"x" * (1 << 16), time=1.0) == ((), None)

    picked = picker.feed(10 << 20, b" loss=1\nloss=2\n", time=1.0)

    assert [point.value for point in picked.points] == [2.0]
    assert picker.offset == (10 << 20) + 15
    assert len(json.dumps(picker.state())) < 1000


@pytest.mark.parametrize(
    "data",
    [b"\n" * (1 << 16), b"\r" * (1 << 16), b"loss=1\r" * 9000, b"loss\n" * 13000, bytes(range(256)) * 256],
    ids=["newlines", "returns", "states", "words", "bytes"],
)  # fmt: skip
def test_no_block_takes_long(data):
    picker = Picker(attempt=0, rank=0)
    start = time.thread_time()
    for number in range(5):
        picker.feed(number * len(data), data, time=1.0)

    assert (time.thread_time() - start) / 5 < 0.05
