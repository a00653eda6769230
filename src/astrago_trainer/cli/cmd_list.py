"""`astrago list`: the jobs, newest first."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.doors import add_options, add_output, open_door

PHASES = (
    "Queued", "Pending", "Pulling", "Initializing", "Running", "Restarting", "Suspended", "Complete",
    "Failed", "Deleting",
)  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", default="", metavar="TEXT", help="part of a name")
    parser.add_argument(
        "--phase",
        action="append",
        default=[],
        choices=PHASES,
        metavar="PHASE",
        help="as in the list",
    )
    parser.add_argument("--limit", type=_limit, default=50, metavar="N", help="at most (50)")
    parser.add_argument("-A", "--all-namespaces", action="store_true")
    add_output(parser)
    add_options(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    from contextlib import closing

    from astrago_trainer.cli.show import is_for_programs, show_lines, show_value, terminal_for

    with closing(open_door(options)) as door:
        page = door.jobs(
            limit=options.limit,
            token=None,
            phases=options.phase,
            text=options.text,
            everywhere=options.all_namespaces,
        )
        namespace = door.namespace
    if is_for_programs(options.output):
        show_value(page, options.output)
        return 0
    from astrago_trainer.cli.job_table import empty_list, job_table

    terminal = terminal_for(options.output)
    if not page["items"]:
        is_filtered = bool(options.phase or options.text)
        show_lines(empty_list(None if options.all_namespaces else namespace, is_filtered))
        return 0
    show_lines(
        job_table(
            page["items"],
            terminal,
            is_wide=options.output == "wide",
            has_namespaces=options.all_namespaces,
        )
    )
    if page["next_page_token"] is not None:
        show_lines(
            [terminal.paint(f"… the newest {len(page['items'])}; --limit shows more", "dim")]
        )
    return 0


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= 500:
        raise argparse.ArgumentTypeError(f"must be 1 to 500, not {text!r}")
    return int(text)
