"""Quantities as Kubernetes reads, adds and prints them: `500m`, `1.5Gi`, `12e6`.

The preview must print what the API server would print, so this follows the arithmetic of the real type with its
corners: numbers that fit 64 bits keep a value and a scale, larger ones become exact decimals rounded up to nano, binary
numbers are capped at 2^63-1, and a text that already looks canonical is kept as it was written (`1.500`, `+4Gi`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache, total_ordering
from typing import Literal

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)
_NANO = -9
_FAST_DIGITS = 18  # decimal numbers with at most this many digits always fit 64 bits

_MAX_EXPONENT = (
    100  # Kubernetes takes more; nobody means it, and 10**2000000000 does not fit this machine
)
_KEPT_LENGTH = 32  # longer texts are rare, and must not fill the memory

_PARTS = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:(?P<dot>\.)(?P<part>[0-9]*))?(?P<suffix>.*)", re.DOTALL
)
_SUFFIX = re.compile(r"[eEinumkKMGTP]*[+-]?[0-9]*")
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_NAME = {exponent: name for name, exponent in _DECIMAL.items()}
_BINARY_NAME = ("", *_BINARY)


class QuantityError(ValueError):
    """The text is no quantity; the message says what one looks like."""

    def __init__(self, text: str) -> None:
        shown = text if len(text) <= 40 else f"{text[:37]}…"
        super().__init__(
            f"{shown!r} is no quantity: a number with an optional suffix such as 500m, 2, 1.5Gi or 16G is expected"
        )


@total_ordering
@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount of something: `number * 10**scale`, and the notation it is printed in."""

    number: int
    scale: int
    format: Format
    exact: bool = False
    """True once the amount has left 64-bit arithmetic; the real type then rounds and overflows differently."""
    text: str = ""
    """The text as written where Kubernetes would print it unchanged."""

    @staticmethod
    def parse(text: str) -> Quantity:
        """The quantity that `text` denotes; raises QuantityError."""
        return _parse_known(text) if len(text) <= _KEPT_LENGTH else _parse(text)

    def __str__(self) -> str:
        return self.text or _canonical(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self._aligned(other)[0] == self._aligned(other)[1]

    def __lt__(self, other: Quantity) -> bool:
        mine, theirs = self._aligned(other)
        return mine < theirs

    def __hash__(self) -> int:
        number, scale = self.number, self.scale
        while number and number % 10 == 0:
            number, scale = number // 10, scale + 1
        return hash((number, scale if number else 0))

    def is_zero(self) -> bool:
        """Whether nothing is asked for."""
        return self.number == 0

    def is_finer_than(self, scale: int) -> bool:
        """Whether the amount has digits below `10**scale`: CPU is counted in 10**-3, memory in whole bytes."""
        return self.scale < scale and self.number % 10 ** (scale - self.scale) != 0

    def value(self) -> int:
        """The amount as a 64-bit integer, rounded up; overflows as the real type does (it does not complain)."""
        if not self.exact:
            if self.scale < 0:
                return _divide_away_from_zero(self.number, 10**-self.scale)
            scaled: int = self.number * 10 ** min(self.scale, 40)
            if _fits(scaled):
                return scaled
            return _wrap(scaled) if self.scale in (1, 2, 3, 6, 9) else 0
        if self.scale >= 0:
            power = (
                10**self.scale if self.scale < 19 else _INT64_MIN
            )  # what a float too large becomes in Go
            return _wrap(_wrap(self.number) * power)
        divisor = 10**-self.scale
        if self.number < INT64_MAX and -self.scale < 19:
            whole, rest = _truncating_divmod(_wrap(self.number), divisor)
        else:
            whole, rest = divmod(self.number, divisor)
        return _wrap(whole + (1 if rest else 0))

    def plus(self, other: Quantity) -> Quantity:
        """The sum, in this one's notation unless this one is zero."""
        form = other.format if self.number == 0 else self.format
        if not self.exact and not other.exact:
            if other.number == 0:
                return replace(self, format=form, text="")
            if self.number == 0:
                return replace(other, format=form, text="")
            mine, theirs = self._aligned(other)
            scale = min(self.scale, other.scale)
            if _fits(mine) and _fits(theirs) and _fits(mine + theirs):
                return Quantity(mine + theirs, scale, form)
        mine, theirs = self._aligned(other)
        return Quantity(mine + theirs, min(self.scale, other.scale), form, exact=True)

    def times(self, count: int) -> Quantity:
        """This amount `count` times over."""
        product = self.number * count
        if not self.exact:
            if self.number == 0:
                return replace(self, text="")
            if count == 0:
                return Quantity(0, 0, self.format)
            scaled = product * 10**self.scale if 0 < self.scale <= 40 else product
            if _fits(product) and self.scale <= 40 and _fits(scaled):
                return Quantity(product, self.scale, self.format)
        return Quantity(product, self.scale, self.format, exact=True)

    def _aligned(self, other: Quantity) -> tuple[int, int]:
        scale = min(self.scale, other.scale)
        return self.number * 10 ** (self.scale - scale), other.number * 10 ** (other.scale - scale)


@lru_cache(4096)
def _parse_known(text: str) -> Quantity:
    """The same few amounts are asked for again and again."""
    return _parse(text)


def _parse(text: str) -> Quantity:
    if text == "0":
        return Quantity(0, 0, "DecimalSI", text="0")
    parts = _PARTS.match(text) if text else None
    if parts is None or _SUFFIX.fullmatch(parts["suffix"]) is None:
        raise QuantityError(text)
    base, exponent, form = _interpret(parts["suffix"], text)
    whole, part = parts["whole"].lstrip("0") or "0", parts["part"] or ""
    sign = -1 if parts["sign"] == "-" else 1
    fast = _fast(text, sign, whole, part, base, exponent, form)
    if fast is not None:
        return fast
    if (
        not parts["whole"] and not part
    ):  # "Gi" alone is nothing of it to Kubernetes, but only on the fast path
        raise QuantityError(text)
    return _slow(sign, whole, part, base, exponent, form)


def _interpret(suffix: str, text: str) -> tuple[int, int, Format]:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], "DecimalSI"
    if suffix in _BINARY:
        return 2, _BINARY[suffix], "BinarySI"
    digits = suffix[1:]
    if (
        suffix[0] in "eE"
        and re.fullmatch(r"[+-]?[0-9]{1,9}", digits)
        and abs(int(digits)) <= _MAX_EXPONENT
    ):
        return 10, int(digits), "DecimalExponent"
    raise QuantityError(text)


