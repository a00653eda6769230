"""Which lines match: the part of a search that looks at every byte.

A text is looked for with `bytes.find`. A regular expression is a tenant's program, and Python can neither interrupt one
nor let other threads run beside it: so it runs in a process of its own (`main` here, started by `search`), which the
kernel ends when its time is over. Line by line would cost more than the matching itself, so where no match can reach
over a newline, whole blocks are matched at once.
"""

from __future__ import annotations

import os
import re
import struct
import sys
from collections.abc import Callable, Generator, Iterator

from astrago_trainer.logs.blocks import BLOCK, blocks
from astrago_trainer.logs.gap import Gap
from astrago_trainer.logs.lines import Line, LineCutter, last_state
from astrago_trainer.logs.view import View

FRAME = struct.Struct("<qq")
SEARCHED = -1
"""In a frame in place of the end of a line: everything before the offset has been looked at."""
BAD_PATTERN = 3
"""Exit code: no regular expression; the reason is on stderr."""
_MEMORY = 512 << 20

Span = tuple[int, int]
"""Start and end of a line without its newline."""
Finder = Callable[[bytes], Iterator[Span]]
"""The matching lines in a block of whole lines."""


def matching_lines(
    log: View, span: Span, find: Finder, *, raw: bool, max_line: int
) -> Generator[tuple[int, int], None, None]:
    """Frames for a stretch of a file: matching lines and, after each block, how far it got."""
    start, stop = span
    while start < stop:
        start = yield from _short_lines(log, (start, stop), find, raw=raw, max_line=max_line)
        if start < stop:
            start = yield from _long_line(log, (start, stop), find, raw=raw, max_line=max_line)
    yield stop, SEARCHED


def plain_finder(needle: bytes, *, raw: bool) -> Finder:
    def find(data: bytes) -> Iterator[Span]:
        at = data.find(needle)
        if at < 0:
            return
        if not raw and b"\r" in data:
            yield from _by_line(data, lambda line: needle in last_state(line))
            return
        while at >= 0:
            begin, end = _line_around(data, at)
            if begin == len(data):
                return
            yield begin, end
            at = data.find(needle, end + 1) if end + 1 < len(data) else -1

    return find if b"\n" not in needle else lambda data: iter(())


def regex_finder(pattern: str, *, ignore_case: bool, raw: bool) -> Finder:
    """Raises re.error, RecursionError or OverflowError for what is no pattern."""
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
    search_line = re.compile(pattern, flags).search
    inside = within_lines(pattern)
    in_block = None if inside is None else re.compile(inside, flags)

    def matches(line: bytes) -> bool:
        shown = line if raw else last_state(line)
        return search_line(shown.decode("utf-8", "surrogateescape")) is not None

    def find(data: bytes) -> Iterator[Span]:
        if in_block is None or (not raw and b"\r" in data):
            return _by_line(data, matches)
        text = data.decode("utf-8", "surrogateescape")
        spans = _in_block(text, in_block)
        return spans if len(text) == len(data) else _to_bytes(text, spans)

    return find


def within_lines(pattern: str) -> str | None:
    """The same pattern for whole blocks: no match can contain a newline. None where that is not certain.

    It must find a match in exactly the lines in which the pattern finds one; which match does not matter. Assertions
    about what is around (and `\\B`, which Python never finds in an empty text) could tell a line from a block.
    """
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        follows = pattern[at + 1 : at + 2]
        if char == "\\" and follows in _NO_NEWLINE:
            out.append(_NO_NEWLINE[follows])
            at += 2
        elif char == "\\" and (follows in _HARMLESS or _is_punctuation(follows)):
            out.append(char + follows)
            at += 2
        elif char == "[":
            found = _CLASS.match(pattern, at)
            if found is None or not (found["not"] or _CLASS_WITHOUT_NEWLINE.fullmatch(found["in"])):
                return None
            inside = found["in"]
            first = "\\" if inside.startswith("]") else ""
            out.append(f"[^\\n{first}{inside}]" if found["not"] else f"[{first}{inside}]")
            at = found.end()
        elif (
            char == "\\"
            or char < " "
            or pattern.startswith(_POSSESSIVE, at)
            or _is_special(pattern, at)
        ):
            return None
        else:
            out.append(char)
            at += 1
    return "".join(out)


_NO_NEWLINE = {"s": r"[^\S\n]", "W": r"[^\w\n]", "D": r"[^\d\n]"}
_HARMLESS = frozenset("wdSbtrfv")
_POSSESSIVE = ("*+", "++", "?+", "}+")
_CLASS = re.compile(r"\[(?P<not>\^?)(?P<in>\]?(?:[^\]\\]|\\.)*)\]")
# Neither an escape that holds a newline nor a range that spans one (those begin below the space).
_CLASS_WITHOUT_NEWLINE = re.compile(r"(?:[^\\\x00-\x1f]|\\[wdS]|\\[!-/:-@\[-`{-~])*")


