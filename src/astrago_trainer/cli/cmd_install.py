"""`astrago install`: what a cluster needs, printed, compared with what is there, or applied."""

from __future__ import annotations

import argparse
import sys

from astrago_trainer.cli import cluster_access

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from collections.abc import Mapping

    from astrago_trainer.install.applying import Applied
    from astrago_trainer.install.cluster import InstallClient
    from astrago_trainer.install.manifests import Installation

_EPILOG = """\
  astrago install                        print the YAML; nothing is asked
  astrago install --diff                 what --apply would change
  docker build -t registry.example.org/astrago-trainer:0.1.0 .
  docker push registry.example.org/astrago-trainer:0.1.0
  astrago install --apply --image registry.example.org/astrago-trainer:0.1.0
                                         apply it, and wait until the server
                                         answers; again: nothing changes
  astrago install --apply --set ASTRAGO_SIGNUP=open --storage 100Gi
                                         with the image that is installed
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
    parser.add_argument(
        "--image",
        help="of the server; default: the one that is installed. None is published: build it",
    )
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
    parser.add_argument(
        "--force", action="store_true", help="apply although the cluster has no volume or image"
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=180.0,
        metavar="SECONDS",
        help="for the server to answer after --apply; 0: do not wait; default: 180",
    )
    cluster_access.add_options(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    from astrago_trainer.install.manifests import installation_objects, server_settings

    wanted = _installation(options)
    objects = installation_objects(wanted)
    _check_settings(server_settings(objects))
    if not (options.apply or options.diff):
        from astrago_trainer.manifests import dump_yaml

        sys.stdout.write("---\n".join(dump_yaml(each) for each in objects))
        return 0
    import asyncio

    return asyncio.run(_apply(options, wanted))


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
    if variables.get(f"{PREFIX}AUTH") != "tokens":
        message = "without authentication everybody in the cluster would have the server's rights."
        raise InvalidRequest(
            [Problem("--set", "FieldValueForbidden", message, f"Leave out {PREFIX}AUTH.")]
        )


def _nearest(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1)
    return f"Did you mean {close[0]}?" if close else "docs/server.md lists them."


async def _apply(options: argparse.Namespace, wanted: Installation) -> int:
    from dataclasses import replace

    from astrago_trainer.cli.install_page import (
        applied_lines,
        blocker_lines,
        heading,
        next_steps,
        summary,
    )
    from astrago_trainer.cli.terminal import Terminal
    from astrago_trainer.core.errors import InvalidRequest
    from astrago_trainer.install.applying import Outcome, apply_all
    from astrago_trainer.install.cluster import InstallClient
    from astrago_trainer.install.manifests import installation_objects
    from astrago_trainer.install.prerequisites import check_operators, find_operators
    from astrago_trainer.install.server_state import wait_for_server

    reached = cluster_access.access(options)
    terminal = Terminal(sys.stdout)
    client = InstallClient(reached)
    done: list[Applied] = []
    try:
        found = await find_operators(client)
        if problems := check_operators(found):
            raise InvalidRequest(problems)
        print(heading(reached.server, found), flush=True)
        if options.image is None:
            wanted = replace(wanted, image=await _installed_image(client, options) or wanted.image)
        if options.apply:
            await _check_ground(client, wanted, options)
            await _warn_of_operators(client, reached.server, options.namespace)
        async for each in apply_all(
            client,
            installation_objects(wanted),
            is_dry=options.diff,
            is_forced=options.force_conflicts,
        ):
            done.append(each)
            if options.apply or each.outcome is not Outcome.UNCHANGED:
                sys.stdout.writelines(f"{line}\n" for line in applied_lines(each, terminal))
                sys.stdout.flush()
        print(summary(done, is_dry=options.diff), flush=True)
        if any(each.outcome is Outcome.REFUSED for each in done):
            return 1
        if options.diff:
            return 0
        if options.wait > 0:
            print(f"Waiting for the server, {options.wait:g} s at most.", file=sys.stderr)
            is_ready, blockers = await wait_for_server(client, options.namespace, options.wait)
            if not is_ready:
                lines = blocker_lines(blockers, options, Terminal(sys.stderr))
                sys.stderr.writelines(f"{line}\n" for line in lines)
                return 1
            print(f"The server answers in the namespace {options.namespace}.", flush=True)
    finally:
        await client.close()
    steps = next_steps(options.namespace, Terminal(sys.stderr))
    sys.stderr.writelines(f"{line}\n" for line in steps)
    return 0


async def _installed_image(client: InstallClient, options: argparse.Namespace) -> str:
    """Of the server that is there; empty where there is none, or it may not be read."""
    from astrago_trainer.engines.base import EngineError
    from astrago_trainer.install.server_state import read_server

    try:
        return (await read_server(client, options.namespace)).image
    except EngineError:
        return ""


async def _check_ground(
    client: InstallClient, wanted: Installation, options: argparse.Namespace
) -> None:
    """Raises InvalidRequest for what would keep the server from running; with --force it is said, and no more."""
    from astrago_trainer.core.errors import InvalidRequest, Problem
    from astrago_trainer.install.preflight import check_ground, read_ground

    ground = await read_ground(client, options.namespace)
    problems = check_ground(ground, wanted, is_image_named=options.image is not None)
    if not problems:
        return
    if not options.force:
        hint = Problem(
            "--force", "not-applied", "nothing was applied; --force applies it all the same."
        )
        raise InvalidRequest([*problems, hint])
    for each in problems:
        print(f"{each.path}: {each.message} {each.remedy}", file=sys.stderr)


async def _warn_of_operators(client: InstallClient, server: str, namespace: str) -> None:
    """The server would run, and jobs would not: what the doctor finds wrong with the Trainer and its parts."""
    from astrago_trainer.doctor import operator_checks
    from astrago_trainer.doctor.cluster_facts import read_cluster
    from astrago_trainer.doctor.findings import State

    facts = await read_cluster(client, server, namespace)
    for check in (
        operator_checks.check_controllers,
        operator_checks.check_webhooks,
        operator_checks.check_probe,
    ):
        found = check(facts)
        if found.state is State.WRONG:
            fixes = "".join(f" → {each}" for each in found.mend[:1])
            print(f"warning: {found.subject}: {found.text}{fixes}", file=sys.stderr)
