"""`astrago runtimes`: the catalogue, one of its entries in plain words, or its files as shipped."""

from __future__ import annotations

import argparse
import sys

from astrago_trainer.cli.cmd_preview import VERSIONS

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from collections.abc import Iterator

_WIDE = 10_000
_EPILOG = """\
  astrago runtimes                  list
  astrago runtimes NAME             what it sets, in plain words
  astrago runtimes NAME -o yaml     its manifest, for kubectl apply -f -
  astrago runtimes NAME --sample    a TrainJob that runs on it
  astrago runtimes NAME --script    the training script of that sample
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("name", nargs="?", metavar="NAME", help="one of them")
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "wide", "yaml", "json"),
        default="table",
        help="default: table",
    )
    files = parser.add_mutually_exclusive_group()
    files.add_argument("--sample", action="store_true", help="print its sample TrainJob")
    files.add_argument("--script", action="store_true", help="print its training script")
    parser.add_argument(
        "--trainer-version",
        choices=VERSIONS,
        default=VERSIONS[0],
        help="of --sample: release of Kubeflow Trainer (default: %(default)s)",
    )
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    if options.name is None:
        if options.sample or options.script:
            options.usage_error("--sample and --script want the NAME of a runtime")
        sys.stdout.writelines(_list(options.output))
    else:
        sys.stdout.writelines(_one(options))
    return 0


def _one(options: argparse.Namespace) -> Iterator[str]:
    from astrago_trainer import catalogue

    if options.script:
        yield catalogue.script(options.name)
    elif options.sample and options.output == "json":
        yield _json(catalogue.sample_trainjob(options.name, options.trainer_version))
    elif options.sample:
        yield catalogue.sample_text(options.name, options.trainer_version)
    elif options.output == "json":
        yield _json(catalogue.load_runtime(options.name))
    elif options.output == "yaml":
        yield catalogue.runtime_text(options.name)
    else:
        from astrago_trainer.cli.runtime_page import runtime_page
        from astrago_trainer.cli.terminal import Terminal

        entry = catalogue.get_runtime(options.name)
        terminal = Terminal(sys.stdout)
        if options.output == "wide":
            terminal.width = _WIDE
        for line in runtime_page(entry, catalogue.load_runtime(options.name), terminal):
            yield f"{line}\n"


def _list(output: str) -> Iterator[str]:
    from textwrap import wrap

    from astrago_trainer import catalogue
    from astrago_trainer.cli.terminal import Terminal, clean, table

    entries = catalogue.runtimes()
    if output in ("json", "yaml"):
        listed = [
            {
                "name": each.name,
                "framework": each.framework,
                "nodes": each.nodes,
                "image": each.image,
                "summary": each.summary,
            }
            for each in entries
        ]
        from astrago_trainer.manifests import dump_yaml

        yield _json(listed) if output == "json" else dump_yaml(listed)
        return
    terminal = Terminal(sys.stdout)
    if output == "wide":
        terminal.width = _WIDE
    rows = [["NAME", "FRAMEWORK", "NODES", "IMAGE"]]
    rows += [[each.name, each.framework, str(each.nodes), each.image] for each in entries]
    heading, *lines = table(rows, terminal)
    yield f"{heading}\n"
    for entry, line in zip(entries, lines, strict=True):
        yield f"{line}\n"
        for text in wrap(clean(entry.summary), terminal.width - 4):
            yield terminal.paint(f"    {text}", "dim") + "\n"
    yield "\nastrago runtimes NAME says more about one of them.\n"


def _json(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