def _is_special(pattern: str, at: int) -> bool:
    """A group that does more than to group: it looks around, or changes what the rest means."""
    return pattern.startswith("(?", at) and not pattern.startswith("(?:", at)


def _is_punctuation(char: str) -> bool:
    return char.isascii() and char.isprintable() and not char.isalnum() and char != ""


def _in_block(text: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    at = 0
    while at < len(text) and (found := pattern.search(text, at)) is not None:
        begin = text.rfind("\n", 0, found.start()) + 1
        if begin == len(text):
            return
        end = text.find("\n", found.start())
        end = len(text) if end < 0 else end
        yield begin, end
        at = end + 1


def _by_line(data: bytes, matches: Callable[[bytes], bool]) -> Iterator[Span]:
    begin = 0
    for line in data.removesuffix(b"\n").split(b"\n") if data else ():
        if matches(line):
            yield begin, begin + len(line)
        begin += len(line) + 1


def _to_bytes(text: str, spans: Iterator[Span]) -> Iterator[Span]:
    at = offset = 0
    for begin, end in spans:
        first = offset + len(text[at:begin].encode("utf-8", "surrogateescape"))
        offset = first + len(text[begin:end].encode("utf-8", "surrogateescape"))
        at = end
        yield first, offset


def _line_around(data: bytes, at: int) -> Span:
    end = data.find(b"\n", at)
    return data.rfind(b"\n", 0, at) + 1, len(data) if end < 0 else end


def _short_lines(
    log: View, span: Span, find: Finder, *, raw: bool, max_line: int
) -> Generator[tuple[int, int], None, int]:
    """Block by block; returns where a line begins that does not fit into one, or the end."""
    start, stop = span
    kept = b""
    # Small blocks are twice as fast here: malloc keeps them, and the caches do.
    for data in blocks(log, start, stop, min(BLOCK, max_line)):
        kept += data
        at = start + len(data) - len(kept)
        start += len(data)
        # Only the line that began in an earlier block can be longer than a block.
        first = kept.find(b"\n")
        if max_line < (len(kept) if first < 0 else first):
            return at
        whole = kept.rfind(b"\n") + 1
        yield from ((at + begin, at + end) for begin, end in find(kept[:whole]))
        kept = kept[whole:]
        yield at + whole, SEARCHED
    at = start - len(kept)
    yield from ((at + begin, at + end) for begin, end in find(kept))
    return stop


def _long_line(
    log: View, span: Span, find: Finder, *, raw: bool, max_line: int
) -> Generator[tuple[int, int], None, int]:
    """One line, of which only as much is looked at as is shown; returns where the next begins."""
    start, stop = span
    cutter = LineCutter(start, raw=raw, max_line=max_line)
    ended: list[Line] = []
    for data in blocks(log, start, stop):
        end = data.find(b"\n") + 1
        ended = cutter.feed(data[:end] if end else data)
        if ended:
            break
        yield start, SEARCHED  # a search that is stopped here goes on with this line
    line = ended[0] if ended else cutter.rest()
    if line is None:
        return stop
    if any(find(line.data + b"\n")):
        yield line.offset, line.end - line.ended
    return line.end


def main() -> None:
    """One search: numbers and the pattern on stdin, frames on stdout. Knows nothing of the rest of the server."""
    import resource
    import warnings

    numbers, pattern = sys.stdin.buffer.read().decode("utf-8", "surrogatepass").split("\n", 1)
    fd, marker, end, *rest = map(int, numbers.split())
    start, stop, max_hits, max_line, raw, ignore_case, seconds = rest
    log = View(fd, Gap(marker, end, 0, 0) if end else None)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore")  # of re, about patterns that may mean something else one day
    try:
        find = regex_finder(pattern, ignore_case=bool(ignore_case), raw=bool(raw))
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        sys.stderr.write(str(error) or type(error).__name__)
        sys.exit(BAD_PATTERN)
    _write_frames(
        matching_lines(log, (start, stop), find, raw=bool(raw), max_line=max_line), max_hits
    )


def _write_frames(frames: Iterator[tuple[int, int]], max_hits: int) -> None:
    waiting = bytearray()
    for begin, end in frames:
        waiting += FRAME.pack(begin, end)
        max_hits -= end != SEARCHED
        if end == SEARCHED or max_hits == 0:
            os.write(1, waiting)
            waiting.clear()
        if max_hits == 0:
            return
