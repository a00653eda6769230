"""A job told again is the same job: by bash, by Python, and by whoever reads the YAML."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.hostile import STRINGS

from astrago_trainer.catalogue import load_runtime, sample_job
from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.core.render import render
from astrago_trainer.core.spec import JobSpec, parse_job_spec
from astrago_trainer.manifests import parse_documents
from astrago_trainer.retelling import (
    Door,
    as_cli,
    as_curl,
    as_manifests,
    as_python,
    spec_to_body,
)
from unit.core.builders import a_platform_with_scripts, a_request, a_spec

DOOR = Door("http://127.0.0.1:8000", "user-123")
GUARDED = Door("https://trainer.example:8443", "team; touch x", has_auth=True)

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)
lines = st.lists(texts | st.sampled_from(["EOF", "EOF_", "'''", '"""', "\\", "\t", "  "])).map(
    "\n".join
)


def a_hostile_spec(text: str) -> JobSpec:
    """The text wherever a request carries texts as they are."""
    return a_spec(
        command=f"x{text}",
        env=[{"name": "A", "value": text}],
        annotations={"example.org/x": text},
        code={"files": {"train.py": text, "notes.md": f"{text}\nEOF\n{text}"}},
    )


RECORDER = """\
astrago() { printf 'astrago'; printf ' [%s]' "$@"; echo; cat; }
curl() { printf 'curl'; printf ' [%s]' "$@"; echo; cat; }
set -u; export ASTRAGO_TOKEN=secret-token
"""


def in_bash(text: str) -> tuple[str, str]:
    """What the command was called with, and what stood on its standard input."""
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-s"],
        input=(RECORDER + text).encode(),
        capture_output=True,
        check=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )
    assert done.stderr == b""
    head, _, body = done.stdout.decode().partition("\n")
    return head, body


def in_python(text: str, monkeypatch: Any) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """How the client was made, and what was submitted."""
    import astrago_trainer.client as client

    seen: list[Any] = []

    class Recorder:
        name, phase = "n", "p"

        def __init__(self, *words: Any, **named: Any) -> None:
            seen.extend((words, named))

        def submit(self, body: Any) -> Recorder:
            seen.append(body)
            return self

    monkeypatch.setattr(client, "TrainerClient", Recorder, raising=False)
    exec(compile(text, "pasted", "exec"), {"print": lambda *_: None})
    words, named, body = seen
    return words, named, body


def documents(text: str) -> list[Any]:
    return list(parse_documents(text.encode(), "pasted"))


def asked(body: Any) -> JobSpec:
    return parse_job_spec({"user": "user123", "namespace": "user-123", **body})


@settings(max_examples=60, deadline=None)
@given(lines)
def test_any_text_comes_back_from_each_form(text):
    spec = a_hostile_spec(text)
    body = spec_to_body(spec, caller="user123")
    (read,) = documents(as_cli(body, DOOR).partition("\n")[2].rpartition("EOF")[0])
    assert asked(read) == spec
    with pytest.MonkeyPatch.context() as patch:
        _, _, given_body = in_python(as_python(body, DOOR), patch)
    assert asked(given_body) == spec


def _carried() -> list[JobSpec]:
    found = []
    for text in STRINGS:
        try:
            found.append(a_hostile_spec(text))
        except InvalidRequest:  # a NUL, or half of a surrogate pair: no job can have it
            continue
    return found


def test_every_hostile_string_goes_through_bash_and_python_as_it_is(monkeypatch):
    specs = _carried()
    assert len(specs) > 250
    # One shell reads all of them, one after the other: what breaks out of its document harms the rest.
    bodies = [spec_to_body(each, caller="user123") for each in specs]
    mark = "--- a mark that no string has ---"
    pasted = f"\necho '{mark}'\n".join(as_cli(body, DOOR) + as_curl(body, DOOR) for body in bodies)
    head, rest = in_bash(pasted)
    parts = f"{head}\n{rest}".split(f"\n{mark}\n")
    assert len(parts) == len(specs)
    for part, spec in zip(parts, specs, strict=True):
        cli, _, curl = part.partition("curl [-sS]")
        assert cli.startswith(
            "astrago [apply] [--server] [http://127.0.0.1:8000] [--namespace] [user-123] [-f] [-]\n"
        )
        (read,) = documents(cli.partition("\n")[2])
        assert asked(read) == spec
        words, _, document = curl.partition("\n")
        assert words == (
            " [--globoff] [http://127.0.0.1:8000/api/v1/namespaces/user-123/jobs]"
            " [-H] [Content-Type: application/json] [--data-binary] [@-]"
        )
        assert asked(json.loads(document)) == spec
        _, _, body = in_python(as_python(spec_to_body(spec), DOOR), monkeypatch)
        assert asked(body) == spec


def test_a_token_is_taken_from_the_variable_and_names_are_quoted(monkeypatch):
    body = spec_to_body(a_spec(), caller="user123")
    head, _ = in_bash(as_curl(body, GUARDED))
    assert "[Authorization: Bearer secret-token]" in head
    assert "[https://trainer.example:8443/api/v1/namespaces/team%3B%20touch%20x/jobs]" in head
    head, _ = in_bash(as_cli(body, GUARDED))
    assert "[--namespace] [team; touch x]" in head
    words, named, _ = in_python(as_python(body, GUARDED), monkeypatch)
    assert (words, named) == (("https://trainer.example:8443",), {"namespace": "team; touch x"})
    for text in (as_curl(body, GUARDED), as_cli(body, GUARDED), as_python(body, GUARDED)):
        assert "ASTRAGO_TOKEN" in text


@settings(max_examples=60, deadline=None)
@given(lines)
def test_manifests_are_read_back_as_what_is_applied(text):
    spec = a_hostile_spec(text)
    objects = render(spec, load_runtime("pytorch-simple"), a_platform_with_scripts()).objects
    assert documents(as_manifests(objects, is_named=False)) == list(objects)


def test_the_body_says_no_more_than_was_asked():
    spec = parse_job_spec(
        a_request(resources={"cpu": {"request": "1", "limit": "2"}, "memory": "1Gi"})
    )
    assert spec_to_body(spec, caller="user123") == {
        "framework": "pytorch",
        "resources": {"cpu": {"request": "1", "limit": "2"}, "memory": "1Gi"},
        "code": {"inline": "print('hi')"},
    }
    assert spec_to_body(spec, caller="somebody")["user"] == "user123"


def test_the_python_text_reads_as_people_write_it():
    text = as_python({"nodes": 2, "code": {"inline": "import os\nprint(1)\n"}, "args": ["a"]}, DOOR)
    assert text == (
        "from astrago_trainer.client import TrainerClient\n"
        "\n"
        "client = TrainerClient('http://127.0.0.1:8000', namespace='user-123')\n"
        "job = client.submit(\n"
        "    {\n"
        "        'nodes': 2,\n"
        "        'code': {\n"
        "            'inline': (\n"
        "                'import os\\n'\n"
        "                'print(1)\\n'\n"
        "            ),\n"
        "        },\n"
        "        'args': [\n"
        "            'a',\n"
        "        ],\n"
        "    }\n"
        ")\n"
        "print(job.name, job.phase)\n"
    )


def test_the_sample_is_a_job():
    spec = asked(sample_job())
    assert (spec.nodes, spec.framework) == (2, "pytorch")
