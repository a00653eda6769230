"""The door for files: what is read, what is refused and in which words, and the way back."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from astrago_trainer.core.errors import Unreadable
from astrago_trainer.manifests import (
    MAX_BYTES,
    dump_yaml,
    load_documents,
    one_of_kind,
    parse_documents,
    parse_json,
    reading,
)
from astrago_trainer.manifests.scalars import resolve
from astrago_trainer.manifests.tree import MAX_NODES, MAX_PROBLEMS
from astrago_trainer.manifests.writing import escape, quoted, scalar, yaml_lines


def read(text: str | bytes, source: str = "job.yaml") -> list[dict[str, Any]]:
    return parse_documents(text.encode() if isinstance(text, str) else text, source)


def problems_of(text: str | bytes, source: str = "job.yaml") -> list[tuple[str, str]]:
    with pytest.raises(Unreadable) as caught:
        read(text, source)
    for problem in caught.value.problems:
        assert problem.message, "every problem says what is wrong"
    return [(problem.path, problem.code) for problem in caught.value.problems]


def only_problem(text: str | bytes, source: str = "job.yaml") -> Any:
    with pytest.raises(Unreadable) as caught:
        read(text, source)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


# What Kubernetes' reader makes of a plain word; seen from sigs.k8s.io/yaml 1.6.0.
WORDS = [
    ("0755", 493),
    ("0o755", 493),
    ("-0755", -493),
    ("08", 8),
    ("0x1F", 31),
    ("0b11", 3),
    ("1_000", 1000),
    ("+5", 5),
    ("-0", 0),
    ("1e3", 1000),
    ("1.5", 1.5),
    (".5", 0.5),
    (".7_5", 0.75),
    ("1e400", "1e400"),
    ("yes", True),
    ("no", False),
    ("On", True),
    ("OFF", False),
    ("y", True),
    ("n", False),
    ("true", True),
    ("~", None),
    ("null", None),
    ("nULL", "nULL"),
    ("2001-01-01", "2001-01-01"),
    ("2001-12-14T21:59:43Z", "2001-12-14T21:59:43Z"),
    ("12:30:45", "12:30:45"),
    ("16Gi", "16Gi"),
    ("0.1m", "0.1m"),
    ("1e9Gi", "1e9Gi"),
    ("9223372036854775807", 2**63 - 1),
    ("-9223372036854775808", -(2**63)),
]


@pytest.mark.req("M40")
@pytest.mark.parametrize(("text", "value"), WORDS, ids=[text for text, _ in WORDS])
def test_plain_words_mean_what_kubernetes_makes_of_them(text: str, value: Any) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)
    assert read(f"a: {text}\n") == [{"a": value}]


def test_quoted_words_stay_text() -> None:
    assert read("a: 'yes'\nb: \"0755\"\nc: |\n  1\n") == [{"a": "yes", "b": "0755", "c": "1\n"}]


def test_several_documents_are_read_and_empty_ones_left_out() -> None:
    assert read("---\na: 1\n---\n# nothing\n---\nb: 2\n...\n") == [{"a": 1}, {"b": 2}]


def test_a_byte_order_mark_and_windows_line_ends_are_no_problem() -> None:
    assert read(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n") == [{"a": 1, "b": 2}]


@pytest.mark.req("M92")
def test_small_anchors_are_replaced_by_copies() -> None:
    (document,) = read("Master: &replica {replicas: 1, tags: [a]}\nWorker: *replica\n")
    assert document["Worker"] == document["Master"] == {"replicas": 1, "tags": ["a"]}
    document["Worker"]["tags"].append("b")
    assert document["Master"]["tags"] == ["a"], "an alias must not tie two places together"


def test_merge_keys_fill_in_what_is_not_written() -> None:
    text = "base: &base {a: 1, b: 2}\nmore: &more {b: 3, c: 4}\n"
    assert read(f"{text}one: {{b: 9, <<: *base}}\n")[0]["one"] == {"a": 1, "b": 9}
    assert read(f"{text}two: {{<<: [*base, *more]}}\n")[0]["two"] == {"a": 1, "b": 2, "c": 4}
    assert problems_of("a: {<<: 1}\n") == [('job.yaml:1 a["<<"]', "bad-merge")]


def test_an_anchor_is_known_in_its_own_document_only() -> None:
    assert problems_of("a: &x 1\n---\nb: *x\n") == [("job.yaml:3 b", "bad-alias")]


def test_json_is_known_by_its_first_character_or_by_the_name() -> None:
    assert read('{"a": "\\ud83d\\ude00"}', "x") == [{"a": "😀"}]
    assert only_problem("a: 1", "job.json").code == "not-json"
    assert read('{"a": 1} {"b": 2}') == [{"a": 1}, {"b": 2}]


def test_flow_style_yaml_that_looks_like_json_is_read() -> None:
    assert read("{a: 1, b: [x]}\n") == [{"a": 1, "b": ["x"]}]
    assert read('{"a": 1,}\n') == [{"a": 1}]


def test_text_that_is_neither_is_reported_as_what_it_began_as() -> None:
    problem = only_problem('{"a": 1')
    assert (problem.path, problem.code) == ("job.yaml:1", "not-json")


REFUSED: list[tuple[str, str | bytes, list[tuple[str, str]]]] = [
    ("python tag", "a: !!python/object/apply:os.system [id]\n", [("job.yaml:1 a", "tag")]),
    ("own tag", "a:\n- !x 1\n", [("job.yaml:2 a[0]", "tag")]),
    ("known tag", "a: !!str 1\n", [("job.yaml:1 a", "tag")]),
    ("tagged mapping", "a: !!map {}\n", [("job.yaml:1 a", "tag")]),
    ("tagged key", "!x a: 1\n", [("job.yaml:1", "tag")]),
    ("duplicate key", "a: 1\nb: 2\na: 3\n", [("job.yaml:3 a", "duplicate-key")]),
    ("duplicate below", "s:\n  t: [{x: 1, x: 2}]\n", [("job.yaml:2 s.t[0].x", "duplicate-key")]),
    ("duplicate in JSON", '{"a":{"b":1,\n"b":2}}', [("job.yaml:2 a.b", "duplicate-key")]),
    ("number as key", "1: a\n", [("job.yaml:1", "key-not-text")]),
    ("boolean as key", "on: a\n", [("job.yaml:1", "key-not-text")]),
    ("null as key", "~: a\n", [("job.yaml:1", "key-not-text")]),
    ("list as key", "? [a]\n: 1\n", [("job.yaml:1", "key-not-text")]),
    ("NaN", "a: .nan\n", [("job.yaml:1 a", "not-a-number")]),
    ("infinity", "a: [-.inf]\n", [("job.yaml:1 a[0]", "not-a-number")]),
    ("NaN in JSON", '{"a": NaN}', [("job.yaml:1 a", "not-a-number")]),
    ("1e999 in JSON", '{"a": 1e999}', [("job.yaml:1 a", "not-a-number")]),
    ("65 bits", "a: 9223372036854775808\n", [("job.yaml:1 a", "number-too-large")]),
    ("65 bits in JSON", '{"a": -9223372036854775809}', [("job.yaml:1 a", "number-too-large")]),
    ("5000 digits", f"a: {'1' * 5000}\n", [("job.yaml:1 a", "number-too-large")]),
    ("5000 digits in JSON", '{"a":%s}' % ("1" * 5000), [("job.yaml:1 a", "number-too-large")]),
    ("raw NUL", b"a: x\nb: \0\n", [("job.yaml:2", "nul-character")]),
    ("escaped NUL", 'a: "x\\0"\n', [("job.yaml:1 a", "nul-character")]),
    ("escaped NUL in JSON", '{"a": "\\u0000"}', [("job.yaml:1 a", "nul-character")]),
    ("surrogate", 'a: 1\nb: "\\ud800"\n', [("job.yaml:2", "not-yaml")]),
    ("surrogate in JSON", '{"a":\n"\\ud800"}', [("job.yaml:2 a", "lone-surrogate")]),
    ("surrogate in a JSON key", '{"\\udfff": 1}', [("job.yaml:1", "lone-surrogate")]),
    ("not UTF-8", b"a: 1\nb: \xff\xfe\n", [("job.yaml:2", "not-utf-8")]),
    ("UTF-16", "a: 1".encode("utf-16"), [("job.yaml:1", "not-utf-8")]),
    ("raw ESC", b"a: '\x1b[31m'\n", [("job.yaml:1", "not-yaml")]),
    ("endless alias", "a: &a [*a]\n", [("job.yaml:1 a[0]", "bad-alias")]),
    ("unknown alias", "a: *b\n", [("job.yaml:1 a", "bad-alias")]),
    ("list", "- a\n", [("job.yaml", "not-a-mapping")]),
    ("text", "hello\n", [("job.yaml", "not-a-mapping")]),
    ("second is a list", "a: 1\n---\n- b\n", [("job.yaml (document 2)", "not-a-mapping")]),
    ("nothing", "", [("job.yaml", "no-document")]),
    ("comments only", "# a\n", [("job.yaml", "no-document")]),
    ("tabs", "a:\n\tb: 1\n", [("job.yaml:2", "not-yaml")]),
    ("colon in a value", "a: b: c\n", [("job.yaml:1", "not-yaml")]),
    ("open bracket", "a: [1, 2\n", [("job.yaml:2", "not-yaml")]),
    ("future version", "%YAML 9.0\n---\na: 1\n", [("job.yaml:1", "not-yaml")]),
]


@pytest.mark.req("M73")
@pytest.mark.parametrize(
    ("text", "problems"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_it_refuses_with_place_and_reason(
    text: str | bytes, problems: list[tuple[str, str]]
) -> None:
    assert problems_of(text) == problems


def test_a_duplicate_key_names_both_lines() -> None:
    message = only_problem("spec:\n  a: 1\n  b: 2\n  a: 3\n").message
    assert "line 2" in message
    assert "line 4" in message


def test_a_boolean_key_is_shown_as_it_was_written() -> None:
    problem = only_problem("yes: 1\n")
    assert "found yes, which is the boolean true" in problem.message
    assert "quotes" in problem.remedy


def test_all_problems_of_a_file_are_found_at_once_with_a_limit() -> None:
    text = "a: !x 1\nb: 1\nb: 2\n1: 1\nc: .nan\n"
    assert [code for _, code in problems_of(text)] == [
        "tag",
        "duplicate-key",
        "key-not-text",
        "not-a-number",
    ]
    many = problems_of("".join(f"k{n}: !x 1\n" for n in range(500)))
    assert len(many) == MAX_PROBLEMS + 1
    assert many[-1] == ("job.yaml", "more-problems")


def test_a_file_of_nothing_but_problems_is_not_read_to_its_end() -> None:
    started = time.process_time()
    text = "".join(f"k{n}: !x 1\n" for n in range(150_000))
    assert len(problems_of(text)) == MAX_PROBLEMS + 1
    assert time.process_time() - started < 2


def test_a_syntax_error_keeps_the_problems_before_it() -> None:
    assert [code for _, code in problems_of("a: !x 1\nb: [\n")] == ["tag", "not-yaml"]


def bomb(levels: int, width: int = 9) -> str:
    lines = [f"l0: &l0 [{', '.join(['x'] * width)}]"]
    for level in range(1, levels):
        lines.append(f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * width)}]")
    return "\n".join(lines)


@pytest.mark.req("M73")
def test_a_billion_laughs_are_refused_before_they_are_built() -> None:
    started = time.process_time()
    problem = only_problem(bomb(30))
    assert problem.code == "too-many-values"
    assert f"{MAX_NODES:,}" in problem.message
    assert time.process_time() - started < 2


def test_a_long_text_cannot_be_multiplied_by_aliases_either() -> None:
    text = f"a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 50)}]\n"
    assert only_problem(text).code == "too-many-values"


def test_aliases_cannot_be_stacked_beyond_the_depth() -> None:
    lines = ["l0: &l0 [x]"]
    lines += [f"l{n}: &l{n} [*l{n - 1}]" for n in range(1, 100)]
    assert only_problem("\n".join(lines)).code == "too-deep"


DEEP = {
    "JSON": "[" * 100_000,
    "closed JSON": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "quotes between": '["]",' * 100_000 + "1" + "]" * 100_000,
    "YAML flow": "a: " + "[" * 100_000,
    "YAML block": "".join(f"{' ' * n}a:\n" for n in range(1500)),
    "YAML list": "- " * 100_000,
}


@pytest.mark.req("M73")
@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_depth_is_refused_without_recursion(text: str) -> None:
    assert only_problem(text).code == "too-deep"


def test_depth_counts_brackets_outside_of_text_only() -> None:
    inner = "[" * 1000
    assert parse_json(f'{{"a": "{inner}", "b": "\\"{inner}\\\\"}}'.encode(), "x")["a"] == inner
    nested = "[" * 63 + "]" * 63
    assert read(f'{{"a\\\\": "\\"[", "b": {nested}}}')
    assert only_problem(f'{{"a\\\\": "\\"[", "b": [{nested}]}}').code == "too-deep"


@pytest.mark.req("M73")
def test_ten_megabytes_are_refused_with_both_sizes(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_bytes(b"a: b\n" * 2_000_000)
    with pytest.raises(Unreadable) as caught:
        load_documents(str(path))
    (problem,) = caught.value.problems
    assert problem.code == "too-large"
    assert "2,097,152 bytes" in problem.message
    assert "10,000,000 bytes" in problem.message


def test_the_largest_input_is_read_in_bounded_time() -> None:
    started = time.process_time()
    text = "a: |\n" + "  x\n" * ((MAX_BYTES - 10) // 4)
    assert len(read(text)[0]["a"]) > 1_000_000
    assert only_problem("a: [" + "1," * ((MAX_BYTES - 10) // 2) + "1]").code == "too-many-values"
    assert only_problem('{"a": [' + "1," * 1_000_000 + "1]}").code == "too-many-values"
    assert time.process_time() - started < 10


def test_standard_input_is_read_for_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: 1\n")))
    assert load_documents("-") == [{"a": 1}]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a" * (MAX_BYTES + 1))))
    with pytest.raises(Unreadable, match="<stdin>: must have at most 2,097,152 bytes"):
        load_documents("-")


@pytest.mark.parametrize("name", ["missing.yaml", ".", "nul\0.yaml"])
def test_a_file_that_cannot_be_read_is_a_problem_not_a_crash(name: str, tmp_path: Path) -> None:
    with pytest.raises(Unreadable) as caught:
        load_documents(str(tmp_path / name))
    assert caught.value.problems[0].code == "unreadable-file"


def test_it_reads_the_same_without_the_c_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &x {b: 0755}\nc: *x\n"
    with_c = read(text)
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert read(text) == with_c
    assert problems_of("a: !x 1\n") == [("job.yaml:1 a", "tag")]
    assert problems_of(b"a: '\x1b'\n") == [("job.yaml:1", "not-yaml")]
    assert problems_of('a: "\\ud800"\n') == [("job.yaml:1 a", "lone-surrogate")]


def test_one_of_kind_says_what_was_found_and_expected() -> None:
    job, other = {"kind": "TrainJob", "metadata": {"name": "a"}}, {"kind": "ConfigMap"}
    assert one_of_kind([other, job], ("TrainJob",), "TrainJob") is job
    with pytest.raises(Unreadable, match=r"found ConfigMap without a name"):
        one_of_kind([other], ("TrainJob",), "TrainJob", source="x.yaml")
    with pytest.raises(Unreadable, match=r"found 2: TrainJob a, TrainJob a"):
        one_of_kind([job, job], ("TrainJob",), "TrainJob")
    with pytest.raises(Unreadable, match="Did you mean kind: TrainJob"):
        one_of_kind([{"kind": "Trainjob"}], ("TrainJob",), "TrainJob")


def test_yaml_is_written_in_block_style_with_literal_texts_and_no_aliases() -> None:
    shared = {"cpu": "4"}
    value = {
        "name": "demo",
        "limits": shared,
        "requests": shared,
        "command": ["bash", "-c", "cd /test\npython train.py\n"],
        "mode": 493,
        "text": "yes",
        "empty": {},
        "none": None,
    }
    assert dump_yaml(value) == (
        "name: demo\n"
        "limits:\n"
        '  cpu: "4"\n'
        "requests:\n"
        '  cpu: "4"\n'
        "command:\n"
        "- bash\n"
        "- -c\n"
        "- |\n"
        "  cd /test\n"
        "  python train.py\n"
        "mode: 493\n"
        'text: "yes"\n'
        "empty: {}\n"
        "none: null\n"
    )


def test_each_leaf_is_known_by_its_json_pointer() -> None:
    lines = list(yaml_lines({"a": {"x/y": 1, "~": "p\nq"}, "b": [[], {"c": 2}]}, "/0"))
    assert [line.pointer for line in lines] == [
        None,
        "/0/a/x~1y",
        "/0/a/~0",
        None,
        None,
        None,
        "/0/b/0",
        "/0/b/1/c",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("a\r\nb\t", "a\\r\\nb\\t"),
        ("\u202eevil", "\\u202eevil"),
        ("\x9b", "\\x9b"),
        ("\U000e0041", "\\U000e0041"),
        ("한글 😀", "한글 😀"),
    ],
)
def test_nothing_a_terminal_would_obey_is_written_raw(text: str, shown: str) -> None:
    assert escape(text) == shown
    assert quoted(text) == f'"{shown}"'
    assert "\x1b" not in scalar(text)


_texts = st.text(
    st.sampled_from("ab :#-'\"\\[]{},&*!|>%@`?=<~10x.e_/+\n\t\r\x1b\x85\u2028\ufeffé한😀")
)
_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _texts
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
    max_leaves=20,
)


@given(_values)
def test_what_is_written_is_read_as_the_same_by_us_and_by_others(value: Any) -> None:
    document = {"key": value}
    text = dump_yaml(document)
    assert read(text) == [_as_read(document)]
    assert yaml.load(text, Loader=yaml.CSafeLoader) == document
    assert yaml.load(scalar(document), Loader=yaml.CSafeLoader) == document


def _as_read(value: Any) -> Any:
    """Whole numbers with a point come back without it, as JSON has only one kind of number."""
    if isinstance(value, dict):
        return {key: _as_read(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_read(each) for each in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**63
    return int(value) if is_whole else value


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused_in_words(text: bytes) -> None:
    for source in ("x.yaml", "x.json"):
        documents: list[Any] = []
        with contextlib.suppress(Unreadable):
            documents = parse_documents(text, source)
        assert all(isinstance(each, dict) for each in documents)


def test_the_limit_of_a_file_is_the_one_of_a_request_body() -> None:
    assert reading.MAX_BYTES == 2 * 1024 * 1024
