"""Run as a program: does what a job's supervisor does to isolate its pods, and ends with 0 if the kernel lets it."""

from __future__ import annotations

import os
import sys

from astrago_trainer.engines.local import kernel
from astrago_trainer.engines.local.supervisor import enter_namespaces


def main() -> int:
    try:
        enter_namespaces()
        pid = os.fork()  # the new process namespace begins with the child
        if pid:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.mount("proc", "/proc", "proc")
    except OSError as error:
        print(error.strerror, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
