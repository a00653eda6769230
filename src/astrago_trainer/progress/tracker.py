"""Where a training is, remembered from line to line of one log.

Scripts count as they like: from 0 or from 1, steps of an epoch or of all, bars within bars. The rules here are guesses
that hold for the usual libraries; where a log does not say how much is still to come, neither do we.
"""

from __future__ import annotations

from dataclasses import dataclass

from astrago_trainer.progress.points import Progress
from astrago_trainer.progress.reader import Reading


@dataclass(slots=True)
class Tracker:
    """Plain data, so that it can be stored and gone on with."""

    epoch: int | None = None
    epochs: int | None = None
    position: float | None = None
    step: int | None = None
    steps: int | None = None
    counts_from_zero: bool = False
    counts_all_steps: bool = False
    """Steps go on counting from one epoch to the next."""
    last_of_epoch: int | None = None
    """The last step before the epoch changed, until the first one after it is known."""
    epoch_ended: bool = False
    fraction: float | None = None
    remaining_seconds: float | None = None
    first_fraction: float | None = None
    first_time: float | None = None

    def accept(self, reading: Reading, time: float) -> bool:
        """Takes over what a line says; False when its count is that of some other loop, within ours or after it."""
        if reading.is_bar and self._is_other_loop(reading):
            return False
        self.epochs = reading.epochs or self.epochs
        if reading.position is not None:
            self.position = reading.position
        if reading.epoch is not None:
            self._enter_epoch(reading.epoch)
        if reading.step is not None:
            self._enter_step(reading)
        self.epoch_ended = reading.ends_epoch or (self.epoch_ended and reading.step is None)
        self._estimate(reading, time)
        return True

    def overall_step(self) -> int | None:
        """The step counted over all epochs, where the length of an epoch is known; else as printed."""
        if self.epoch is None or self.counts_all_steps or not self.steps:
            return self.step
        before = max(0, self.epoch - self._first_epoch()) * self.steps
        if self.epoch_ended:
            return before + self.steps
        return None if self.step is None else before + self.step

    def current_epoch(self) -> float | None:
        return self.position if self.position is not None else self.epoch

    def progress(self, time: float) -> Progress:
        return Progress(
            fraction=self.fraction,
            remaining_seconds=self.remaining_seconds,
            time=time,
            step=self.step,
            steps=self.steps,
            epoch=self.current_epoch(),
            epochs=self.epochs,
        )

    def _is_other_loop(self, reading: Reading) -> bool:
        """An evaluation has a bar of its own, without an epoch or a loss in it and with another length."""
        if self.steps is None or reading.steps == self.steps:
            return False
        if reading.epoch is not None or reading.values:
            return False
        is_finished = self.step is not None and self.step >= self.steps
        return not (is_finished and (reading.steps or 0) > self.steps)

    def _enter_epoch(self, epoch: int) -> None:
        self.counts_from_zero |= epoch == 0
        if epoch != self.epoch:
            if self.epoch is not None:
                self.last_of_epoch = self.step
            self.epoch, self.step, self.epoch_ended = epoch, None, False

    def _enter_step(self, reading: Reading) -> None:
        self.step = reading.step
        self.steps = reading.steps or self.steps
        if self.last_of_epoch is not None:
            self.counts_all_steps = not reading.is_bar and self._went_on_from(self.last_of_epoch)
            self.last_of_epoch = None

    def _went_on_from(self, last: int) -> bool:
        """Whether the first step of an epoch goes on from the last one before it.

        A larger number alone does not tell, because not every line is printed, or read. But steps of an epoch end near
        their total, and steps of all epochs with their share of it: what is closer wins.
        """
        if self.step is None or self.epoch is None or not self.steps or self.step <= last:
            return False
        share = (self.epoch - self._first_epoch()) / self.epochs if self.epochs else 0.5
        return last < self.steps * (1 + min(1.0, share)) / 2

    def _estimate(self, reading: Reading, time: float) -> None:
        fraction = reading.fraction if reading.fraction is not None else self._fraction()
        if fraction is None:
            return
        fraction = min(1.0, max(0.0, fraction))
        if self.epochs and self.fraction is not None:
            fraction = max(fraction, self.fraction)  # the validation after an epoch counts anew
        if self.first_time is None or self.first_fraction is None or fraction < self.first_fraction:
            self.first_time, self.first_fraction = time, fraction
        self.fraction = fraction
        self.remaining_seconds = self._remaining(reading, time)

    def _fraction(self) -> float | None:
        within = self.step / self.steps if self.step is not None and self.steps else None
        if self.epoch is None or self.counts_all_steps:
            return within
        if not self.epochs:
            return None
        part = 1.0 if self.epoch_ended else min(1.0, within or 0.0)
        return (self.epoch - self._first_epoch() + part) / self.epochs

    def _remaining(self, reading: Reading, time: float) -> float | None:
        if self.fraction is None or self.first_time is None or self.first_fraction is None:
            return None
        if self.fraction >= 1:
            return 0.0
        if reading.remaining_seconds is not None and (self.epoch is None or not reading.is_bar):
            return reading.remaining_seconds
        made, needed = self.fraction - self.first_fraction, time - self.first_time
        if made <= 0 or needed <= 0:
            return self.remaining_seconds
        return needed * (1 - self.fraction) / made

    def _first_epoch(self) -> int:
        return 0 if self.counts_from_zero else 1
