"""Which Python environment stands in for the image of a container on the local engine.

In this order: a pattern of ASTRAGO_ENVIRONMENTS or of `astrago environments add`; the environment that astrago itself
runs in, for code that needs no packages; the user's active environment, where it has the framework; an environment of
the table, which is installed when the first job needs it.

ASTRAGO_ENVIRONMENTS is a list of `PATTERN=FOLDER`, separated by `;`: `pytorch/*=/opt/torch;*=/opt/base`. The first
pattern that fits an image wins. A folder is that of an environment, or of programs; several, one after the other on
PATH, are joined by `:`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.engines.local.plan import Code, Images, Programs
from astrago_trainer.environments.folders import environment_of
from astrago_trainer.environments.installing import command_of, installer_env
from astrago_trainer.environments.known import KNOWN, Known, known_for
from astrago_trainer.environments.needs import needs_of

VARIABLE = "ASTRAGO_ENVIRONMENTS"
_HERE = str(Path(sys.executable).parent)


def images_here() -> Images:
    """As this machine and its user have it; raises InvalidRequest with everything that is wrong in the settings."""
    return Chosen({**_from_variable(os.environ.get(VARIABLE, "")), **read_added()})


class Chosen(Images):
    """See the module."""

    def __init__(self, patterns: Mapping[str, str], active: Iterable[str] | None = None) -> None:
        super().__init__(_HERE, patterns)
        self.active = tuple(_active_environments() if active is None else active)
        """Folders of environments that the user has made, the nearest first."""

    def programs_for(self, image: str, code: Code) -> Programs:
        name = image.lower()
        for pattern, folder in self.patterns.items():
            if fnmatchcase(name, pattern.lower()):
                return Programs(folder)
        needs = needs_of(code.files, code.commands, has_other_code=code.has_other)
        known = known_for(image) or KNOWN.get(needs.framework)
        if code.requirements:
            # Without a mention of the framework the requirements alone are installed: a resolver brings the rest.
            base = known if known is not None and needs.framework else KNOWN["python"]
            return _provided(base, code.requirements)
        if not needs.packages:
            return Programs(_HERE)
        if known is None:
            known = KNOWN["torch"]
        return self._active(known) or _provided(known)

    def _active(self, known: Known) -> Programs | None:
        found = (folder for folder in self.active if has_module(folder, known.module))
        folder = next(found, None)
        if (
            folder is None or known.name == "horovod"
        ):  # mpirun must be there too: the table's has it
            return None
        return Programs(f"{folder}/bin")


def _provided(known: Known, requirements: tuple[str, ...] = ()) -> Programs:
    environment = environment_of(known.name, requirements)
    if environment.is_ready:
        return Programs(str(environment.programs))
    return Programs(
        str(environment.programs),
        {
            "title": environment.title,
            "command": command_of(environment),
            "env": installer_env(os.environ),
        },
    )


def has_module(folder: str, module: str) -> bool:
    """Without starting its interpreter: every job asks."""
    return any(Path(folder).glob(f"lib/python3*/site-packages/{module}/__init__.py"))


def _active_environments() -> list[str]:
    found = [os.environ.get(name, "") for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    return list(dict.fromkeys(each for each in (*found, sys.prefix) if each))


# --- patterns that people gave


def added_path() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "astrago" / "environments.json"


def read_added() -> dict[str, str]:
    """What `astrago environments add` wrote: pattern -> folders of programs."""
    try:
        found = json.loads(added_path().read_text("utf-8"))
        return {str(pattern): str(folder) for pattern, folder in dict(found).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        raise InvalidRequest(
            [
                Problem(
                    str(added_path()),
                    "FieldValueInvalid",
                    f"is no list of environments: {type(error).__name__}.",
                    "Correct or delete the file, and add them again: astrago environments add PATTERN=FOLDER.",
                )
            ]
        ) from error


def write_added(patterns: Mapping[str, str]) -> None:
    path = added_path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(dict(patterns), indent=1), "utf-8")
    unfinished.replace(path)


def _from_variable(text: str) -> dict[str, str]:
    patterns: dict[str, str] = {}
    problems: list[Problem] = []
    for entry in filter(None, map(str.strip, text.split(";"))):
        found = parse_entry(entry, VARIABLE)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            patterns.update([found])
    if problems:
        raise InvalidRequest(problems)
    return patterns


def parse_entry(entry: str, where: str) -> tuple[str, str] | Problem:
    """`PATTERN=FOLDER`, as pattern and folders of programs."""
    pattern, equals, folders = entry.partition("=")
    places = [_programs(each) for each in folders.split(":") if each]
    missing = [each for each in places if not Path(each).is_dir()]
    if not equals or not pattern or not places:
        message = f"must be PATTERN=FOLDER, as in pytorch/*=/opt/torch; found {entry!r}."
        return Problem(where, "FieldValueInvalid", message)
    if missing:
        message = f"there is no folder {missing[0]}, which is to stand in for {pattern}."
        remedy = "Name the folder of a Python environment, or of its programs."
        return Problem(where, "FieldValueInvalid", message, remedy)
    return pattern, ":".join(places)


def _programs(folder: str) -> str:
    place = Path(folder).expanduser().absolute()
    return str(place / "bin" if (place / "bin").is_dir() else place)
