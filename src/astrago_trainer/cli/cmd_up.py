"""`astrago up`: the server, its API and an engine, until Ctrl-C."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.data_folder import add_options, data_folder, database

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from astrago_trainer.server.context import OwnRights

_EPILOG = """\
  astrago up             on http://127.0.0.1:8000, for this machine alone
  astrago up --port 0    on a free port
  ASTRAGO_AUTH=tokens ASTRAGO_LOCAL_USERS=trusted astrago up --host 0.0.0.0
                         for others, who need a token and trust each other:
                         all jobs run as your user
  astrago up --engine kubernetes
                         jobs run on the cluster of KUBECONFIG, with your rights
  ASTRAGO_AUTH=tokens astrago up --engine kubernetes --host 0.0.0.0
                         the same for others, who need a token

Other settings are variables that begin with ASTRAGO_; docs/server.md lists
them. Jobs outlive the server.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("--host", metavar="ADDRESS", help="default: ASTRAGO_HOST, else 127.0.0.1")
    parser.add_argument("--port", type=int, help="default: ASTRAGO_PORT, else 8000; 0: a free one")
    parser.add_argument(
        "--engine",
        choices=("local", "kubernetes"),
        help="what runs jobs; default: ASTRAGO_ENGINE, else local",
    )
    add_options(parser)


def execute(options: argparse.Namespace) -> int:
    from astrago_trainer.server.settings import environment, read_settings

    settings = read_settings(
        environment(),
        host=options.host,
        port=options.port,
        engine=options.engine,
        data=data_folder(options),
        database=database(options),
    )
    # Only now: a mistake in the settings is told at once, and these take a second.
    from astrago_trainer.cli.terminal import clean
    from astrago_trainer.server.log_lines import set_up_logging
    from astrago_trainer.server.run import run_server

    set_up_logging(settings.log)

    def tell(address: str, rights: OwnRights | None) -> None:
        line = f"astrago answers at {address} ({settings.engine} engine, data in {settings.data})"
        if rights is not None:
            line += (
                f"\nNo token is needed: requests use the rights of {clean(rights.user)} "
                f"(context {clean(rights.context)}), from this machine only."
            )
        print(line, flush=True)

    run_server(settings, on_ready=tell)
    return 0
