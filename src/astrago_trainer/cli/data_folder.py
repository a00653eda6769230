"""Where the data of this user is, and which database belongs to it."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    import argparse
    from pathlib import Path


def add_options(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        help="data folder; default: ASTRAGO_DATA, else astrago in the user's data home",
    )
    parser.add_argument(
        "--database",
        metavar="URL",
        help="postgresql://… or sqlite:///…; default: ASTRAGO_DATABASE, else the data folder's astrago.db",
    )


def data_folder(options: argparse.Namespace) -> Path:
    from pathlib import Path

    named = options.data or os.environ.get("ASTRAGO_DATA")
    if named:
        return Path(named).expanduser().absolute()
    home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home).expanduser() / "astrago"


def database(options: argparse.Namespace) -> str | None:
    return options.database or os.environ.get("ASTRAGO_DATABASE") or None
