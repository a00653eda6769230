"""The file of ASTRAGO_PLATFORM: what an administrator decides about jobs, for the server and for commands without one.

YAML or JSON; docs/server.md has a complete example, `core.platform_settings` the fields.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from astrago_trainer.catalogue import default_platform
from astrago_trainer.core.errors import InvalidRequest, Problem, Unreadable
from astrago_trainer.manifests import load_documents

if TYPE_CHECKING:
    from astrago_trainer.core.platform import Platform, TrainerVersion
    from astrago_trainer.core.platform_settings import PlatformSettings

VARIABLE = "ASTRAGO_PLATFORM"


def platform_here(
    version: TrainerVersion = "2.1", *, runtimes: Sequence[str] | None = None
) -> Platform:
    """The platform that this process's environment asks for; raises InvalidRequest.

    `runtimes` are those of an engine that has no others: the file may name only these.
    """
    platform, path = default_platform(version), named_file()
    if path is None:
        return platform
    return read_platform_file(path, runtimes=runtimes).applied_to(platform)


def named_file() -> Path | None:
    """What the variable names."""
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser().absolute() if named else None


def read_platform_file(path: Path, *, runtimes: Sequence[str] | None = None) -> PlatformSettings:
    """Raises InvalidRequest with every problem, each with the file and the place in it."""
    from astrago_trainer.core.platform_settings import check_runtimes, parse_platform_settings

    try:
        documents = load_documents(str(path))
    except InvalidRequest as error:
        raise Unreadable(_named(error.problems)) from None
    if len(documents) != 1:
        message = f"expected one mapping of settings, found {len(documents)} documents."
        raise Unreadable(_named([Problem(str(path), "several-documents", message)]))
    try:
        settings = parse_platform_settings(documents[0])
        if runtimes is not None and (problems := list(check_runtimes(settings, runtimes))):
            raise InvalidRequest(problems)
    except InvalidRequest as error:
        raise InvalidRequest(_named(error.problems, f"{path}: ")) from None
    return settings


def _named(problems: Sequence[Problem], place: str = "") -> list[Problem]:
    """The same, with the variable and the file, so that a person knows where to change what."""
    return [
        Problem(
            f"{VARIABLE}: {place}{each.path}".removesuffix(": "),
            each.code,
            each.message,
            each.remedy,
            each.severity,
        )
        for each in problems
    ]
