"""The preview for people: each pod as YAML-like lines, and at the right who set each of them.

A bar at the right joins lines of one origin and carries its name at the top; a line without a bar
only opens lines of several origins. What has one origin and fits is written on one line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from astrago_trainer.cli.preview_text import origin_of
from astrago_trainer.cli.terminal import (
    Terminal,
    clean,
    cut,
    cut_front,
    padded,
    problem_lines,
    width,
)
from astrago_trainer.manifests.writing import literal_block, pointer_part, scalar

if TYPE_CHECKING:
    from astrago_trainer.core.preview import Preview

Json = Mapping[str, Any]

_WIDE = 100_000
_MAX_ORIGIN = 26
_MAX_FOLDED = 100
"""Columns of a mapping or list on one line: more is no longer read at a glance."""
_MAX_SCRIPT_LINES = 10
_NO_COLOUR: tuple[str, ...] = ()

# By the beginning of the origin's name: what a user wrote stands out, what nobody wrote steps back.
_COLOURS = (
    ("runtime", _NO_COLOUR),
    ("default", ("dim",)),
    ("override", ("yellow",)),
    ("runtimePatch", ("yellow",)),
    ("mlPolicy", ("magenta",)),
    ("podGroupPolicy", ("magenta",)),
    ("form", ("green",)),
    ("platform", ("cyan",)),
    ("spec", ("green",)),
    ("metadata", ("green",)),
)
_MEANINGS = (
    ("form", "form: …", "that field of the job file or request"),
    ("metadata", "metadata", "the TrainJob's metadata"),
    ("spec", "spec.…", "that field of the TrainJob"),
    ("override", "override N", "an entry of the TrainJob's overrides, the first is 0"),
    ("runtime", "runtime", "the runtime's template"),
    ("platform", "platform", "this installation: where jobs report their progress"),
    ("mlPolicy", "mlPolicy.…", "Trainer, because of the runtime's ML policy"),
    ("podGroupPolicy", "podGroupPolicy.…", "Trainer, because of the runtime's policy"),
    ("default", "default", "nobody: filled in by Kubernetes, JobSet or Trainer"),
)


class _Row(NamedTuple):
    text: str
    origin: str | None
    """None on a line that only opens others of several origins."""


def preview_table(preview: Preview, terminal: Terminal, *, is_wide: bool = False) -> list[str]:
    """All lines of the view."""
    view = _View(preview, terminal, is_wide=is_wide)
    return list(view.lines())


class _View:
    def __init__(self, preview: Preview, terminal: Terminal, *, is_wide: bool) -> None:
        self._preview = preview
        self._terminal = terminal
        self._is_wide = is_wide
        self._used: Counter[str] = Counter()
        longest = max((width(clean(each)) for each in preview.provenance.values()), default=0)
        self._origin_size = longest if is_wide else min(longest, _MAX_ORIGIN, terminal.width // 3)
        self._width = _WIDE if is_wide else terminal.width
        self._room = self._width - self._origin_size - 3

    def lines(self) -> Iterator[str]:
        preview, terminal = self._preview, self._terminal
        yield terminal.paint(self._title(), "bold")
        if preview.problems:
            yield ""
            yield from problem_lines(preview.problems, terminal)
        if not preview.objects:
            return
        sections = [*self._job_sections(), *self._object_sections()]
        longest = max((width(row.text) for _, rows in sections for row in rows), default=0)
        self._room = min(self._room, longest)
        for heading, rows in sections:
            yield ""
            yield from (terminal.paint(line, "bold") for line in heading)
            yield from self._columns(rows)
        yield ""
        yield from self._legend()

    def _title(self) -> str:
        version = f"Trainer {self._preview.version}"
        if not self._preview.objects:
            return f"Refused · {version} · nothing would be created"
        job_set = self._preview.objects[0]
        pods = sum(_pods(job) for job in job_set["spec"].get("replicatedJobs", ()))
        name = clean(str(job_set["metadata"].get("name", "")))
        errors = " · has errors" if self._preview.is_refused else ""
        return f"JobSet {name} · {version} · {_counted(pods, 'pod')}{errors}"

    def _job_sections(self) -> Iterator[tuple[list[str], list[_Row]]]:
        job_set = self._preview.objects[0]
        for number, job in enumerate(job_set["spec"].get("replicatedJobs", ())):
            pointer = f"/0/spec/replicatedJobs/{number}"
            template = job.get("template", {})
            pod = template.get("spec", {}).get("template", {})
            rows = [
                *self._part("Job", _without(job, "name", "template"), pointer),
                *self._fields(_metadata(template), f"{pointer}/template/metadata", "    "),
                *self._fields(
                    _without(template.get("spec", {}), "template"),
                    f"{pointer}/template/spec",
                    "    ",
                ),
                *self._part("Pod", _metadata(pod), f"{pointer}/template/spec/template/metadata"),
                *self._fields(
                    pod.get("spec", {}), f"{pointer}/template/spec/template/spec", "    "
                ),
            ]
            yield self._job_heading(job_set, job), rows
        rest = {
            "metadata": _without(_metadata(job_set), "name", "ownerReferences"),
            "spec": _without(job_set["spec"], "replicatedJobs"),
        }
        rows = [row for key, part in rest.items() for row in self._fields(part, f"/0/{key}", "  ")]
        if rows:
            yield ["JobSet"], rows

    def _job_heading(self, job_set: Json, job: Json) -> list[str]:
        pods, name = _pods(job), clean(str(job.get("name", "")))
        network = job_set["spec"].get("network") or {}
        job_name = clean(str(job_set["metadata"].get("name", "")))
        first = f"{job_name}-{name}-0-0"
        last_job, last_pod = job.get("replicas", 1) - 1, _pods_of_one(job) - 1
        last = f"-{last_job}-{last_pod}" if last_job > 0 else f"-{last_pod}"
        names = f"{first} … {last}" if pods > 1 else first if pods else ""
        lines = [f"{name}: {_counted(pods, 'pod')}  {names}".rstrip()]
        if network.get("enableDNSHostnames", True) and pods:
            index = f"{{0..{last_pod}}}" if last_pod > 0 else "0"
            service = clean(str(network.get("subdomain") or job_name))
            lines.append(f"  found as {first[:-1]}{index}.{service}")
        return [cut(line, self._width) for line in lines]

    def _object_sections(self) -> Iterator[tuple[list[str], list[_Row]]]:
        for number, each in enumerate(self._preview.objects[1:], 1):
            rest = _without(each, "apiVersion", "kind", "metadata")
            if each.get("kind") == "Secret":
                rest = _masked(rest)
            name = each.get("metadata", {}).get("name", "")
            heading = clean(f"{each.get('kind', 'Object')} {name}")
            yield [heading], list(self._fields(rest, f"/{number}", "  "))

    def _part(self, title: str, fields: Json, pointer: str) -> Iterator[_Row]:
        yield _Row(f"  {title}", None)
        yield from self._fields(fields, pointer, "    ")

    def _fields(self, fields: Json, pointer: str, indent: str) -> Iterator[_Row]:
        for key, value in fields.items():
            yield from self._value(
                f"{indent}{scalar(key)}: ", value, f"{pointer}/{pointer_part(key)}", indent
            )

    def _value(self, head: str, value: Any, pointer: str, indent: str) -> Iterator[_Row]:
        """`head` stands before the value on its first line, `indent` before what goes on below."""
        origin = self._common_origin(value, pointer)
        if isinstance(value, str) and (block := literal_block(value)) is not None:
            yield from self._script(head, *block, origin=origin, indent=indent)
        elif not isinstance(value, dict | list) or not value:
            yield _Row(f"{head}{scalar(value)}", origin)
        elif (line := self._on_one_line(head, value, origin)) is not None:
            yield _Row(line, origin)
        elif isinstance(value, dict):
            yield _Row(head.rstrip(), origin)
            yield from self._fields(value, pointer, f"{indent}  ")
        else:
            yield _Row(head.rstrip(), origin)
            for number, each in enumerate(value):
                yield from self._entry(each, f"{pointer}/{number}", indent)

    def _entry(self, value: Any, pointer: str, indent: str) -> Iterator[_Row]:
        head, below = f"{indent}- ", f"{indent}  "
        origin = self._common_origin(value, pointer)
        line = self._on_one_line(head, value, origin)
        if not isinstance(value, dict) or not value or line is not None:
            yield from self._value(head, value, pointer, indent)
            return
        for key, each in value.items():
            yield from self._value(
                f"{head}{scalar(key)}: ", each, f"{pointer}/{pointer_part(key)}", below
            )
            head = below

    def _script(
        self, head: str, header: str, lines: list[str], *, origin: str | None, indent: str
    ) -> Iterator[_Row]:
        yield _Row(f"{head}{header}", origin)
        left_out = 0 if self._is_wide else max(len(lines) - _MAX_SCRIPT_LINES, 0)
        # One line more is as short as the line that would announce it.
        shown = lines if left_out <= 1 else lines[:_MAX_SCRIPT_LINES]
        for line in shown:
            yield _Row(f"{indent}  {line}" if line else "", origin)
        if len(shown) < len(lines):
            yield _Row(f"{indent}  … {len(lines) - len(shown)} more lines", origin)

    def _on_one_line(self, head: str, value: Any, origin: str | None) -> str | None:
        """Where all of it has one origin and nothing would have to be cut."""
        if origin is None or _has_block(value):
            return None
        line = f"{head}{scalar(value)}"
        name_size = min(width(origin), self._origin_size)
        return line if width(line) <= min(self._width - name_size - 3, _MAX_FOLDED) else None

    def _common_origin(self, value: Any, pointer: str) -> str | None:
        """The origin of all leaves below, if they have one."""
        if isinstance(value, Mapping) and value:
            parts = [(f"{pointer}/{pointer_part(key)}", each) for key, each in value.items()]
        elif isinstance(value, list | tuple) and value:
            parts = [(f"{pointer}/{number}", each) for number, each in enumerate(value)]
        else:
            return clean(origin_of(pointer, self._preview.provenance)) or None
        origins = {self._common_origin(each, below) for below, each in parts}
        return origins.pop() if len(origins) == 1 else None

    def _columns(self, rows: Sequence[_Row]) -> Iterator[str]:
        before: str | None = None
        for text, origin in rows:
            if origin is None:
                yield cut(text, self._room)
            else:
                self._used[origin] += 1
                name = "" if origin == before else _cut_path(origin, self._origin_size)
                line = f"{self._left(text, width(name))} │ {name}".rstrip()
                yield self._terminal.paint(line, *_look_up(origin, _COLOURS, _NO_COLOUR))
            before = origin

    def _has(self, start: str) -> bool:
        return any(origin.startswith(start) for origin in self._used)

    def _left(self, text: str, name_size: int) -> str:
        """In its column; a long value pushes the bar as far as the origin's name leaves room."""
        return padded(cut(text, max(self._width - name_size - 3, self._room)), self._room)

    def _legend(self) -> Iterator[str]:
        """The kinds of origins on this page, what a user wrote first."""
        known = [(start, label, meaning) for start, label, meaning in _MEANINGS if self._has(start)]
        size = max((width(label) for _, label, _ in known), default=0)
        for start, label, meaning in known:
            line = f"│ {padded(label, size)}  {meaning}"
            yield self._terminal.paint(line, *_look_up(start, _COLOURS, _NO_COLOUR))
        yield ""
        yield "-o yaml shows everything in full, with the origin behind each line."


