"""Names of series: one spelling for what many libraries call many ways.

`Train/Loss`, `train loss` and `training-loss` are one series, and `final` is no part of a name: it says when a value
was printed, not what it is. Text is full of numbers, so outside of structured lines only known words make a series.
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_NAME = 64
"""Characters: the limit of the Trainer's status contract."""

WORDS = (
    "loss", "acc", "accuracy", "perplexity", "ppl", "lr", "learning_rate", "error", "f1", "auc", "auroc", "precision",
    "recall", "iou", "map", "bleu", "rouge", "wer", "cer", "mae", "mse", "rmse", "reward", "score", "return", "norm",
    "throughput",
)  # fmt: skip
"""A word in plain text is a series when one of these is a part of it."""

QUALIFIERS = (
    "train", "training", "val", "valid", "validation", "eval", "evaluation", "test", "dev", "mean", "avg", "average",
    "running", "total", "best", "final", "평균", "최종",
)  # fmt: skip
"""Words that stand before such a word, with a space between."""

EPOCH = frozenset({"epoch", "ep", "current_epoch"})
EPOCHS = frozenset({"epochs", "num_epochs", "max_epochs", "num_train_epochs", "total_epochs"})
STEP = frozenset(
    {"step", "global_step", "current_step", "iter", "iteration", "iters", "batch", "it", "update"}
)
STEPS = frozenset({"max_steps", "total_steps", "num_steps"})

_SAME = {
    "training": "train",
    "valid": "val",
    "validation": "val",
    "evaluation": "eval",
    "avg": "mean",
    "average": "mean",
    "acc": "accuracy",
    "lr": "learning_rate",
    "ppl": "perplexity",
}
_KOREAN = {"평균": "mean", "최종": "final"}
_METRIC_PARTS = frozenset(part for word in WORDS for part in word.split("_"))
_NOT_IN_NAMES = re.compile(r"[^a-z0-9@]+")


@lru_cache(maxsize=1024)
def series_name(raw: str) -> str:
    """The normalised name; empty when nothing of it can be part of one."""
    text = raw.lower()
    for word, same in _KOREAN.items():
        text = text.replace(word, same)
    parts = _NOT_IN_NAMES.sub("_", text).strip("_").split("_")
    kept = [_SAME.get(part, part) for part in parts if part != "final"]
    return "_".join(kept)[:MAX_NAME].strip("_")


@lru_cache(maxsize=1024)
def is_metric(name: str) -> bool:
    """Whether a normalised name has a word of `WORDS` in it."""
    return not _METRIC_PARTS.isdisjoint(name.split("_"))
