"""Reading YAML and JSON that a stranger may have written, and writing YAML that others can read.

`reading` guards the door, `tree` counts and checks what comes through it, `scalars` says what a
plain word means, `writing` is the way back. Nothing in here knows what a TrainJob is.
"""

from astrago_trainer.manifests.reading import (
    MAX_BYTES,
    items_of,
    load_documents,
    one_of_kind,
    parse_documents,
    parse_json,
)
from astrago_trainer.manifests.writing import dump_yaml

__all__ = [
    "MAX_BYTES",
    "dump_yaml",
    "items_of",
    "load_documents",
    "one_of_kind",
    "parse_documents",
    "parse_json",
]
