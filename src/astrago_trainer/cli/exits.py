"""Exit codes, so that scripts can tell what became of a job."""

from __future__ import annotations

SUCCEEDED = 0
CLIENT_ERROR = 1
JOB_FAILED = 100
NOT_FINISHED = 101
NOT_FOUND = 102
CANCELLED = 103

EPILOG = """\
exit codes: 0 succeeded, 1 could not be done, 2 wrong usage, 100 the job failed,
            101 it has not finished, 102 no such job, 103 it was deleted
"""


def of_phase(phase: str) -> int:
    return {"Complete": SUCCEEDED, "Failed": JOB_FAILED, "Deleting": CANCELLED}.get(
        phase, NOT_FINISHED
    )
