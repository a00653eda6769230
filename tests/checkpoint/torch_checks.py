"""What only a real torch shows, as functions that a test runs with a Python that has it.

`python -m tests.checkpoint.torch_checks <folder>` prints for each function what went wrong in it, or nothing. All are
run in one process, because it takes seconds to import torch; those that fork come first, before torch has threads.
"""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch

from astrago_trainer.checkpoint import Checkpoints, LoadFailed, SaveFailed
from tests.checkpoint.torch_kills import run_campaign
from tests.checkpoint.views import names, part_of, steps

ROOT = Path(__file__).parents[2]


def kills_during_saves_do_not_change_the_end(folder: Path) -> None:
    check_kills(folder, 1)


def kills_of_one_of_two_ranks_do_not_change_the_end(folder: Path) -> None:
    check_kills(folder, 2)


def check_kills(folder: Path, world_size: int) -> None:
    folder.mkdir()
    found = run_campaign(folder, world_size, kills=8, seed=1)
    assert found["final_state_is_bit_equal"]
    assert found["kills_during_a_save"] == found["resumes_from_a_verified_checkpoint"] == 8


def the_example_of_the_page_goes_on_where_it_stopped(directory: Path) -> None:
    page = (ROOT / "docs" / "checkpoints.md").read_text(encoding="utf-8")
    example = page.split("```python\n")[1].split("```")[0]
    assert example.count("\n") <= 20, "short enough to be read at a glance"
    os.environ["ASTRAGO_CHECKPOINT_DIR"] = str(directory)

    def run() -> list[str]:
        with redirect_stdout(io.StringIO()) as output:
            exec(example, {})
        return output.getvalue().splitlines()

    whole = run()
    assert whole[0] == "starting at step 0"
    assert steps(directory) == [800, 900, 1000]
    (directory / "step-000001000" / "manifest.json").unlink()
    assert run() == ["starting at step 900", whole[-1]]


def trained() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(4, 64)).sum().backward()
    optimizer.step()
    return model, optimizer


def error_of(kind: type[Exception], call: Callable[[], Any]) -> str:
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} was not raised")


def model_and_optimizer_come_back_bit_by_bit(directory: Path) -> None:
    model, optimizer = trained()
    random = torch.get_rng_state()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "random": random}
    Checkpoints(directory).save(1, state)

    loaded = Checkpoints(directory).latest().load()

    assert list(loaded["model"]) == list(state["model"])
    assert all(torch.equal(loaded["model"][name], state["model"][name]) for name in state["model"])
    assert torch.equal(loaded["random"], random)
    fresh, other = trained()
    fresh.load_state_dict(loaded["model"])
    other.load_state_dict(loaded["optimizer"])
    moments = (each.state_dict()["state"][0]["exp_avg"] for each in (optimizer, other))
    assert torch.equal(*moments)


def the_state_of_a_background_save_is_that_of_the_call(directory: Path) -> None:
    weights = torch.zeros(1 << 20)
    checkpoints = Checkpoints(directory)
    checkpoints.save(1, {"weights": weights}, wait=False)
    weights += 1
    checkpoints.wait()
    assert not checkpoints.latest().load()["weights"].any()


def what_torch_does_not_know_as_weights_needs_trust(directory: Path) -> None:
    checkpoints = Checkpoints(directory)
    checkpoints.save(1, {"model": torch.nn.Linear(2, 2)})
    refusal = error_of(LoadFailed, lambda: checkpoints.latest().load())
    assert "holds more than tensors and plain values" in refusal
    assert "load(trusted=True) if you trust" in refusal
    assert isinstance(checkpoints.latest().load(trusted=True)["model"], torch.nn.Linear)


def the_file_is_one_of_torch_and_bytes_stay_bytes(directory: Path) -> None:
    checkpoints = Checkpoints(directory)
    path = checkpoints.save(1, {"weights": torch.ones(2)})
    assert torch.equal(torch.load(part_of(path))["weights"], torch.ones(2))
    path = checkpoints.save(2, b"raw")
    assert part_of(path).suffix == ".bin"
    assert part_of(path).read_bytes() == b"raw"


def a_full_disk_is_told_in_our_words_and_nothing_is_left(directory: Path) -> None:
    checkpoints = Checkpoints(directory)
    checkpoints.save(1, {"weights": torch.ones(8)})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for wait in (True, False):
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, limits[1]))
        try:
            state = {f"weights {each}": torch.ones(1 << 18) for each in range(9)}
            failure = error_of(SaveFailed, lambda: checkpoints.save(2, state, wait=wait))  # noqa: B023
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert "File too large; bytes needed: 3,000,000 or more" in failure
    assert names(directory) == ["step-000000001/manifest.json", "step-000000001/rank-00000"]


def importing_the_package_does_not_import_torch(_: Path) -> None:
    code = "import sys, astrago_trainer.checkpoint as c; c.Checkpoints('.').latest(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


CHECKS: tuple[Callable[[Path], Any], ...] = (
    kills_during_saves_do_not_change_the_end,
    kills_of_one_of_two_ranks_do_not_change_the_end,
    the_example_of_the_page_goes_on_where_it_stopped,
    model_and_optimizer_come_back_bit_by_bit,
    the_state_of_a_background_save_is_that_of_the_call,
    what_torch_does_not_know_as_weights_needs_trust,
    the_file_is_one_of_torch_and_bytes_stay_bytes,
    a_full_disk_is_told_in_our_words_and_nothing_is_left,
    importing_the_package_does_not_import_torch,
)


def main(folder: Path) -> None:
    answers = {}
    for check in CHECKS:
        try:
            check(folder / check.__name__)
            answers[check.__name__] = ""
        except Exception:
            answers[check.__name__] = traceback.format_exc()
    print(json.dumps(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
