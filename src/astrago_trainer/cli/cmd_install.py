"""`astrago install`: what a cluster needs, printed, compared with what is there, or applied."""

from __future__ import annotations

import argparse
import sys

from astrago_trainer.cli import cluster_access

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from collections.abc import Mapping

    from astrago_trainer.install.applying import Applied
    from astrago_trainer.install.manifests import Installation, Json

_EPILOG = """\
  astrago install                        print the YAML; nothing is asked
  astrago install --diff                 what --apply would change
  astrago install --apply                apply it; again: nothing changes
  astrago install --apply --image registry.example.org/astrago-trainer:0.1.0 \\
      --set ASTRAGO_SIGNUP=open --storage 100Gi
  astrago install | kubectl delete -f -  take it away, with the server's data

Kubeflow Trainer comes first; where it is missing, the command for it is told.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    verbs = parser.add_mutually_exclusive_group()
    verbs.add_argument("--apply", action="store_true", help="apply it to the cluster")
    verbs.add_argument("--diff", action="store_true", help="show what would change")
    parser.add_argument(
        "--namespace", default="astrago-system", help="of the server; default: astrago-system"
    )
    parser.add_argument("--image", help="of the server; default: astrago-trainer of this version")
    parser.add_argument(
        "--storage",
        default="20Gi",
        metavar="SIZE",
        help="for database and logs; none: they go with the pod; default: 20Gi",
    )
    parser.add_argument(
        "--storage-class", metavar="NAME", help="default: the one that the cluster takes"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="settings",
        help="a variable of the server (docs/server.md); may be given again",
    )
    parser.add_argument(
        "--force-conflicts", action="store_true", help="take over what others have set"
    )
    cluster_access.add_options(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    from astrago_trainer.install.manifests import installation_objects, server_settings

    objects = installation_objects(_installation(options))
    _check_settings(server_settings(objects))
    if not (options.apply or options.diff):
        from astrago_trainer.manifests import dump_yaml

        sys.stdout.write("---\n".join(dump_yaml(each) for each in objects))
        return 0
    import asyncio

    return asyncio.run(_apply(options, objects))


def _installation(options: argparse.Namespace) -> Installation:
    from astrago_trainer.install.manifests import IMAGE, Installation

    settings = {}
    for each in options.settings:
        name, equals, value = each.partition("=")
        if not equals:
            options.usage_error(f"--set wants NAME=VALUE, not {each!r}")
        settings[name] = value
    return Installation(
        namespace=options.namespace,
        image=IMAGE if options.image is None else options.image,
        storage=options.storage,
        storage_class=options.storage_class,
        settings=settings,
    )


def _check_settings(variables: Mapping[str, str]) -> None:
    """As the server will read them: a mistake is told here, not in a pod that does not start."""
    from dataclasses import fields

    from astrago_trainer.core.errors import InvalidRequest, Problem
    from astrago_trainer.server.settings import PREFIX, ServerSettings, read_settings

    known = [f"{PREFIX}{each.name.upper()}" for each in fields(ServerSettings)]
    problems = [
        Problem("--set", "unknown-setting", f"the server knows no {name}.", _nearest(name, known))
        for name in variables
        if name.startswith(PREFIX) and name not in known
    ]
    if problems:
        raise InvalidRequest(problems)
    read_settings(variables)


def _nearest(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1)
    return f"Did you mean {close[0]}?" if close else "docs/server.md lists them."


async def _apply(options: argparse.Namespace, objects: list[Json]) -> int:
    from astrago_trainer.cli.install_page import applied_lines, heading, next_steps, summary
    from astrago_trainer.cli.terminal import Terminal
    from astrago_trainer.core.errors import InvalidRequest
    from astrago_trainer.install.applying import Outcome, apply_all
    from astrago_trainer.install.cluster import InstallClient
    from astrago_trainer.install.prerequisites import check_operators, find_operators

    reached = cluster_access.access(options)
    terminal = Terminal(sys.stdout)
    client = InstallClient(reached)
    done: list[Applied] = []
    try:
        found = await find_operators(client)
        if problems := check_operators(found):
            raise InvalidRequest(problems)
        print(heading(reached.server, found))
        async for each in apply_all(
            client, objects, is_dry=options.diff, is_forced=options.force_conflicts
        ):
            done.append(each)
            if options.apply or each.outcome is not Outcome.UNCHANGED:
                sys.stdout.writelines(f"{line}\n" for line in applied_lines(each, terminal))
                sys.stdout.flush()
    finally:
        await client.close()
    print(summary(done, is_dry=options.diff))
    if any(each.outcome is Outcome.REFUSED for each in done):
        return 1
    if options.apply:
        steps = next_steps(options.namespace, Terminal(sys.stderr))
        sys.stderr.writelines(f"{line}\n" for line in steps)
    return 0
