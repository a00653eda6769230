"""`astrago db`: backups of the database, one format for SQLite and PostgreSQL, and its upgrade."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.data_folder import add_options, data_folder, database

_EPILOG = """\
  astrago db backup FILE              all of it; others may go on working
  astrago db restore FILE             into an empty database of either kind
  astrago db restore FILE --replace   in place of what is there
  astrago db upgrade                  tables as this program wants them
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("action", choices=("backup", "restore", "upgrade"))
    parser.add_argument("file", nargs="?", metavar="FILE", help="the backup")
    parser.add_argument(
        "--replace",
        action="store_true",
        help="restore: an SQLite file that is there is set aside, tables of PostgreSQL go",
    )
    add_options(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    if (options.file is None) != (options.action == "upgrade"):
        wants = "takes no FILE" if options.action == "upgrade" else "wants the FILE of the backup"
        options.usage_error(f"{options.action} {wants}")
    import asyncio
    from pathlib import Path

    from astrago_trainer.store import backup, database_url

    url = database_url(data_folder(options), database(options))
    if options.action == "upgrade":
        before, after = asyncio.run(backup.upgrade_database(url))
        print(f"schema {after}" if before == after else f"schema {before} became {after}")
        return 0
    file = Path(options.file)
    if options.action == "backup":
        made = asyncio.run(backup.back_up(url, file))
        print(f"{file}: {made.jobs} jobs, {made.rows} rows, schema {made.version}")
        return 0
    made = asyncio.run(backup.restore(url, file, replace=options.replace))
    print(f"restored {made.jobs} jobs, {made.rows} rows from {file}")
    return 0
