"""A real Chromium of Debian's package; where it is missing, root installs it."""

from __future__ import annotations

import os
import shutil

from cluster.machine import apt_install

NAMES = ("chromium", "chromium-browser", "google-chrome")
PACKAGES = ("chromium", "fonts-noto-cjk")
"""The fonts are for Korean on pictures of the page."""
FLAGS = (
    "--no-sandbox",  # it does not start as root otherwise; it sees our own page alone
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Missing(Exception):  # noqa: N818 - no error: a reason to skip
    """No Chromium here, and why."""


def chromium() -> str:
    """The path of the program; raises Missing."""
    found = _find()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        apt_install(list(PACKAGES))
        found = _find()
    if found is None:
        raise Missing("Chromium is missing: apt-get install chromium")
    return found


def _find() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)
