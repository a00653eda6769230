"""With real torch: states come back bit by bit, and a training killed during its saves ends as if nothing had been."""

import json
import os
import subprocess
from pathlib import Path

from catalogue.frameworks import framework_path

ROOT = Path(__file__).parents[2]


def test_all_checks_pass_with_torch(tmp_path):
    # One test for all of them: they share a process, because it takes seconds to import torch.
    paths = {"PATH": framework_path("torch"), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    done = subprocess.run(
        ["python", "-m", "tests.checkpoint.torch_checks", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, **paths, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert len(answers) == 9
    for check, trouble in answers.items():
        assert trouble == "", check
