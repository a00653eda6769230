"""`astrago preview --jsonl`: a line in, a line out, whatever the line."""

from __future__ import annotations

import io
import json
import subprocess
import tracemalloc
from typing import Any

import pytest

from astrago_trainer.cli import preview_stream
from astrago_trainer.cli.preview_stream import MAX_LINE, answer_lines
from astrago_trainer.core.merge import merge

from .conftest import ASTRAGO, Astrago
from .manifests import a_runtime, a_trainjob, changed, m38_trainjob


def pair(runtime: Any = None, trainjob: Any = None) -> bytes:
    document = {"runtime": runtime or a_runtime(), "trainJob": trainjob or a_trainjob()}
    return json.dumps(document).encode()


def answers(*lines: bytes, version: str = "2.1") -> list[Any]:
    out = io.BytesIO()
    answer_lines(io.BytesIO(b"\n".join(lines)), out, version)
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.req("M73")
def test_an_answer_is_what_the_merge_says_without_defaults() -> None:
    merged = merge(a_runtime(), a_trainjob())
    assert answers(pair()) == [
        {"objects": list(merged.objects), "provenance": merged.provenance},
    ]
    (job,) = merged.objects[0]["spec"]["replicatedJobs"]
    assert "completionMode" not in job["template"]["spec"], "no defaults are applied"


@pytest.mark.req("M126")
def test_a_refusal_has_field_type_and_detail_of_the_controller() -> None:
    runtime = changed(a_runtime(), "metadata/name", "pytorch-simple")
    assert answers(pair(runtime, m38_trainjob())) == [
        {
            "errors": [
                {
                    "field": "spec.podTemplateOverrides",
                    "type": "FieldValueInvalid",
                    "detail": "must not have envs for the dataset-initializer, "
                    "model-initializer, node containers",
                }
            ]
        }
    ]


def test_answers_are_compact_utf8_and_in_order(astrago_program: Astrago) -> None:
    jobs = [a_trainjob(name=f"j{n}", trainer={"image": "이미지"}) for n in range(3)]
    text = b"".join(pair(trainjob=job) + b"\n" for job in jobs)
    result = astrago_program("preview", "--jsonl", stdin=text)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert [json.loads(line)["objects"][0]["metadata"]["name"] for line in lines] == [
        "j0",
        "j1",
        "j2",
    ]
    assert '": ' not in lines[0]
    assert "이미지" in lines[0]


BAD: dict[str, bytes] = {
    "not JSON": b"hello",
    "empty line": b"",
    "a list": b"[]",
    "a number": b"1",
    "no trainJob": b'{"runtime":{}}',
    "wrong types": b'{"runtime":1,"trainJob":[]}',
    "100,000 deep": b"[" * 100_000,
    "lone surrogate": b'{"runtime":{"a":"\\ud800"},"trainJob":{}}',
    "invalid UTF-8": b'{"runtime":"\xff"}',
    "NUL": b'{"a":"\0"}',
    "duplicate key": b'{"runtime":{},"runtime":{},"trainJob":{}}',
    "NaN": b'{"runtime":{"a":NaN},"trainJob":{}}',
    "5,000 digits": b'{"runtime":{"a":' + b"9" * 5000 + b'},"trainJob":{}}',
    "too long": b'{"a":"' + b"x" * MAX_LINE + b'"}',
    "two values": b"{} {}",
}


@pytest.mark.req("M73")
@pytest.mark.parametrize("line", BAD.values(), ids=BAD)
def test_a_bad_line_costs_one_answer_and_the_stream_goes_on(line: bytes) -> None:
    first, bad, last = answers(pair(), line, pair())
    assert first == last
    assert set(bad) == {"errors"}
    for error in bad["errors"]:
        assert set(error) == {"field", "type", "detail"}
        assert error["type"] == "FieldValueInvalid"
        assert error["detail"]


