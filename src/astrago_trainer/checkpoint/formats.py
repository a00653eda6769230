"""How a state becomes bytes and comes back: raw bytes, torch.save, or pickle.

torch is never imported for its own sake: a state with tensors can only come from a program that has imported it.
Reading is careful unless told otherwise, because a pickle can run any code: torch loads weights only, and a pickle
gives plain Python values only.
"""

from __future__ import annotations

import importlib
import io
import pickle
import sys
from pathlib import Path
from typing import Any, BinaryIO, cast

from .durable import HashingFile
from .errors import LoadFailed

SUFFIXES = {"bytes": "bin", "torch": "pt", "pickle": "pkl"}
_BUFFER = 1 << 20  # for the many small pieces between the large ones, which go past it
_PROTOCOL = 5  # of Python 3.8 and later; large buffers are written without a copy


def format_of(state: object) -> str:
    if isinstance(state, (bytes, bytearray, memoryview)):
        return "bytes"
    return "torch" if "torch" in sys.modules else "pickle"


def dump(state: object, kind: str, file: HashingFile) -> None:
    """Write the state; what the disk refuses is raised as the disk said it."""
    writer = io.BufferedWriter(file, _BUFFER)
    try:
        if kind == "bytes":
            writer.write(cast(bytes, state))
        elif kind == "torch":
            importlib.import_module("torch").save(state, writer)
        else:
            pickle.dump(state, writer, protocol=_PROTOCOL)
        writer.flush()
    except BaseException:
        file.close()  # else the writer would flush its rest when it is collected
        if file.failure is not None:
            raise file.failure from None
        raise
    writer.detach()


def load(path: Path, kind: str, *, trusted: bool, map_location: Any) -> Any:
    if kind == "bytes":
        return path.read_bytes()
    if kind == "torch":
        return _load_torch(path, trusted=trusted, map_location=map_location)
    with path.open("rb") as file:
        return pickle.load(file) if trusted else _PlainUnpickler(file).load()  # noqa: S301 - see trusted


def _load_torch(path: Path, *, trusted: bool, map_location: Any) -> Any:
    torch = importlib.import_module("torch")
    try:
        return torch.load(path, map_location=map_location, weights_only=not trusted)
    except pickle.UnpicklingError as error:
        if trusted:
            raise
        raise LoadFailed(_refusal(path, "tensors and plain values", str(error))) from error


class _PlainUnpickler(pickle.Unpickler):
    """Gives numbers, text, bytes and containers of them; whatever would need code is refused."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._path = Path(file.name)

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return super().find_class(module, name)
        raise LoadFailed(_refusal(self._path, "plain values", f"found {module}.{name}"))


def _refusal(path: Path, expected: str, found: str) -> str:
    return (
        f"{path} holds more than {expected}: {found}. Reading it may run code that is in it: "
        "load(trusted=True) if you trust everybody who can write to this directory."
    )
