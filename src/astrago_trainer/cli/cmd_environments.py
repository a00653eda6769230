"""`astrago environments`: the Python environments that stand in for images on this machine."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.doors import add_output

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from typing import Any

    from astrago_trainer.environments.installing import Progress

_EPILOG = """\
  astrago environments                      list them
  astrago environments install torch        install now, before a job needs it
  astrago environments add 'my/image*=/opt/env'
                                            use your own for these images
  astrago environments remove torch         free the space, or end a pattern

A job installs the environment of its image by itself when it is missing. They
lie in ASTRAGO_CACHE, else in ~/.cache/astrago-trainer.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    actions = ("list", "install", "add", "remove")
    parser.add_argument("action", nargs="?", choices=actions, default="list")
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="add: PATTERN=FOLDER; else the name in the list"
    )
    parser.add_argument(
        "-r",
        "--requirements",
        metavar="FILE",
        help="install: with the packages of this requirements file",
    )
    add_output(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    if (options.name is None) != (options.action == "list"):
        options.usage_error(f"{options.action} {'takes no' if options.name else 'needs a'} name")
    if options.action == "list":
        return _list(options.output)
    return {"install": _install, "add": _add, "remove": _remove}[options.action](options)


def _list(output: str) -> int:
    from astrago_trainer.cli.show import is_for_programs, show_lines, show_value, terminal_for

    rows = _rows()
    if is_for_programs(output):
        show_value({"items": rows}, output)
        return 0
    from astrago_trainer.cli.terminal import cut
    from astrago_trainer.cli.words import columns

    table = [["NAME", "CONTENT", "STATE", "SIZE", "IMAGES"]]
    for row in rows:
        table.append([row["name"], row["title"], _state(row), _size(row), row["images"]])
    terminal = terminal_for(output)
    # The last column is cut to 12 at most; what is still too wide goes from the content.
    taken = sum(max(len(row[place]) for row in table) for place in (0, 2, 3)) + 12 + 4 * 2
    for texts in table:
        texts[1] = cut(texts[1], max(terminal.width - taken, 12))
    show_lines(columns(table, terminal))
    return 0


def _state(row: dict[str, Any]) -> str:
    return str(row["state"]).removeprefix("installed ")


def _size(row: dict[str, Any]) -> str:
    if not row["bytes"]:
        return ""
    is_small = row["bytes"] < 10**9
    if row["is_estimate"]:
        amount = f"{row['bytes'] / 1e6:.0f} MB" if is_small else f"{row['bytes'] / 1e9:.0f} GB"
        return f"about {amount}"
    return f"{row['bytes'] / 1e6:.0f} MB" if is_small else f"{row['bytes'] / 1e9:.1f} GB"


def _rows() -> list[dict[str, Any]]:
    from astrago_trainer.environments.choosing import images_here
    from astrago_trainer.environments.folders import environment_of, installed
    from astrago_trainer.environments.known import KNOWN

    rows: list[dict[str, Any]] = [
        {
            "name": pattern,
            "title": "yours",
            "state": "ready",
            "bytes": 0,
            "is_estimate": False,
            "images": pattern,
            "folder": folder,
        }
        for pattern, folder in images_here().patterns.items()
    ]
    marks = dict(installed())
    listed = set()
    for known in KNOWN.values():
        if not known.locks:
            continue
        found = environment_of(known.name)
        listed.add(found.folder)
        mark = marks.get(found.folder, {})
        is_measured = bool(mark.get("is_measured"))  # an earlier release did not measure
        rows.append(
            {
                "name": known.name,
                "title": found.title,
                "state": "ready" if found.is_ready else "installed at first use",
                "bytes": mark["bytes"] if is_measured else known.size,
                "is_estimate": not is_measured,
                "images": ", ".join(known.images),
                "folder": str(found.folder),
            }
        )
    rows += [
        {
            "name": folder.name,
            "title": mark["title"],
            "state": "ready",
            "bytes": mark["bytes"],
            "is_estimate": not mark.get("is_measured"),
            "images": "jobs with these requirements" if mark["requirements"] else "",
            "folder": str(folder),
        }
        for folder, mark in marks.items()
        if folder not in listed
    ]
    return rows


def _install(options: argparse.Namespace) -> int:
    from astrago_trainer.cli.screen import Screen
    from astrago_trainer.core.spec.text import requirement_lines
    from astrago_trainer.environments.folders import environment_of
    from astrago_trainer.environments.installing import install
    from astrago_trainer.environments.known import KNOWN

    if options.name not in KNOWN:
        raise _unknown(options.name, [each.name for each in KNOWN.values()])
    requirements = ()
    if options.requirements is not None:
        from pathlib import Path

        from astrago_trainer.client.requests import read_script

        requirements = requirement_lines(read_script(Path(options.requirements)))
    environment = environment_of(options.name, requirements)
    if environment.is_ready:
        print(f"{environment.title} is ready: {environment.folder}")
        return 0
    screen = Screen()
    shown = -1

    def report(progress: Progress) -> None:
        nonlocal shown
        screen.status(progress.text())
        step = (progress.percent or 0) // 10
        if not screen.err.is_interactive and step != shown:
            shown = step
            screen.say(progress.text())

    try:
        install(environment, report)
    finally:
        screen.finish()
    print(f"{environment.title} is ready: {environment.folder}")
    return 0


def _add(options: argparse.Namespace) -> int:
    from astrago_trainer.core.errors import InvalidRequest, Problem
    from astrago_trainer.environments.choosing import parse_entry, read_added, write_added

    found = parse_entry(options.name, "PATTERN=FOLDER")
    if isinstance(found, Problem):
        raise InvalidRequest([found])
    pattern, folder = found
    write_added({**read_added(), pattern: folder})
    print(f"{pattern} runs with {folder}. A server that runs must be started again.")
    return 0


def _remove(options: argparse.Namespace) -> int:
    from astrago_trainer.environments.choosing import read_added, write_added
    from astrago_trainer.environments.folders import environment_of, environments_folder, installed
    from astrago_trainer.environments.installing import remove
    from astrago_trainer.environments.known import KNOWN

    added = read_added()
    if options.name in added:
        del added[options.name]
        write_added(added)
        print(f"{options.name} is removed from the list; its folder stays.")
        return 0
    names = {folder.name: folder for folder, _ in installed()}
    if options.name in KNOWN:
        folder = environment_of(options.name).folder
    elif options.name in names:
        folder = names[options.name]
    else:
        raise _unknown(options.name, [*KNOWN, *added, *names])
    if not (environments_folder() / folder.name).exists():
        print(f"{options.name} is not installed.")
        return 0
    remove(folder)
    print(f"{options.name} is removed: {folder}")
    return 0


def _unknown(name: str, known: list[str]) -> Exception:
    from astrago_trainer.core.errors import InvalidRequest, Problem

    text = f"there is no environment {name!r}."
    return InvalidRequest(
        [Problem("NAME", "FieldValueNotFound", text, f"There are: {', '.join(known)}.")]
    )
