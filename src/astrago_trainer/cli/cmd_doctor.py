"""`astrago doctor`: what is missing here or in the cluster, and the command that mends it. No server is needed."""

from __future__ import annotations

import argparse
import os

from astrago_trainer.cli import cluster_access
from astrago_trainer.cli import data_folder as data
from astrago_trainer.cli.doors import add_output

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from astrago_trainer.doctor.findings import Finding

_EPILOG = """\
  astrago doctor                       this machine, for the local engine
  astrago doctor --engine kubernetes   the cluster that kubectl speaks to
  astrago doctor --json                for programs

exit codes: 0 jobs can run, 1 something is wrong, 2 wrong usage
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument(
        "--engine",
        choices=("local", "kubernetes"),
        help="what to look at; default: ASTRAGO_ENGINE, else local",
    )
    add_output(parser)
    parser.add_argument(
        "--json", dest="output", action="store_const", const="json", help="the same as -o json"
    )
    parser.add_argument(
        "--namespace",
        default="astrago-system",
        help="of the server in the cluster; default: astrago-system",
    )
    cluster_access.add_options(parser)
    data.add_options(parser)


def execute(options: argparse.Namespace) -> int:
    from astrago_trainer.cli.show import is_for_programs, show_lines, show_value, terminal_for
    from astrago_trainer.doctor.findings import State

    engine = options.engine or os.environ.get("ASTRAGO_ENGINE") or "local"
    is_cluster = engine == "kubernetes"
    findings = _cluster(options) if is_cluster else _machine(options)
    findings += _platform(is_cluster=is_cluster)
    if is_for_programs(options.output):
        show_value(_value(engine, findings), options.output)
    else:
        from astrago_trainer.cli.doctor_page import doctor_page

        show_lines(doctor_page(engine, findings, terminal_for(options.output)))
    return 1 if any(each.state is State.WRONG for each in findings) else 0


def _machine(options: argparse.Namespace) -> list[Finding]:
    from astrago_trainer.doctor.machine_checks import check_machine
    from astrago_trainer.doctor.machine_facts import read_machine

    return check_machine(read_machine(data.data_folder(options), data.database(options)))


def _platform(*, is_cluster: bool) -> list[Finding]:
    """A cluster may have runtimes that the catalogue does not know."""
    from astrago_trainer import catalogue
    from astrago_trainer.doctor.platform_checks import check_platform, read_platform

    return check_platform(read_platform(None if is_cluster else catalogue.names()))


def _cluster(options: argparse.Namespace) -> list[Finding]:
    import asyncio

    from astrago_trainer.doctor.findings import wrong
    from astrago_trainer.engines.base import EngineRejected, EngineUnavailable

    try:
        return asyncio.run(_look(options))
    except (EngineRejected, EngineUnavailable) as error:
        mend = ("kubectl config get-contexts", "export KUBECONFIG=FILE")
        return [wrong("cluster", f"it cannot be asked: {error}", *mend)]


async def _look(options: argparse.Namespace) -> list[Finding]:
    from astrago_trainer.doctor.cluster_checks import check_cluster
    from astrago_trainer.doctor.cluster_facts import read_cluster
    from astrago_trainer.install.cluster import InstallClient

    access = cluster_access.access(options)
    client = InstallClient(access)
    try:
        return check_cluster(await read_cluster(client, access.server, options.namespace))
    finally:
        await client.close()


def _value(engine: str, findings: list[Finding]) -> dict[str, object]:
    return {
        "engine": engine,
        "findings": [
            {
                "subject": each.subject,
                "state": each.state.value,
                "text": each.text,
                "mend": list(each.mend),
            }
            for each in findings
        ],
    }
