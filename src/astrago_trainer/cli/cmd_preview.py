"""`astrago preview`: what a job will become, before anything is created."""

from __future__ import annotations

import argparse
import sys

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from astrago_trainer.core.preview import Preview

RETELLINGS = ("cli", "curl", "python", "trainjob")
VERSIONS = ("2.1", "2.2", "2.3")
"""Written here too, so that `--help` need not import the merge; a test compares them."""

_FORMS = """\
forms:
  astrago preview -f job.yaml
      a job file, a request body of the API, or a TrainJob
  astrago preview --runtime FILE --trainjob FILE
      two manifests; --runtime takes a name of `astrago runtimes`, too
  astrago preview -f job.yaml --as curl
      the same job as a text to paste: cli, curl, python or trainjob
  astrago preview --jsonl < pairs > answers
      for programs: one {"runtime":…,"trainJob":…} a line
A TrainJob that comes without its runtime finds it in the catalogue, by
spec.runtimeRef.name. FILE may be - for standard input.

exit codes: 0 it would be accepted, 1 it has errors, 2 wrong usage;
            --jsonl ends with 0 when each line has its answer
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _FORMS
    parser.add_argument("-f", "--file", metavar="FILE", help="job file, request body or TrainJob")
    parser.add_argument("--runtime", metavar="FILE|NAME", help="a runtime's manifest or name")
    parser.add_argument("--trainjob", metavar="FILE", help="a TrainJob's manifest")
    parser.add_argument("--jsonl", action="store_true", help="read pairs from standard input")
    parser.add_argument(
        "--as",
        dest="form",
        choices=RETELLINGS,
        help="the job of -f as a text to paste, instead of what it becomes",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "wide", "yaml", "json"),
        default="table",
        help="table (default), wide: nothing shortened, yaml: each line with its origin, json",
    )
    parser.add_argument(
        "--trainer-version",
        choices=VERSIONS,
        default=VERSIONS[0],
        help="release of Kubeflow Trainer (default: %(default)s)",
    )
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    _check_usage(options)
    if options.jsonl:
        from astrago_trainer.cli.preview_stream import answer_lines

        answer_lines(sys.stdin.buffer, sys.stdout.buffer, options.trainer_version)
        return 0

    if options.form:
        from astrago_trainer.cli.preview_retelling import retold

        sys.stdout.write(retold(options.file, options.form, options.trainer_version))
        return 0

    from astrago_trainer.cli.preview_input import read_preview

    preview = read_preview(
        file=options.file or options.trainjob,
        runtime=options.runtime,
        version=options.trainer_version,
        is_trainjob=options.trainjob is not None,
    )
    show(preview, options.output)
    return 1 if preview.is_refused else 0


def show(preview: Preview, output: str) -> None:
    """Write a preview in one of the forms; problems beside YAML go to standard error."""
    from astrago_trainer.cli.terminal import Terminal, problem_lines

    if output == "json":
        from astrago_trainer.cli.preview_text import preview_json

        lines = [preview_json(preview)]
    elif output == "yaml":
        from astrago_trainer.cli.preview_text import annotated_yaml

        lines = annotated_yaml(preview)
        errors = problem_lines(preview.problems, Terminal(sys.stderr))
        sys.stderr.writelines(f"{line}\n" for line in errors)
    else:
        from astrago_trainer.cli.preview_table import preview_table

        lines = preview_table(preview, Terminal(sys.stdout), is_wide=output == "wide")
    sys.stdout.writelines(f"{line}\n" for line in lines)


def _check_usage(options: argparse.Namespace) -> None:
    given = [bool(options.file), bool(options.trainjob), options.jsonl]
    if sum(given) != 1:
        options.usage_error(
            "give one of -f FILE, --trainjob FILE and --jsonl"
            if not any(given)
            else "-f, --trainjob and --jsonl exclude each other"
        )
    if options.jsonl and (options.runtime or options.output != "table"):
        options.usage_error("--jsonl takes --trainer-version only")
    if options.form and (not options.file or options.runtime or options.output != "table"):
        options.usage_error("--as takes -f FILE and --trainer-version only")
    if options.runtime == "-" and "-" in (options.file, options.trainjob):
        options.usage_error("standard input can be one file only")
