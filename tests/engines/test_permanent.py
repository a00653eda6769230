"""Which ends come again with every start, and which only look so."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.engines.jobs import effective
from tests.engines.test_local import GROUP, run

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.engines.local.permanent import permanent_error

TRACEBACK = """\
Traceback (most recent call last):
  File "/workspace/scripts/train.py", line 1, in <module>
    import torch
ModuleNotFoundError: No module named 'torch'
"""
TORCHRUN = """\
W1116 14:02:11.123 77 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 79 closing signal SIGTERM
E1116 14:02:11.187 77 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {code}) local_rank: 0
Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-16_14:02:11
  rank      : 0 (local_rank: 0)
  exitcode  : {code} (pid: 78)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


def ranked(text: str) -> str:
    return "".join(f"[rank0]: {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("code", "said", "error"),
    [
        (1, TRACEBACK, "ModuleNotFoundError: No module named 'torch'"),
        (1, f"epoch 1\n{TRACEBACK}\n", "ModuleNotFoundError: No module named 'torch'"),
        (1, ranked(TRACEBACK), "ModuleNotFoundError: No module named 'torch'"),
        (1, TRACEBACK + TORCHRUN.format(code=1), "ModuleNotFoundError: No module named 'torch'"),
        (1, ranked(TRACEBACK) + TORCHRUN.format(code=1), "ModuleNotFoundError: No module named 'torch'"),
        (2, "python: can't open file '/x.py': [Errno 2] No such file or directory", "No such file or directory"),
        (1, "/usr/bin/python3: No module named trian", "No module named trian"),
        (127, "bash: line 1: trian: command not found", "command not found"),
        (126, "bash: line 1: ./train.sh: Permission denied", "Permission denied"),
        (127, "", "exit code 127"),
    ],
)  # fmt: skip
def test_what_comes_again_with_every_start(code, said, error):
    assert permanent_error(code, said).endswith(error)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (1, f"{TRACEBACK}the cache is rebuilt\nstep 7\n"),
        (1, f"{TRACEBACK}Traceback (most recent call last):\n  File \"x\"\n    y()\nOSError: no route\n"),
        (137, TRACEBACK),
        (3, TRACEBACK),
        (1, "FileNotFoundError: told by a logger"),
        (1, "step 6\nPermissionError: told by a logger"),
        (1, TRACEBACK.replace("ModuleNotFoundError", "mine.ModuleNotFoundError")),
        (1, TRACEBACK + TORCHRUN.format(code=-9)),
        (1, "step 1\nstep 2\n" + TORCHRUN.format(code=1)),
        (126, "bash: fork: retry: Resource temporarily unavailable"),
        (1, ""),
    ],
)  # fmt: skip
def test_what_may_go_away_by_itself(code, said):
    assert permanent_error(code, said) == ""


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import no_such_module", "ModuleNotFoundError"),
        ("from os import no_such_name", "ImportError"),
        ("open('/no/such/file')", "FileNotFoundError"),
        ("raise PermissionError(13, 'no')", "PermissionError"),
        ("def x(:\n  pass", "SyntaxError"),
        ("if True:\npass", "IndentationError"),
        ("if True:\n\tx = 1\n        y = 2", "TabError"),
    ],
)
def test_what_this_python_writes_is_understood(tmp_path, code, name):
    file = tmp_path / "train.py"
    file.write_text(code)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    assert name in permanent_error(done.returncode, done.stderr).splitlines()[-1]


@pytest.fixture(params=["view", "plain"])
def engine(request, tmp_path):
    return LocalEngine(tmp_path / "data", isolation=request.param)


RESTARTS = {"job_set": {"failurePolicy": {"maxRestarts": 3}}}


def python(code: str) -> str:
    return f"exec {sys.executable} -u -c {code!r}"


def test_an_import_error_ends_the_job_without_a_restart(engine):
    job = effective(python("import no_such_module"), nodes=2, **RESTARTS, **GROUP)
    seen, _ = run(engine, job)
    assert (seen.phase, seen.reason) == (Phase.FAILED, "NotRetryable")
    assert (seen.attempt, seen.restarts, seen.max_restarts) == (0, 0, 3)
    assert seen.message.endswith("ModuleNotFoundError: No module named 'no_such_module'")
    assert " ended with exit code 1: " in seen.message
    assert 1 in [pod.exit_code for pod in seen.pods]


def test_it_holds_for_containers_that_restart_in_place_and_for_programs_that_are_missing(engine):
    seen, _ = run(engine, effective("no-such-program", job={"backoffLimit": 6}))
    assert (seen.phase, seen.reason, seen.pods[0].restarts) == (Phase.FAILED, "NotRetryable", 0)
    assert "no-such-program: command not found" in seen.message


def test_other_errors_are_tried_again_as_before(engine):
    code = 'import os, traceback\ntry: open("/no/such")\nexcept OSError: traceback.print_exc()\n'
    code += 'print("on", flush=True)\nif os.environ["ASTRAGO_ATTEMPT"] < "2": raise ValueError(1)'
    job = effective(f"exec {sys.executable} -u -c '{code}'", **RESTARTS, **GROUP)
    seen, _ = run(engine, job)
    assert (seen.phase, seen.restarts) == (Phase.COMPLETE, 2)
