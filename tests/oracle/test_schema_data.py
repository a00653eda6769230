"""The committed table of fields is the one that the Go types dump."""

from __future__ import annotations

import pytest

from tests.oracle.build import VERSIONS, oracle_binary, skip_reason
from tests.oracle.schema import TARGET, module, structs_of


@pytest.mark.oracle
def test_the_committed_table_is_what_the_oracles_dump() -> None:
    for version in VERSIONS:
        if oracle_binary(version) is None:
            pytest.skip(skip_reason(version))
    text = module({version: structs_of(version) for version in VERSIONS})
    assert TARGET.read_text(encoding="utf-8") == text, "run: python -m tests.oracle.schema --write"
