"""Kubernetes' strategic merge patch, on settled values, noting what came from the patch.

Order matters to users (`$(VAR)` in env is expanded in list order), so the order of merged lists follows the real
algorithm: elements of the patch keep the patch's order, elements only the original has keep theirs, and an element that
is new in the patch comes before the untouched ones it meets. The original is never changed; what is touched is copied.
"""

from __future__ import annotations

from typing import Any

from astrago_trainer.core.merge.origins import Origin, Origins
from astrago_trainer.core.merge.schema import OMIT, Field, field_settler, settler, struct

Json = dict[str, Any]

_DIRECTIVE = "$patch"
_DELETE_LIST = "$deleteFromPrimitiveList"
_OTHER_DIRECTIVES = ("$retainKeys", "$setElementOrder")


class PatchError(ValueError):
    """The patch cannot be applied; the real controller fails on it too."""


class Patcher:
    """Applies patches for one Trainer version, marking what they set."""

    def __init__(self, version: str, origins: Origins) -> None:
        self._version = version
        self._origins = origins
        self._layer = ""

    def apply(self, original: Json, patch: Json, kind: str, origin: Origin) -> Json:
        """`original` of struct `kind` with the settled `patch` laid over it; `origin` is where the patch starts."""
        self._layer = origin.layer
        return self._map(original, patch, struct(kind, self._version), origin.path)

    def _map(self, original: Json, patch: Json, fields: dict[str, Field] | None, path: str) -> Json:
        if _DIRECTIVE in patch:
            return self._directive(patch, path)
        result = self._origins.fork(original)
        for key, value in patch.items():
            if fields is None:
                if key.startswith("$"):
                    meant = _meant_by(key)
                    if meant != key and not isinstance(result.get(meant), str):
                        continue  # it deletes from a list, and there is none
                    key = meant
                field = None
            else:
                field = fields.get(key)
            if value is None:
                result.pop(key, None)
                continue
            present = result.get(key)
            if type(value) is dict and type(present) is dict:
                result[key] = self._map(present, value, self._fields_of(field), f"{path}.{key}")
                if not result[key] and field is not None and field.kind.startswith("map:"):
                    del result[key]  # emptied by a directive
            elif (
                type(value) is list and type(present) is list and field is not None and field.merges
            ):
                result[key] = self._list(present, value, field, f"{path}.{key}")
            else:
                self._set(result, key, value, field, f"{path}.{key}")
        return result

    def _directive(self, patch: Json, path: str) -> Json:
        directive = patch[_DIRECTIVE]
        if directive == "replace":
            rest = {k: v for k, v in patch.items() if k != _DIRECTIVE}
            return self._origins.mark(rest, Origin(self._layer, path))
        if directive == "delete":
            return {}
        raise PatchError(f"{directive!r} is no merge directive")

    def _set(self, result: Json, key: str, value: Any, field: Field | None, path: str) -> None:
        """Take the patch's value as it is, in the form the patched type would write it."""
        if _has_directive(value):
            value = _without_directives(value)
        if field is not None and value is not OMIT:
            value = field_settler(field, self._version)(value)
        if value is OMIT:
            result.pop(key, None)
            return
        result[key] = value
        if type(value) is dict or type(value) is list:
            self._origins.mark(value, Origin(self._layer, path))
        else:
            self._origins.mark_key(result, key, Origin(self._layer, path))

    def _list(self, original: list[Any], patch: list[Any], field: Field, path: str) -> list[Any]:
        if not field.key:
            return self._scalars(original, patch, path)
        if not original and not patch:
            return original
        item_kind = field.kind.removeprefix("list:")
        fields = self._fields_of_kind(item_kind)
        merged = list(original)
        server_order = _positions(original, field.key)
        positions = dict(server_order)
        for index, item in enumerate(patch):
            value = _key_of(item, field.key)
            if value in positions:
                rest = {
                    k: v for k, v in item.items() if k != field.key
                }  # the key only says whom the rest is for
                at = positions[value]
                merged[at] = self._map(merged[at], rest, fields, f"{path}[{index}]")
            else:
                positions[value] = len(merged)
                settled = settler(item_kind, self._version)(item)
                merged.append(self._origins.mark(settled, Origin(self._layer, f"{path}[{index}]")))
        forked = self._origins.fork(original)
        forked[:] = _ordered(merged, server_order, patch, field.key)
        return forked

    def _scalars(self, original: list[Any], patch: list[Any], path: str) -> list[Any]:
        """Lists of plain values become one list without repeats."""
        merged = list(dict.fromkeys([*original, *patch]))
        patched = dict.fromkeys(patch)
        mine = list(patched)  # in the order of the patch
        others = [v for v in merged if v not in patched]
        result = _interleave(others, mine, {v: i for i, v in enumerate(original)})
        return self._origins.mark(result, Origin(self._layer, path))

    def _fields_of(self, field: Field | None) -> dict[str, Field] | None:
        return None if field is None else self._fields_of_kind(field.kind)

    def _fields_of_kind(self, kind: str) -> dict[str, Field] | None:
        outer, _, name = kind.partition(":")
        return struct(name, self._version) if outer == "struct" else None


