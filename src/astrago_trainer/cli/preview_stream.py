"""`astrago preview --jsonl`: pairs in, answers out, one a line, in constant memory.

It says what the controller would say and applies no defaults: its input is what the controller
would read. A bad line costs one line of answer; the stream goes on. Each line is `{"errors":[…]}`
or `{"objects":[…],"provenance":{…}}`.
"""

from __future__ import annotations

import json
import marshal
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from astrago_trainer.core.errors import Problem, Unreadable
from astrago_trainer.core.merge import CompiledRuntime, compile_runtime, merge
from astrago_trainer.manifests import parse_json

MAX_LINE = 4 * 1024 * 1024
"""Two manifests, each of the largest size a file may have."""
_KEPT_RUNTIMES = 16
_CHUNK = 1 << 16

_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


def answer_lines(source: IO[bytes], target: IO[bytes], version: str) -> None:
    """Answer every line of `source`; flushed whenever the input has nothing more to give."""
    answer = _Answers(version)
    for line in _lines(source, target.flush):
        target.write(answer.to(line).encode())
        target.write(b"\n")
    target.flush()


class _Answers:
    """Remembers the last runtimes: a stream names few, and reading one takes most of the time."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._runtimes: OrderedDict[bytes, CompiledRuntime] = OrderedDict()

    def to(self, line: bytes | None) -> str:
        """The answer to one line; None is one that was too long."""
        try:
            runtime, trainjob = _pair(line)
            merged = merge(self._compiled(runtime), trainjob, self._version)
            if merged.problems:
                return _errors(merged.problems)
            return _encode({"objects": merged.objects, "provenance": merged.provenance})
        except Unreadable as error:
            return _errors(
                Problem(
                    _field(each.path), "FieldValueInvalid", f"{each.message} {each.remedy}".rstrip()
                )
                for each in error.problems
            )
        except Exception as error:  # a bug of ours must not end a stream of a million lines
            return _errors([Problem("", "InternalError", f"{type(error).__name__}: {error}")])

    def _compiled(self, runtime: Mapping[str, Any]) -> CompiledRuntime:
        # Format 2 has no references between equal parts: equal bytes are equal values and types.
        key = marshal.dumps(dict(runtime), 2)
        compiled = self._runtimes.get(key)
        if compiled is None:
            compiled = self._runtimes[key] = compile_runtime(runtime, self._version)
            if len(self._runtimes) > _KEPT_RUNTIMES:
                self._runtimes.popitem(last=False)
        return compiled


def _pair(line: bytes | None) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    if line is None:
        text = f"the line has more than {MAX_LINE:,} bytes."
        raise Unreadable([Problem("", "too-large", text)])
    document = parse_json(line, "line", max_bytes=MAX_LINE)
    problems = []
    if not isinstance(document, dict):
        problems = [Problem("", "not-a-pair", 'expected {"runtime":…,"trainJob":…}.')]
    else:
        problems = [
            Problem(name, "not-a-pair", "must be an object.")
            for name in ("runtime", "trainJob")
            if not isinstance(document.get(name), dict)
        ]
    if problems:
        raise Unreadable(problems)
    return document["runtime"], document["trainJob"]


def _field(path: str) -> str:
    """The place inside the line: the reader counts lines of its own, which are always the first."""
    return path.removeprefix("line").removeprefix(":1").strip()


def _errors(problems: Any) -> str:
    return _encode(
        {
            "errors": [
                {"field": each.path, "type": each.code, "detail": each.message} for each in problems
            ]
        }
    )


def _lines(source: IO[bytes], before_waiting: Callable[[], None]) -> Iterator[bytes | None]:
    """The lines without their ends; None for one that is too long, which is skipped, not kept."""
    rest = bytearray()
    is_skipping = False
    while True:
        before_waiting()
        chunk = _read_some(source)
        if not chunk:
            break
        *complete, last = chunk.split(b"\n")
        for part in complete:
            if is_skipping or len(rest) + len(part) > MAX_LINE:
                yield None
            else:
                yield bytes(rest + part)
            rest.clear()
            is_skipping = False
        if is_skipping or len(rest) + len(last) > MAX_LINE:
            is_skipping = True
            rest.clear()
        else:
            rest += last
    if is_skipping:
        yield None
    elif rest:
        yield bytes(rest)


def _read_some(source: IO[bytes]) -> bytes:
    """What is there now, at least a byte; empty at the end."""
    read: Callable[[int], bytes] | None = getattr(source, "read1", None)
    return read(_CHUNK) if read is not None else os.read(source.fileno(), _CHUNK)
