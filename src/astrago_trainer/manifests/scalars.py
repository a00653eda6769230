"""What a plain word in YAML means: what Kubernetes' own reader makes of it.

That reader (sigs.k8s.io/yaml on go.yaml.in/yaml/v2) follows YAML 1.1 with exceptions: `yes`, `no`,
`on`, `off`, `y` and `n` are booleans, `0755` and `0o755` are 493, `1:30` and timestamps stay text,
and a whole number written as `1e3` is an integer, because the way to the API server is JSON.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

INT64 = range(-(2**63), 2**63)


class HugeNumber(NamedTuple):
    """Digits too many to be worth converting: Python refuses 5,000 of them by itself."""

    digits: str


_TRUE = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_BEGINS_NUMBERS = frozenset("+-.0123456789")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_BETWEEN = re.compile(r"[^_]+(?:(?<=[0-9])_(?=[0-9])[^_]+)*")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def resolve(text: str) -> Any:
    """The value of a scalar without quotes, as `resolve.go` decides it."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _BEGINS_NUMBERS:
        return text
    # Only between digits after a point, anywhere elsewhere: so does Go.
    plain = text.replace("_", "") if text[0] != "." or _BETWEEN.fullmatch(text) else text
    if integer := _INTEGER.fullmatch(plain):
        return _integer(*integer.groups())
    return _float(text, plain) if _FLOAT.fullmatch(plain) else text


def _integer(sign: str, hexadecimal: str, binary: str, octal: str, decimal: str) -> Any:
    spelled = ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10))
    digits, base = next(each for each in spelled if each[0] is not None)
    if len(digits) > 64:
        return HugeNumber(digits)
    return -int(digits, base) if sign == "-" else int(digits, base)


def _float(text: str, plain: str) -> Any:
    number = float(plain)
    if math.isinf(number):  # Go cannot read it either, and takes it for text
        return text
    return int(number) if number.is_integer() and int(number) in INT64 else number