def _fast(
    text: str, sign: int, whole: str, part: str, base: int, exponent: int, form: Format
) -> Quantity | None:
    """64-bit arithmetic, where the digits surely fit; keeps the text where it already looks canonical."""
    if base == 10:
        room, scale, factor = _FAST_DIGITS - len(whole) - len(part), exponent - len(part), 1
    else:
        room = 15 - len(whole) - exponent * 3 // 10 - 1 if not part else -1
        scale, factor = 0, 1 << exponent
    if room < 0 or scale < _NANO:
        return None
    digits = whole + part
    number = int(digits)
    kept = (
        number & 7 != 0
        if base == 2
        else scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    )
    return Quantity(sign * number * factor, scale, form, text=text if kept else "")


def _slow(sign: int, whole: str, part: str, base: int, exponent: int, form: Format) -> Quantity:
    number, scale = int(whole + part), -len(part)
    if base == 10:
        scale += exponent
    else:
        number <<= exponent
    if number:  # rounded up, so that a little of something never becomes nothing
        shift = scale - _NANO
        number = number * 10**shift if shift >= 0 else _divide_away_from_zero(number, 10**-shift)
        scale = _NANO
    if form == "BinarySI":
        if number > INT64_MAX * 10 ** max(-scale, 0):
            number, scale = INT64_MAX, 0
        if 0 < number < 10 ** max(-scale, 0):
            form = "DecimalSI"
    return Quantity(sign * number, scale, form, exact=True)


def _canonical(q: Quantity) -> str:
    if q.number == 0:
        return "0"
    if q.format == "BinarySI":
        whole, rest = divmod(q.number, 10**-q.scale) if q.scale < 0 else (q.number * 10**q.scale, 0)
        if abs(whole) >= 1024 and not rest:
            times = 0
            while whole % 1024 == 0 and abs(whole) >= 1024:
                whole, times = whole // 1024, times + 1
            return f"{whole}{_BINARY_NAME[times] if times < len(_BINARY_NAME) else ''}"
    number, exponent = q.number, q.scale
    while number % 10 == 0:
        number, exponent = number // 10, exponent + 1
    number, exponent = number * 10 ** (exponent % 3), exponent - exponent % 3
    if q.format == "DecimalExponent":
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_DECIMAL_NAME.get(exponent, '')}"


def _divide_away_from_zero(number: int, divisor: int) -> int:
    quotient, rest = divmod(abs(number), divisor)
    return (quotient + (1 if rest else 0)) * (1 if number >= 0 else -1)


def _truncating_divmod(number: int, divisor: int) -> tuple[int, int]:
    quotient, rest = divmod(abs(number), divisor)
    return (quotient, rest) if number >= 0 else (-quotient, rest)


def _fits(number: int) -> bool:
    return _INT64_MIN <= number <= INT64_MAX


def _wrap(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63
