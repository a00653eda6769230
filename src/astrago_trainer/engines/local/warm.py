"""Processes that begin with a framework imported: forked from a supervisor that was itself forked from a zygote.

A forked process must not be told from a fresh interpreter by the training code. So it is refused, and the real
interpreter started, whenever something asks for what a fork cannot give: an option of the interpreter, or a variable
that is read when the interpreter or a library starts. Standard library only; no thread may run in whoever forks.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

READ_AT_START = (
    "ATEN_", "GLIBC_", "GOMP_", "KMP_", "LD_", "MALLOC_", "MKL_", "OMP_", "OPENBLAS_", "PYTHON", "PYTORCH_", "TF_",
    "TORCH_", "XLA_",
)  # fmt: skip
"""Beginnings of variables that act while an interpreter, or a framework, is loaded."""
MADE_UP_FOR = ("OMP_NUM_THREADS", "PYTHONUNBUFFERED", "TF_ADDRESSES", "TF_CONFIG", "TF_PORT")
"""Read later too, or set by hand after the fork."""
_PACKAGES = os.path.abspath(__file__ + "/../../../..")


_before: dict[str, str] = {}
"""The environment in which the interpreter started."""
_added: dict[str, str] = {}
"""What the imports have put into it: a fresh process would have that too."""


def note_environment(before: dict[str, str]) -> None:
    """By whoever imports the framework, after it."""
    _before.update(before)
    _added.update({name: value for name, value in os.environ.items() if before.get(name) != value})


class Asked:
    """One `python …` of the job: what it is to run, where, and with which environment."""

    def __init__(self, words: list[str]) -> None:
        """As the program `python` sends them. Raises ValueError."""
        self.folder, mask, count = words[:3]
        self.umask = int(mask)
        self.words = words[3 : 3 + int(count)]
        pairs = (word.partition("=") for word in words[3 + int(count) :])
        self.env = {name: value for name, _, value in pairs}
        self.program = ""
        """What calls itself the interpreter, for processes that it starts in turn."""

    def refusal(self) -> str:
        """Why it has to be a fresh interpreter; empty when a fork will do."""
        rest = self.words[1:] if self.words[:1] == ["-u"] else self.words
        if not rest:
            return "no script"
        if rest[0] == "-m" and len(rest) > 1:
            pass
        elif rest[0].startswith("-"):
            return f"option {rest[0]}"
        for name in sorted(self.env.keys() | _before.keys()):
            is_read = name.startswith(READ_AT_START) and name not in MADE_UP_FOR
            if is_read and self.env.get(name) != _before.get(name):
                return f"variable {name}"
        return ""


def become(asked: Asked, streams: list[int]) -> NoReturn:
    """In the forked process, once it has its place: runs the script as `python` would, to the end of the process."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.umask(asked.umask)
    os.chdir(asked.folder)
    os.environ.clear()
    os.environ.update({**_added, **asked.env})
    is_unbuffered = asked.words[0] == "-u" or bool(asked.env.get("PYTHONUNBUFFERED"))
    words = asked.words[1:] if asked.words[0] == "-u" else asked.words
    sys.executable = asked.program
    _restore_interpreter(is_unbuffered)
    _restore_frameworks(asked.env)
    _leave(_run(words))


def _restore_interpreter(is_unbuffered: bool) -> None:
    import io
    import random
    import signal

    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) not in (signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    streams = (
        ("stdin", "r", "strict"),
        ("stdout", "w", "strict"),
        ("stderr", "w", "backslashreplace"),
    )
    for fd, (name, mode, errors) in enumerate(streams):
        # Made as the interpreter makes them, whose names these objects show.
        raw: Any = io.FileIO(fd, mode, closefd=False)
        raw.name = f"<{name}>"
        buffered = io.BufferedReader(raw) if fd == 0 else io.BufferedWriter(raw)
        stream: Any = io.TextIOWrapper(
            buffered,
            encoding="utf-8",
            errors=errors,
            line_buffering=fd == 2 or os.isatty(fd),
            write_through=is_unbuffered,
        )
        stream.mode = mode
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    random.seed()
    for name in [each for each in sys.modules if each.partition(".")[0] == "astrago_trainer"]:
        del sys.modules[name]  # the job's environment may have one of its own
    sys.path.remove(_PACKAGES)


def _restore_frameworks(env: dict[str, str]) -> None:
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
    torch: Any = sys.modules.get("torch")
    threads = env.get("OMP_NUM_THREADS", "")
    if torch is not None and threads.isdecimal() and int(threads) > 0:
        torch.set_num_threads(int(threads))


def _run(words: list[str]) -> int:
    """The exit code of the script or module, with its traceback printed as python prints it."""
    import runpy
    import traceback

    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            sys.path.insert(0, os.getcwd())
            runpy._run_module_as_main(words[1])  # type: ignore[attr-defined]
        else:
            sys.argv = words
            sys.path.insert(0, os.path.dirname(os.path.realpath(words[0])))
            _run_script(words[0])
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        sys.stderr.write(f"{end.code}\n")
        return 1
    except KeyboardInterrupt:
        traceback.print_exc()
        return 130
    except BaseException as error:
        # Without the frames of ours.
        found = error.__traceback__
        while found is not None and found.tb_frame.f_code.co_filename == __file__:
            found = found.tb_next
        sys.excepthook(type(error), error.with_traceback(found), found)
        return 1
    return 0


def _run_script(path: str) -> None:
    import builtins
    import types

    path = os.path.abspath(path)
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        reason = f"[Errno {error.errno}] {error.strerror}"
        sys.stderr.write(f"python: can't open file {path!r}: {reason}\n")
        raise SystemExit(2) from None
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = main
    exec(compile(source, path, "exec"), main.__dict__)  # noqa: S102 - the user's own script


def _leave(code: int) -> NoReturn:
    """As an interpreter ends: threads, handlers, buffers. Not `sys.exit`: below us is the supervisor's stack."""
    import atexit
    import threading
    import traceback

    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception as error:
                told = "".join(traceback.format_exception_only(error))
                os.write(2, f"Exception ignored in: {stream!r}\n{told}".encode())
                code = 120  # as python does
    finally:
        os._exit(code)
