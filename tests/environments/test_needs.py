"""What a job's code needs: nothing is installed for a script of the standard library."""

from __future__ import annotations

import time

import pytest

from astrago_trainer.environments.needs import Needs, needs_of

RUN = "source /shared/setup_pytorch_env.sh\n\npython /workspace/scripts/train.py"
LAUNCH = "python /shared/launch.py -- /workspace/scripts/train.py"


@pytest.mark.parametrize(
    ("files", "command", "expected"),
    [
        ({"train.py": "import os, sys\nprint('hello')"}, RUN, Needs(False)),
        ({"train.py": "import os"}, LAUNCH, Needs(False)),
        ({"train.py": "from helper import f", "helper.py": ""}, RUN, Needs(False)),
        ({"train.py": "from pkg.part import f", "pkg/part.py": ""}, RUN, Needs(False)),
        ({"train.py": "from . import x"}, RUN, Needs(False)),
        ({"train.py": "this is no python"}, RUN, Needs(False)),
        ({}, "echo hello; sleep 1", Needs(False)),
        ({}, "python -c 'print(1)'", Needs(False)),
        ({}, "python -m http.server", Needs(False)),
        ({"train.py": "import numpy"}, RUN, Needs(True)),
        ({"train.py": "import torch"}, RUN, Needs(True, "torch")),
        ({"train.py": "if x:\n    import torch.nn as nn"}, RUN, Needs(True, "torch")),
        ({"train.py": "m = __import__('torch')"}, RUN, Needs(True, "torch")),
        ({"train.py": "from tensorflow import keras"}, RUN, Needs(True, "tensorflow")),
        ({"train.py": "import horovod.torch as hvd, torch"}, RUN, Needs(True, "horovod")),
        ({"train.py": "print(1)"}, "torchrun /workspace/scripts/train.py", Needs(True, "torch")),
        ({}, "python /data/train.py", Needs(True)),
        ({}, "python3 -u -m mypackage.train", Needs(True)),
    ],
)
def test_packages_and_framework_are_read_off_code_and_command(files, command, expected):
    assert needs_of(files, [command], has_other_code=False) == expected


@pytest.mark.parametrize("text", ["a" * 130_000, "python " * 18_000, "python" + " -a" * 40_000])
def test_a_long_command_is_read_in_linear_time(text):
    begun = time.process_time()
    needs_of({}, [text], has_other_code=False)
    assert time.process_time() - begun < 2  # milliseconds; a quadratic search takes minutes


def test_large_code_is_not_parsed():
    assert needs_of({"train.py": "x = 1\n" * 60_000}, [RUN], has_other_code=False) == Needs(True)


def test_code_that_cannot_be_read_here_may_need_anything():
    assert needs_of({}, ["ls"], has_other_code=True) == Needs(True)
