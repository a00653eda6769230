"""What this machine has to give: CPUs, memory, GPUs."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

Json = dict[str, Any]


def this_machine() -> Json:
    """CPUs in thousandths, memory in bytes, GPUs by number; a setting may say less or more."""
    cpus = os.environ.get("ASTRAGO_LOCAL_CPUS")
    gpus = os.environ.get("ASTRAGO_LOCAL_GPUS")
    return {
        "cpu": int(float(cpus) * 1000) if cpus else len(os.sched_getaffinity(0)) * 1000,
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": list(range(int(gpus) if gpus else _count_gpus())),
    }


@cache
def _count_gpus() -> int:
    """Asked of NVIDIA's own library, where there is one, and once: every job starts with this number."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return 0
    count = ctypes.c_uint()
    if nvml.nvmlInit_v2() != 0:
        return 0
    try:
        return count.value if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 else 0
    finally:
        nvml.nvmlShutdown()
