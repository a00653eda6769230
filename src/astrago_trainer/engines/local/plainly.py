"""Where a container cannot have its own view: paths and names of the pod are replaced by those of the machine.

Only in what we hand over, the command and the environment: a path that a program makes up itself is not found. The
job's events say that it ran this way.
"""

from __future__ import annotations

import re

from astrago_trainer.engines.local.container import Start


def translate(what: Start, names: dict[str, str]) -> None:
    """Changes `what` so that it means the same without mounts and own host names."""
    places = {path.rstrip("/"): source for source, path, _ in what.mounts}
    places.update({path: source for source, path in what.files if path != "/etc/hosts"})
    what.command = [_replace(word, places, names) for word in what.command]
    what.env = {name: _replace(value, places, names) for name, value in what.env.items()}
    if what.folder:
        what.folder = _replace(what.folder, places, names)


def _replace(text: str, places: dict[str, str], names: dict[str, str]) -> str:
    """Names first: the places of volumes have names of pods in them."""
    for name in sorted((each for each in names if "." in each), key=len, reverse=True):
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", names[name], text)
    for path in sorted(places, key=len, reverse=True):
        place = places[path].replace("\\", "\\\\")
        text = re.sub(rf"(?<![\w./]){re.escape(path)}(?![\w.-])", place, text)
    return text
