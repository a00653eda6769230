"""Which cluster a command means: options for it, as kubectl has them."""

from __future__ import annotations

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    import argparse

    from astrago_trainer.engines.kubernetes.credentials import Access


def add_options(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="default: KUBECONFIG, else the account of this pod, else ~/.kube/config",
    )
    parser.add_argument(
        "--context", metavar="NAME", help="of the kubeconfig; default: its current one"
    )


def access(options: argparse.Namespace) -> Access:
    """Raises EngineUnavailable with what was looked for."""
    from pathlib import Path

    from astrago_trainer.engines.kubernetes.credentials import find_access

    file = Path(options.kubeconfig).expanduser() if options.kubeconfig else None
    return find_access(file, options.context)