def _has_directive(value: Any) -> bool:
    if isinstance(value, dict):
        return _DIRECTIVE in value or any(map(_has_directive, value.values()))
    return isinstance(value, list) and any(map(_has_directive, value))


def _without_directives(value: Any) -> Any:
    """A value that has nothing to merge with loses the mappings that hold a directive."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return OMIT
        kept = {key: _without_directives(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not OMIT}
    if isinstance(value, list):
        return [item for item in map(_without_directives, value) if item is not OMIT]
    return value


def _meant_by(key: str) -> str:
    """The key that a directive in a mapping of texts is about; other keys may begin with a dollar, too."""
    prefix, slash, rest = key.partition("/")
    if key.startswith(_OTHER_DIRECTIVES) or (
        key.startswith(_DELETE_LIST) and (prefix != _DELETE_LIST or not slash)
    ):
        raise PatchError(f"the key {key!r} is a merge directive and may not be used")
    return rest if prefix == _DELETE_LIST else key


def _positions(items: list[Json], key: str) -> dict[Any, int]:
    positions: dict[Any, int] = {}
    for index, item in enumerate(items):
        positions.setdefault(_key_of(item, key), index)
    return positions


def _key_of(item: Json, key: str) -> Any:
    try:
        return item[key]
    except KeyError:
        raise PatchError(f"an element without {key!r} cannot be merged into its list") from None


def _ordered(
    merged: list[Json], server_order: dict[Any, int], patch: list[Json], key: str
) -> list[Json]:
    patch_order = _positions(patch, key)
    known = [server_order[value] for value in patch_order if value in server_order]
    if len(merged) == len(server_order) + len(patch_order) - len(known):  # no key is there twice
        if not known:
            return merged[len(server_order) :] + merged[: len(server_order)]
        if len(known) == len(patch_order) and known == sorted(known):
            return merged
    mine = [item for item in merged if item[key] in patch_order]
    others = [item for item in merged if item[key] not in patch_order]
    mine.sort(key=lambda item: patch_order[item[key]])
    others.sort(key=lambda item: server_order[item[key]])
    return _interleave(others, mine, server_order, key)


def _interleave(
    others: list[Any], mine: list[Any], server_order: dict[Any, int], key: str = ""
) -> list[Any]:
    """One list of both; an untouched element goes first only where the original had it before the patched one."""
    result: list[Any] = []
    left = right = 0
    while left < len(others) and right < len(mine):
        a = server_order.get(others[left][key] if key else others[left], -1)
        b = server_order.get(mine[right][key] if key else mine[right], -1)
        if a >= 0 and b >= 0 and a < b:
            result.append(others[left])
            left += 1
        else:
            result.append(mine[right])
            right += 1
    return result + others[left:] + mine[right:]
