"""A job told again for another door: command line, curl, Python, and what `kubectl apply` takes.

Pure. Each text can be pasted as it is and asks for exactly the job it was made of: user's texts stand in a
here-document that the shell does not read, or in literals of the language. No token is ever written: the texts take it
from ASTRAGO_TOKEN.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as quote_path

from astrago_trainer.manifests import dump_yaml
from astrago_trainer.manifests.writing import UNPRINTABLE

if TYPE_CHECKING:
    from astrago_trainer.core.spec import JobSpec

Json = dict[str, Any]

FORMS = ("cli", "curl", "python", "trainjob")


@dataclass(frozen=True, slots=True)
class Door:
    """Where the job is to be sent."""

    server: str
    """`http://host:port`, without a final slash."""
    namespace: str
    has_auth: bool = False
    """Whether the server asks for a token."""


def spec_to_body(spec: JobSpec, *, caller: str | None = None) -> Json:
    """The shortest body that asks for `spec`; `caller` is who will send it, and need not be named."""
    body: Json = spec.model_dump(mode="json", exclude_defaults=True)
    body.pop("namespace", None)
    if body.get("user") == caller:
        body.pop("user")
    for part in ("resources", "launcher"):
        amounts = body.get(part, {})
        for name in ("cpu", "memory"):
            if isinstance(amounts.get(name), dict) and amounts[name].keys() == {"limit"}:
                amounts[name] = amounts[name]["limit"]  # a bare value stands for the limit
    return body


def retell(
    form: str, body: Mapping[str, Any], objects: Iterable[Mapping[str, Any]], door: Door
) -> str:
    """One of FORMS. `objects` are what the body is rendered to, the TrainJob last."""
    if form == "cli":
        return as_cli(body, door)
    if form == "curl":
        return as_curl(body, door)
    if form == "python":
        return as_python(body, door)
    return as_manifests(objects, is_named="name" in body)


def as_cli(body: Mapping[str, Any], door: Door) -> str:
    """A job file by standard input: code and long texts need no file of their own."""
    command = (
        f"astrago apply --server {quote(door.server)} --namespace {quote(door.namespace)} -f -"
    )
    return _token_line(door) + _with_document(command, dump_yaml(body))


def as_curl(body: Mapping[str, Any], door: Door) -> str:
    address = f"{door.server}/api/v1/namespaces/{quote_path(door.namespace, safe='')}/jobs"
    # Double quotes, because the variable is the shell's to fill in.
    login = '  -H "Authorization: Bearer $ASTRAGO_TOKEN" \\\n' if door.has_auth else ""
    command = (
        f"curl -sS --globoff {quote(address)} \\\n"
        "  -H 'Content-Type: application/json' \\\n"
        f"{login}"
        "  --data-binary @-"
    )
    text = json.dumps(body, indent=2, ensure_ascii=False)
    shown = UNPRINTABLE.sub(
        lambda each: each[0] if each[0] == "\n" else json.dumps(each[0])[1:-1], text
    )
    return _token_line(door) + _with_document(command, f"{shown}\n")


def as_python(body: Mapping[str, Any], door: Door) -> str:
    request = "\n".join(_python_lines(body, "    "))
    return (
        f"{_token_line(door)}"
        "from astrago_trainer.client import TrainerClient\n"
        "\n"
        f"client = TrainerClient({door.server!r}, namespace={door.namespace!r})\n"
        "job = client.submit(\n"
        f"{request}\n"
        ")\n"
        "print(job.name, job.phase)\n"
    )


def as_manifests(objects: Iterable[Mapping[str, Any]], *, is_named: bool) -> str:
    """YAML documents in the order to apply them."""
    documents = list(objects)
    head = "# kubectl apply -f FILE\n"
    if not is_named:
        head += "# The job has no name yet: write one of your own in place of the zeros.\n"
    return head + "---\n".join(dump_yaml(each) for each in documents)


def _token_line(door: Door) -> str:
    return "# ASTRAGO_TOKEN holds your token.\n" if door.has_auth else ""


def _with_document(command: str, text: str) -> str:
    """The command with `text` on its standard input, which the shell leaves alone."""
    end = "EOF"
    while end in text.split("\n"):
        end += "_"
    return f"{command} <<'{end}'\n{text}{end}\n"


def _python_lines(value: Any, indent: str, before: str = "", after: str = "") -> Iterator[str]:
    """A literal over several lines; `before` and `after` stand on its first and last one."""
    deeper = f"{indent}    "
    if isinstance(value, Mapping) and value:
        yield f"{indent}{before}{{"
        for key, each in value.items():
            yield from _python_lines(each, deeper, f"{key!r}: ", ",")
        yield f"{indent}}}{after}"
    elif isinstance(value, list | tuple) and value:
        yield f"{indent}{before}["
        for each in value:
            yield from _python_lines(each, deeper, "", ",")
        yield f"{indent}]{after}"
    elif isinstance(value, str) and "\n" in value.rstrip("\n"):
        yield f"{indent}{before}("
        yield from (f"{deeper}{line!r}" for line in value.splitlines(keepends=True))
        yield f"{indent}){after}"
    else:
        yield f"{indent}{before}{value!r}{after}"
