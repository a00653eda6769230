"""Exceptions in the output of trainings: found whatever is printed around and after them."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrago_trainer.core.diagnosis.last_words import last_words
from astrago_trainer.core.diagnosis.tracebacks import Frame, decisive_error, find_errors

ATTRIBUTE = """\
loading the model
Traceback (most recent call last):
  File "/workspace/train.py", line 88, in <module>
    main()
  File "/workspace/train.py", line 41, in main
    size = config.hidden
           ^^^^^^^^^^^^^
  File "/opt/env/lib/python3.11/site-packages/transformers/configuration_utils.py", line 207, in __getattribute__
    return super().__getattribute__(key)
AttributeError: 'T5Config' object has no attribute 'hidden'
"""
NCCL_WARNING = (
    "[rank0]:[W1116 09:13:17.1 ProcessGroupNCCL.cpp:1538] Warning: WARNING: "
    "destroy_process_group() was not called before program exit\n"
)
CUDA = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 40.00 GiB. GPU 0 has a total capacity of "
    "139.81 GiB of which 3.20 GiB is free. Including non-PyTorch memory, this process has 136.60 GiB memory "
    "in use. Of the allocated memory 136.00 GiB is allocated by PyTorch, and 12.00 MiB is reserved by PyTorch"
)


def only(text: str):
    error = decisive_error(find_errors(text))
    assert error is not None
    return error


def marked(rank: int, text: str) -> str:
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


def test_the_exception_counts_and_not_what_a_library_prints_after_it():
    error = only(ATTRIBUTE + NCCL_WARNING)
    assert error.type == "AttributeError"
    assert error.message == "'T5Config' object has no attribute 'hidden'"
    assert error.frame == Frame("/workspace/train.py", 41, "main")


def test_a_message_is_kept_from_its_beginning():
    text = f'Traceback (most recent call last):\n  File "/w/t.py", line 3, in step\n    x.cuda()\n{CUDA}\n'
    error = only(text * 3)
    assert error.message.startswith("CUDA out of memory. Tried to allocate 40.00 GiB.")
    assert (
        last_words(text).splitlines()[-1].startswith("torch.OutOfMemoryError: CUDA out of memory")
    )


def test_lines_of_several_ranks_are_told_apart():
    first = marked(1, ATTRIBUTE).splitlines(keepends=True)
    other = marked(
        0,
        'Traceback (most recent call last):\n  File "/w/t.py", line 9, in <module>\n    dist.barrier()\n'
        "torch.distributed.DistBackendError: [1] is setting up NCCL communicator: "
        "Connection reset by peer\n",
    ).splitlines(keepends=True)
    mixed = [
        line for pair in zip(first, [*other, *[""] * len(first)], strict=False) for line in pair
    ]
    error = only("".join(mixed))
    assert (error.rank, error.type) == (1, "AttributeError")


@pytest.mark.parametrize("prefix", ["[rank1]: ", "[rank 1] ", "[default1]:", "[1,1]<stderr>:"])
def test_the_marks_of_torch_torchrun_mpirun_and_our_launcher_are_known(prefix):
    text = "".join(f"{prefix}{line}\n" for line in ATTRIBUTE.splitlines())
    assert (only(text).rank, only(text).type) == (1, "AttributeError")


def test_a_rank_that_lost_another_one_is_not_the_cause_though_it_ended_first():
    victim = (
        'Traceback (most recent call last):\n  File "/w/t.py", line 5, in <module>\n    loss.backward()\n'
        "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:8214\n"
    )
    error = only(marked(0, victim) + marked(3, ATTRIBUTE))
    assert error.rank == 3
    assert only(marked(0, victim)).rank == 0  # the only one there is


def test_what_torchrun_reports_after_a_failure_is_read_past():
    summary = """\
E1116 09:13:18.1 42 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 0
Traceback (most recent call last):
  File "/opt/env/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
/workspace/train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-16_09:13:18
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 42)
============================================================
"""
    assert only(ATTRIBUTE + summary).type == "AttributeError"


@pytest.mark.parametrize(
    "link",
    [
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
    ],
)
def test_of_a_chain_the_last_one_counts_and_names_the_one_before(link):
    last = 'Traceback (most recent call last):\n  File "/w/data.py", line 2, in load\nDataError: no shard 7\n'
    error = only(f"{ATTRIBUTE}\n{link}\n\n{last}")
    assert error.headline == "DataError: no shard 7"
    assert error.caused_by.startswith("AttributeError: 'T5Config'")
    assert last_words(f"{ATTRIBUTE}\n{link}\n\n{last}").splitlines()[0].startswith("caused by Attr")


def test_an_exception_that_was_handled_earlier_does_not_count():
    handled = 'Traceback (most recent call last):\n  File "/w/t.py", line 1, in f\nOSError: try again\nretrying\n'
    assert only(handled + ATTRIBUTE).type == "AttributeError"


def test_an_exception_without_a_message_and_a_syntax_error_are_found():
    assert (
        only(
            'Traceback (most recent call last):\n  File "/w/t.py", line 1, in f\nAssertionError\n'
        ).message
        == ""
    )
    broken = (
        'Traceback (most recent call last):\n  File "/w/t.py", line 4\n    def f(:\n          ^\n'
        "SyntaxError: invalid syntax\n"
    )
    assert only(broken).frame == Frame("/w/t.py", 4, "")


def test_pythons_own_tracebacks_are_read(tmp_path):
    """Whatever this version of Python writes: markers, notes, repeated lines."""
    script = tmp_path / "train.py"
    script.write_text(
        "def deep(n):\n    return deep(n - 1) if n else {}['missing']\n"
        "try:\n    deep(30)\nexcept KeyError as error:\n"
        "    problem = ValueError('no such key')\n    problem.add_note('in shard 7')\n    raise problem from error\n"
    )
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    error = only(said.stderr)
    assert error.headline == "ValueError: no such key in shard 7"
    assert error.caused_by == "KeyError: 'missing'"
    assert error.frame == Frame(str(script), 8, "<module>")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cloning\nfatal: repository 'x' not found\nsome hint\n", "fatal: repository 'x' not found"),
        ("bash: line 1: trian: command not found\n", "bash: line 1: trian: command not found"),
        (
            "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: an illegal memory\n",
            "what():  CUDA error: an illegal memory",
        ),
        ("one\ntwo\nthree\n", "one\ntwo\nthree"),
        ("", ""),
        ('{"rank": 1, "exit_code": 3}\nrank 1 ended.\nout of luck\n', "rank 1 ended.\nout of luck"),
    ],
)  # fmt: skip
def test_without_an_exception_the_most_telling_lines_are_taken(text, expected):
    assert last_words(text) == expected


def test_of_one_long_line_the_beginning_is_kept():
    assert last_words("error: " + "x" * 10_000).startswith("error: xxx")


@given(
    st.text(
        alphabet='Traceback (most recent call last):\n  File "a", line 1, in f\nE: x[rank0]',
        max_size=400,
    )
)
def test_no_output_breaks_it(text):
    last_words(f"Traceback (most recent call last):\n{text}")


@pytest.mark.parametrize("part", ["a.", "a: ", "[rank0]: ", '  File "', "Warning: ", "x" * 60_000])
def test_hostile_output_is_read_in_a_moment(part):
    text = ("Traceback (most recent call last):\n" + part * (65_536 // len(part)))[:65_536]
    began = time.process_time()
    last_words(text)
    assert time.process_time() - began < 1
