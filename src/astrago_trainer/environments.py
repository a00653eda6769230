"""Which Python environment stands in for which image on the local engine.

ASTRAGO_ENVIRONMENTS is a list of `PATTERN=FOLDER`, separated by `;`: `pytorch/*=/opt/torch;*=/opt/base`. The first
pattern that fits an image wins; where none does, it is the environment that astrago runs in. A folder is that of an
environment, or of programs; several, one after the other on PATH, are joined by `:`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.engines.local.plan import Images

VARIABLE = "ASTRAGO_ENVIRONMENTS"


def images_here() -> Images:
    """Raises InvalidRequest with everything that is wrong in the variable."""
    patterns: dict[str, str] = {}
    problems = []
    for entry in filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(";"))):
        pattern, equals, folders = entry.partition("=")
        places = [_programs(each) for each in folders.split(":") if each]
        missing = [each for each in places if not Path(each).is_dir()]
        if not equals or not pattern or not places:
            message = f"must be PATTERN=FOLDER, as in pytorch/*=/opt/torch; found {entry!r}."
            problems.append(Problem(VARIABLE, "FieldValueInvalid", message))
        elif missing:
            message = f"there is no folder {missing[0]}, which is to stand in for {pattern}."
            remedy = "Name the folder of a Python environment, or of its programs."
            problems.append(Problem(VARIABLE, "FieldValueInvalid", message, remedy))
        else:
            patterns[pattern] = ":".join(places)
    if problems:
        raise InvalidRequest(problems)
    return Images(str(Path(sys.executable).parent), patterns)


def _programs(folder: str) -> str:
    place = Path(folder).expanduser().absolute()
    return str(place / "bin" if (place / "bin").is_dir() else place)