def _look_up(origin: str, table: Sequence[tuple[str, Any]], default: Any) -> Any:
    return next((value for start, value in table if origin.startswith(start)), default)


def _cut_path(origin: str, columns: int) -> str:
    """The last parts of a long path tell most; `form: ` stays, to tell request from TrainJob."""
    start = "form: " if origin.startswith("form: ") else ""
    path = origin.removeprefix(start)
    while width(start) + width(path) > columns and "." in path:
        path = f"…{path.partition('.')[2].lstrip('…')}"
    return start + cut_front(path, columns - width(start))


def _pods(job: Json) -> int:
    return max(int(job.get("replicas", 1)), 0) * _pods_of_one(job)


def _pods_of_one(job: Json) -> int:
    return max(int(job.get("template", {}).get("spec", {}).get("parallelism", 1)), 0)


def _metadata(template: Json) -> Json:
    return {
        key: value
        for key, value in (template.get("metadata") or {}).items()
        if value not in (None, {}, [], "")
    }


def _without(fields: Json, *names: str) -> Json:
    return {key: value for key, value in fields.items() if key not in names}


def _masked(fields: Json) -> Json:
    """A Secret's keys without their values."""
    hidden = {
        name: dict.fromkeys(fields[name], "(hidden)")
        for name in ("data", "stringData")
        if isinstance(fields.get(name), Mapping)
    }
    return {**fields, **hidden}


def _has_block(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_block(each) for each in value.values())
    if isinstance(value, list | tuple):
        return any(_has_block(each) for each in value)
    return isinstance(value, str) and literal_block(value) is not None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