def test_the_place_of_an_error_is_the_one_inside_the_line() -> None:
    (answer,) = answers(BAD["lone surrogate"])
    assert [error["field"] for error in answer["errors"]] == ["runtime.a"]
    (answer,) = answers(BAD["not JSON"])
    assert [error["field"] for error in answer["errors"]] == [""]


def test_a_bug_costs_one_answer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(preview_stream, "merge", fail)
    (answer,) = answers(pair())
    assert answer["errors"][0]["type"] == "InternalError"


@pytest.mark.parametrize("version", ["2.1", "2.2", "2.3"])
def test_it_speaks_every_version(version: str) -> None:
    trainjob = a_trainjob(podTemplateOverrides=[{"targetJobs": [{"name": "nobody"}]}])
    (answer,) = answers(pair(trainjob=trainjob), version=version)
    assert ("errors" in answer) == (version == "2.1"), "later controllers do not see the field"


def test_a_kept_runtime_is_not_taken_for_one_that_only_looks_alike() -> None:
    """Python takes 1, 1.0 and True for equal; a controller does not."""
    runtimes = [
        changed(a_runtime(), "spec/mlPolicy/numNodes", nodes) for nodes in (1, True, 1, 1.5, 2)
    ]
    together = answers(*map(pair, runtimes))
    alone = [answers(pair(runtime))[0] for runtime in runtimes]
    assert together == alone
    assert "errors" in together[1]


def test_many_runtimes_are_forgotten_in_time() -> None:
    runtimes = [changed(a_runtime(), "spec/mlPolicy/numNodes", n) for n in range(1, 100)]
    stream = preview_stream._Answers("2.1")
    for runtime in runtimes:
        assert stream.to(pair(runtime)).startswith('{"objects"')
    assert len(stream._runtimes) == preview_stream._KEPT_RUNTIMES


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_lines_are_found_however_the_input_is_cut(size: int) -> None:
    class Slow(io.BytesIO):
        def read1(self, _: int | None = -1) -> bytes:
            return self.read(size)

    text = b"".join(pair(trainjob=a_trainjob(name=f"j{n}")) + b"\r\n" for n in range(3))
    out = io.BytesIO()
    answer_lines(Slow(text), out, "2.1")
    assert out.getvalue().count(b"\n") == 3
    assert b"errors" not in out.getvalue()


@pytest.mark.req("M73")
def test_a_thousand_lines_are_answered_one_by_one(astrago_program: Astrago) -> None:
    lines = [pair(trainjob=a_trainjob(name=f"j{n}")) for n in range(1000)]
    lines[500] = b"broken"
    result = astrago_program("preview", "--jsonl", stdin=b"\n".join(lines) + b"\n")
    assert result.code == 0
    found = result.out.splitlines()
    assert len(found) == 1000
    assert [n for n, line in enumerate(found) if line.startswith('{"errors"')] == [500]


def test_an_answer_comes_while_the_input_is_still_open() -> None:
    with subprocess.Popen(
        [ASTRAGO, "preview", "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for name in ("one", "two"):
            process.stdin.write(pair(trainjob=a_trainjob(name=name)) + b"\n")
            process.stdin.flush()
            assert f'"name":"{name}"' in process.stdout.readline().decode()
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_a_closed_pipe_ends_it_quietly() -> None:
    with subprocess.Popen(
        [ASTRAGO, "preview", "--jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        try:
            process.stdin.write((pair() + b"\n") * 200)
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert process.wait(timeout=30) == 141
        assert process.stderr.read() == b""


def test_a_line_without_end_is_not_kept_in_memory() -> None:
    class Endless(io.RawIOBase):
        left = 64

        def read1(self, size: int) -> bytes:
            self.left -= 1
            return b"x" * (1 << 20) if self.left > 0 else b""

    out = io.BytesIO()
    tracemalloc.start()
    try:
        answer_lines(Endless(), out, "2.1")  # type: ignore[arg-type]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert b"more than 4,194,304 bytes" in out.getvalue()
    assert peak < 4 * MAX_LINE
