"""Types are read on first use, which may be in several threads at once."""

from __future__ import annotations

from astrago_trainer.core.merge import schema


def test_a_value_that_is_settled_while_its_type_is_read_keeps_all_its_fields(monkeypatch):
    """Another thread may come at any moment; here it comes after the first field."""
    value = {"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    real, found = schema.struct, []

    class Interrupted(dict):
        def items(self):
            for number, pair in enumerate(super().items()):
                yield pair
                if number == 0 and not found:
                    found.append(None)
                    found[0] = settle(value)

    schema.settler.cache_clear()
    settle = schema.settler("struct:core.v1.EnvVar", "2.1")
    monkeypatch.setattr(schema, "struct", lambda *asked: Interrupted(real(*asked)))
    try:
        settled = settle(value)
    finally:
        schema.settler.cache_clear()

    assert found == [settled]
    assert set(settled) == {"name", "value", "valueFrom"}
