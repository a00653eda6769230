"""Starts the training processes of one node, and says why they ended: `docs/launcher.md`.

One file for users' images: the standard library only, Python 3.8 to 3.13, and never torch, whose
import would cost more than all the rest. It must stay small and quick to start.

What a process writes. Standard output is inherited; nothing is copied. Standard error of several
processes comes through a pipe each, because only then is the cause's traceback surely its own, and
lines stay whole although Python writes them in pieces. A single process writes its standard error
itself, unless there is a termination message to fill and no file to read it back from.

What ends with what. Each process is the leader of a session, so a signal to its group reaches all
that it started. Its end is read but not reaped until the last has ended: the number of a dead
process that is not reaped cannot name a stranger. A launcher that is killed takes the groups along
by a pipe that only it holds open: the kernel sends SIGKILL to the owner of the other end.
PR_SET_PDEATHSIG would spare the group, and needs ctypes, which alone takes 5 ms to import.
"""

from __future__ import annotations

# Not `signal`: it builds enums for 4 ms, a third of what this program takes.
import _signal as signal
import fcntl
import os
import select
import stat
import sys
import time

USAGE = """\
usage: python launch.py [options] -- script.py [argument ...]
       python launch.py [options] -- -m module [argument ...]
       python launch.py [options] -- program [argument ...]
options: --nproc N|auto|cpu|gpu  processes on this node (else PET_NPROC_PER_NODE, else 1)
         --kill-after SECONDS    SIGKILL so long after the first failure (15)
         --grace SECONDS         SIGKILL so long after a signal from outside (never)
         --prefix                write [rank N] before every line
"""

MISUSE, NOT_EXECUTABLE, NOT_FOUND = 2, 126, 127  # as shells have them

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Reach the whole group of a process."""
NOTES = (signal.SIGUSR1, signal.SIGUSR2)
"""Reach the process alone: what it started, a DataLoader's workers say, would die of them."""

MAX_MESSAGE_BYTES = 4096  # Kubernetes keeps no more of a termination message
TAIL_BYTES = 256 * 1024  # of standard error; a thousand calls deep is 80 KiB of traceback
CHUNK_BYTES = 64 * 1024  # what a pipe holds
PENDING_BYTES = 256 * 1024  # read and not yet written; more waits in the pipes
LINE_SECONDS = 0.5  # how long an unfinished line waits for its rest


def main(words: list[str]) -> int:
    env = dict(os.environ)
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:  # closed, and a pipe of ours would take its number
            os.open(os.devnull, os.O_RDWR)
    message_path = _termination_path(env)
    try:
        options = Options(words)
        if options.wants_help:
            os.write(1, USAGE.encode())
            return 0
        program, argv = find_program(options.command, env)
        node = Node(env, options.nproc)
        return Launcher(options, node, message_path).run(program, argv, env)
    except LaunchError as error:
        text = f"launch: {error}"
        os.write(2, text.encode(errors="surrogateescape") + b"\n")
        _write_message(message_path, {"rank": None, "exit_code": error.code}, text)
        return error.code


class LaunchError(Exception):
    """Nothing was started, or it could not be: one sentence, and the exit code."""

    def __init__(self, text: str, code: int = MISUSE) -> None:
        super().__init__(text)
        self.code = code


class Options:
    """The command line; read by hand, because argparse takes longer to import than all else."""

    def __init__(self, words: list[str]) -> None:
        self.nproc: str | None = None
        self.kill_after: float | None = 15.0
        self.grace: float | None = None
        self.has_prefix = self.wants_help = False
        rest = list(words)
        while rest and rest[0].startswith("-") and rest[0] not in ("--", "-m"):
            name, has_value, value = rest.pop(0).partition("=")
            if name in ("-h", "--help"):
                self.wants_help = True
            elif name == "--prefix":
                self.has_prefix = True
            elif name in ("--nproc", "--kill-after", "--grace"):
                if not has_value and not rest:
                    raise LaunchError(f"{name} needs a value. {_SEE_HELP}")
                self._set(name, value if has_value else rest.pop(0))
            else:
                raise LaunchError(f"there is no option {name}. {_SEE_HELP}")
        self.command = rest[1:] if rest[:1] == ["--"] else rest
        if not self.command and not self.wants_help:
            raise LaunchError(f"nothing to run: no script after the options. {_SEE_HELP}")

    def _set(self, name: str, value: str) -> None:
        if name == "--nproc":
            self.nproc = value
            return
        try:
            seconds = float(value)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds < 1e9:
            raise LaunchError(f"{name} must be a number of seconds; found {value!r}.")
        setattr(self, name[2:].replace("-", "_"), seconds)


_SEE_HELP = "`python launch.py --help` shows the form."


def find_program(words: list[str], env: dict[str, str]) -> tuple[str, list[str]]:
    """The file to execute and its arguments; a `.py` file and `-m` run in this interpreter."""
    first = words[0]
    if first == "-m":
        if len(words) == 1:
            raise LaunchError(f"-m needs the name of a module. {_SEE_HELP}")
        return sys.executable, [sys.executable, *words]
    if first.endswith(".py"):
        place = os.path.abspath(first)
        if not os.path.isfile(place):
            raise LaunchError(
                f"there is no script {first}: looked for {place}. Give its path from "
                f"{os.getcwd()}, or from /.",
                NOT_FOUND,
            )
        if not os.access(place, os.R_OK):
            raise LaunchError(f"{place} may not be read. Change its mode.", NOT_EXECUTABLE)
        return sys.executable, [sys.executable, *words]
    return _find_executable(first, env), words


def _find_executable(name: str, env: dict[str, str]) -> str:
    folders = env.get("PATH", os.defpath).split(os.pathsep) if "/" not in name else [""]
    found = [os.path.join(folder, name) for folder in folders]
    found = [place for place in found if os.path.isfile(place)]
    for place in found:
        if os.access(place, os.X_OK):
            return place
    if found:
        raise LaunchError(
            f"{found[0]} may not be executed. Change its mode, or name the interpreter before it.",
            NOT_EXECUTABLE,
        )
    where = "in the folders of PATH" if "/" not in name else f"from {os.getcwd()}"
    raise LaunchError(
        f"there is no program {name}: looked for it {where}. A Python script ends with .py here, "
        "and a module comes after -m.",
        NOT_FOUND,
    )


class Node:
    """This node's place in the job, as the Trainer's variables tell it.

    JAX and TensorFlow read theirs themselves: one process, and nothing is set for it.
    """

    def __init__(self, env: dict[str, str], nproc: str | None) -> None:
        self.processes = 1
        self.first_rank = 0
        self.host = os.uname().nodename
        self._common: dict[str, str] | None = None
        others = [name for name in (*_JAX, "TF_CONFIG") if name in env]
        if others and "PET_NODE_RANK" not in env:
            if nproc not in (None, "1"):
                raise LaunchError(
                    f"--nproc {nproc}: with {others[0]} set, a node has one process. "
                    "Leave --nproc out."
                )
            self.first_rank = _other_rank(env)
            return
        wanted = nproc or env.get("PET_NPROC_PER_NODE") or "1"
        self.processes = count_processes(wanted, env, "--nproc" if nproc else "PET_NPROC_PER_NODE")
        nodes, rank = _nodes(env)
        self.first_rank = rank * self.processes
        size = str(nodes * self.processes)
        address, port = _master(env, nodes)
        attempt = env.get("ASTRAGO_ATTEMPT", "")
        self._common = {
            "WORLD_SIZE": size,
            "LOCAL_WORLD_SIZE": str(self.processes),
            "GROUP_RANK": str(rank),
            "GROUP_WORLD_SIZE": str(nodes),
            "ROLE_NAME": env.get("PET_ROLE", "default"),
            "ROLE_WORLD_SIZE": size,
            "MASTER_ADDR": address,
            "MASTER_PORT": port,
            "TORCHELASTIC_RESTART_COUNT": attempt if attempt.isdigit() else "0",
            "TORCHELASTIC_MAX_RESTARTS": env.get("PET_MAX_RESTARTS", "0"),
            "TORCHELASTIC_RUN_ID": env.get("PET_RDZV_ID", "none"),
            # No agent has a store here: rank 0 itself listens on MASTER_PORT.
            "TORCHELASTIC_USE_AGENT_STORE": "False",
            # The defaults of torchrun.
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": env.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
        }
        if self.processes > 1 and "OMP_NUM_THREADS" not in env:
            self._common["OMP_NUM_THREADS"] = "1"

    def variables(self, local_rank: int) -> dict[str, str]:
        """What the process with this local rank gets beside the launcher's environment."""
        if self._common is None:
            return {}
        rank = str(self.first_rank + local_rank)
        return dict(self._common, RANK=rank, ROLE_RANK=rank, LOCAL_RANK=str(local_rank))


_JAX = ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS")


def _other_rank(env: dict[str, str]) -> int:
    """Only for messages, so a value that cannot be read is no reason to stop."""
    if "TF_CONFIG" not in env:
        rank = env.get("JAX_PROCESS_ID", "0")
        return int(rank) if rank.isdigit() else 0
    import json

    try:
        return int(json.loads(env["TF_CONFIG"])["task"]["index"])
    except (ValueError, LookupError, TypeError):
        return 0


def _nodes(env: dict[str, str]) -> tuple[int, int]:
    """How many nodes there are, and which of them this is."""
    text = env.get("PET_NNODES") or "1"
    least, _, most = text.partition(":")
    if most and most != least:
        raise LaunchError(
            f"PET_NNODES={text}: a number of nodes that changes needs torchrun. Give one number."
        )
    nodes = _number("PET_NNODES", least, 1, 1_000_000)
    if nodes > 1 and not env.get("PET_NODE_RANK"):
        raise LaunchError(
            f"PET_NNODES is {nodes} and PET_NODE_RANK is not set. The Trainer sets it when the "
            f"runtime has mlPolicy.torch; else set it, from 0 to {nodes - 1}, on each node."
        )
    return nodes, _number("PET_NODE_RANK", env.get("PET_NODE_RANK") or "0", 0, nodes - 1)


def _master(env: dict[str, str], nodes: int) -> tuple[str, str]:
    """Where rank 0 listens; alone, on a free port of this machine."""
    address = env.get("PET_MASTER_ADDR") or env.get("MASTER_ADDR")
    port = env.get("PET_MASTER_PORT") or env.get("MASTER_PORT")
    if not address and nodes > 1:
        raise LaunchError(
            f"PET_NNODES is {nodes} and PET_MASTER_ADDR is not set. Set it to node 0's name."
        )
    if port:
        return address or "127.0.0.1", str(_number("PET_MASTER_PORT", port, 1, 65535))
    return address or "127.0.0.1", "29500" if nodes > 1 else str(_free_port())


def _number(name: str, text: str, least: int, most: int) -> int:
    if not (text.isdigit() and least <= int(text) <= most):
        raise LaunchError(f"{name} must be a number from {least} to {most}; found {text!r}.")
    return int(text)


def _free_port() -> int:
    import _socket  # `socket` takes ten times as long

    probe = _socket.socket()
    probe.bind(("127.0.0.1", 0))
    port: int = probe.getsockname()[1]
    probe.close()
    return port


def count_processes(wanted: str, env: dict[str, str], source: str) -> int:
    """A number, or the words of torchrun: `gpu`, `cpu`, and `auto` for the first that is there."""
    if wanted not in ("auto", "cpu", "gpu"):
        if not wanted.isdigit() or int(wanted) < 1:
            raise LaunchError(f"{source} must be a number, auto, cpu or gpu; found {wanted!r}.")
        return int(wanted)
    gpus = 0
    if wanted != "cpu":
        gpus = count_visible(env.get("CUDA_VISIBLE_DEVICES"), _nvidia_devices())
    if not gpus and wanted == "gpu":
        raise LaunchError(
            f"{source} is gpu, and no GPU is visible here (CUDA_VISIBLE_DEVICES: "
            f"{env.get('CUDA_VISIBLE_DEVICES', 'not set')}). Ask for GPUs, or give a number."
        )
    if gpus:
        return gpus
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_visible(chosen: str | None, present: int) -> int:
    """How many GPUs CUDA would see, by CUDA_VISIBLE_DEVICES and the number that is there.

    NVIDIA_VISIBLE_DEVICES says nothing: images set it to `all`, with or without a GPU.
    """
    if chosen is None:
        return present
    count = 0
    for name in (each.strip() for each in chosen.split(",")):
        if name.startswith("MIG-"):
            return min(1, present)  # CUDA gives a process one slice, however many are named
        if not name.startswith("GPU-") and not (name.isdigit() and int(name) < present):
            break  # CUDA takes what is before the first that it does not know
        count += 1
    return min(count, present)


def _nvidia_devices() -> int:
    """A container has a device file for each GPU that is its own, while /proc may list all."""
    try:
        names = os.listdir("/dev")
    except OSError:
        names = []
    return (
        sum(name.startswith("nvidia") and name[6:].isdigit() for name in names) or _nvml_devices()
    )


def _nvml_devices() -> int:
    """For WSL, which has no such files."""
    import ctypes

    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        count = ctypes.c_uint(0)
        if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            return 0
    except (OSError, AttributeError):
        return 0
    return count.value


class Worker:
    """One training process."""

    __slots__ = ("code", "is_reaped", "lifeline", "local_rank", "pid", "rank", "tail")

    def __init__(self, local_rank: int, rank: int) -> None:
        self.local_rank = local_rank
        self.rank = rank
        self.pid = 0
        self.code: int | None = None
        """The exit code, or minus the signal; None while it runs."""
        self.is_reaped = False
        self.lifeline = -1
        self.tail = bytearray()


class Outlet:
    """A standard stream of ours. Written when it has room, so that we never wait for its reader."""

    __slots__ = ("fd", "pending", "room")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.pending = bytearray()
        # A file takes all. Of a pipe, poll says only that so much goes in without waiting.
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)
        self.room = PENDING_BYTES if is_file else select.PIPE_BUF

    def write(self) -> None:
        size = len(self.pending)
        if size > self.room:  # whole lines, as others write to the same pipe
            size = self.pending.rfind(b"\n", 0, self.room) + 1 or self.room
        try:
            del self.pending[: os.write(self.fd, self.pending[:size])]
        except BlockingIOError:
            return
        except OSError:  # nobody reads, or the disk is full: training goes on without its log
            self.pending.clear()


class Stream:
    """What one process writes, on its way to an outlet."""

    __slots__ = ("due", "held", "outlet", "prefix", "source", "tail", "waits_for_lines")

    def __init__(self, source: int, outlet: Outlet, tail: bytearray) -> None:
        self.source = source
        self.outlet = outlet
        self.tail = tail
        self.prefix = b""
        self.waits_for_lines = False
        self.held = b""
        self.due: float | None = None
        os.set_blocking(source, False)

    def read(self) -> int | None:
        """Take what is there; its size, 0 when nothing will ever come again, None for not yet."""
        try:
            chunk = os.read(self.source, CHUNK_BYTES)
        except BlockingIOError:
            return None
        self.tail += chunk
        if len(self.tail) > 2 * TAIL_BYTES:
            del self.tail[:-TAIL_BYTES]
        data = self.held + chunk
        cut = len(data)
        if self.waits_for_lines and chunk:
            # A progress bar ends its lines with a carriage return.
            cut = max(data.rfind(b"\n"), -1 if self.prefix else data.rfind(b"\r")) + 1
            if not cut and len(data) >= CHUNK_BYTES:
                cut = len(data)
        self._pass(data[:cut])
        self.held = data[cut:]
        if not self.held:
            self.due = None
        elif cut or self.due is None:
            self.due = time.monotonic() + LINE_SECONDS
        return len(chunk)

    def pass_held(self) -> None:
        self._pass(self.held)
        self.held, self.due = b"", None

    def _pass(self, data: bytes) -> None:
        if self.prefix and data:
            lines = data[:-1] if data.endswith(b"\n") else data
            data = self.prefix + lines.replace(b"\n", b"\n" + self.prefix) + b"\n"
        self.outlet.pending += data


class Launcher:
    """All processes of the node, from their start to the last one's end."""

    def __init__(self, options: Options, node: Node, message_path: str | None) -> None:
        self.options = options
        self.node = node
        self.message_path = message_path
        self.workers = [Worker(each, node.first_rank + each) for each in range(node.processes)]
        self.outlets = [Outlet(1), Outlet(2)]
        self.streams: list[Stream] = []
        self.first: Worker | None = None
        """The first that failed."""
        self.stopped_by = 0
        self.kill_at: float | None = None
        self.is_over = False
        self.deaths: tuple[select.epoll, dict[int, Worker]] | None = None
        self.is_first_process = os.getpid() == 1
        self.wake, wake_end = os.pipe()
        for end in (self.wake, wake_end):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        for number in (*STOPS, *NOTES, signal.SIGCHLD):
            # What whoever started us ignores (nohup does) stays ignored, here and below.
            if number == signal.SIGCHLD or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _note)
        stderr = os.fstat(2)
        is_file = stat.S_ISREG(stderr.st_mode)
        self.has_pipes = (
            options.has_prefix
            or len(self.workers) > 1
            or (message_path is not None and not is_file)
        )
        self.log_start = stderr.st_size if is_file and not self.has_pipes else None

    def run(self, path: str, argv: list[str], env: dict[str, str]) -> int:
        self._start(path, argv, env)
        self.deaths = _watch_deaths(self.workers)
        while not self.is_over or any(outlet.pending for outlet in self.outlets):
            self._wait()
        for worker in self.workers:
            if not worker.is_reaped:
                os.waitpid(worker.pid, 0)
        return _exit_code(self.first.code) if self.first else 0

    # --- start

    def _start(self, path: str, argv: list[str], env: dict[str, str]) -> None:
        """Fork all at once. Forked, not spawned: posix_spawn knows no session on older builds."""
        report, report_end = os.pipe()
        try:
            for worker in self.workers:
                own = dict(env, **self.node.variables(worker.local_rank))
                self._start_one(worker, path, argv, own, report_end)
        except OSError as error:
            self._end_at_once()
            raise LaunchError(
                f"process {worker.local_rank + 1} of {len(self.workers)} cannot be started: "
                f"{error.strerror}.",
                1,
            ) from error
        os.close(report_end)
        # Ends when the last of them has become the program: all sessions exist from here on.
        problem = os.read(report, 64)
        os.close(report)
        if problem:
            self._end_at_once()
            raise LaunchError(
                f"{path} cannot be executed: {os.strerror(int(problem.split()[0]))}. Is it a "
                "program for this machine, or a script whose first line names its interpreter?",
                NOT_EXECUTABLE,
            )

    def _start_one(
        self, worker: Worker, path: str, argv: list[str], env: dict[str, str], report: int
    ) -> None:
        ends = {}
        for outlet in self.outlets:
            if self.options.has_prefix or (outlet.fd == 2 and self.has_pipes):
                source, ends[outlet.fd] = os.pipe()
                stream = Stream(source, outlet, worker.tail if outlet.fd == 2 else bytearray())
                stream.waits_for_lines = self.options.has_prefix or len(self.workers) > 1
                if self.options.has_prefix:
                    stream.prefix = b"[rank %d] " % worker.rank
                self.streams.append(stream)
        alive, worker.lifeline = os.pipe()
        worker.pid = os.fork()
        if worker.pid == 0:
            try:
                os.setsid()
                _tie_to_launcher(alive)
                for number in (signal.SIGPIPE, signal.SIGXFSZ):
                    signal.signal(number, signal.SIG_DFL)  # ignored by Python, not by us
                for fd, end in ends.items():
                    os.dup2(end, fd)
                os.execve(path, argv, env)
            except OSError as error:
                os.write(report, b"%d " % (error.errno or 0))
            finally:
                os._exit(NOT_EXECUTABLE)
        os.close(alive)
        for end in ends.values():
            os.close(end)

    def _end_at_once(self) -> None:
        for worker in self.workers:
            if worker.pid:
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)

    # --- the one loop

    def _wait(self) -> None:
        """Sleep until something happens, then do what it asks for."""
        poll = select.poll()
        poll.register(self.wake, select.POLLIN)
        for outlet in self.outlets:
            if outlet.pending:
                poll.register(outlet.fd, select.POLLOUT)
        for stream in self.streams:
            if len(stream.outlet.pending) < PENDING_BYTES:
                poll.register(stream.source, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(self._timeout())}
        for outlet in self.outlets:
            if outlet.fd in ready:
                outlet.write()
        for stream in list(self.streams):
            if stream.source in ready and stream.read() == 0:
                self._close(stream)
        self._do_what_is_due(time.monotonic())
        if self.wake in ready:
            numbers = dict.fromkeys(os.read(self.wake, CHUNK_BYTES))
            for number in numbers:
                if number != signal.SIGCHLD:
                    self._forward(number)
            # Last, for an end may be what a stop from outside has brought about.
            if signal.SIGCHLD in numbers:
                self._look_for_ends()

    def _timeout(self) -> int | None:
        """Milliseconds until the next deadline; None when there is none, and nothing is polled."""
        times = [stream.due for stream in self.streams] + [self.kill_at]
        due = [each for each in times if each is not None]
        return max(0, int((min(due) - time.monotonic()) * 1000) + 1) if due else None

    def _do_what_is_due(self, now: float) -> None:
        for stream in self.streams:
            if stream.due is not None and stream.due <= now:
                stream.pass_held()
        if self.kill_at is not None and self.kill_at <= now:
            self.kill_at = None
            self._say("ended with SIGKILL what was left: it did not end by itself in time.")
            self._signal_groups(signal.SIGKILL)

    def _close(self, stream: Stream) -> None:
        stream.pass_held()
        os.close(stream.source)
        self.streams.remove(stream)

    # --- signals

    def _forward(self, number: int) -> None:
        """As often as it comes: whoever stops a job may ask twice, and means the same."""
        if number in NOTES:
            for worker in self.workers:
                if worker.code is None:
                    os.kill(worker.pid, number)
            return
        if self.is_over:  # only a reader that does not read keeps us
            for outlet in self.outlets:
                outlet.pending.clear()
            return
        self.stopped_by = self.stopped_by or number
        if self.first is not None and self.first.code == -number:
            self.kill_at = None  # that was no failure: the stop came there before it came here
        if self.kill_at is None and self.options.grace is not None:
            self.kill_at = time.monotonic() + self.options.grace
        self._signal_groups(number)

    def _signal_groups(self, number: int) -> None:
        """Also the groups of processes that ended: what they started may be there still."""
        for worker in self.workers:
            if worker.is_reaped and not self.is_first_process:
                continue  # its number may be a stranger's by now; in a container all are ours
            try:
                os.killpg(worker.pid, number)
            except (ProcessLookupError, PermissionError):
                continue

    # --- ends

    def _look_for_ends(self) -> None:
        for worker in [*self._in_order_of_death(), *self.workers]:
            if worker.code is None:
                self._note_end(worker, _find_code(worker))
        if self.is_first_process:
            self._reap_all()
        if not self.is_over and all(worker.code is not None for worker in self.workers):
            self._finish()

    def _in_order_of_death(self) -> list[Worker]:
        """Several may have died since we last looked; the kernel lists them as they did."""
        if self.deaths is None:
            return []
        epoll, by_fd = self.deaths
        dead = [fd for fd, _ in epoll.poll(0)]
        for fd in dead:
            epoll.unregister(fd)
            os.close(fd)
        return [by_fd[fd] for fd in dead]

    def _reap_all(self) -> None:
        """As process 1: every process whose parent is gone becomes our child, and ends here."""
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            for worker in self.workers:
                if worker.pid == found.si_pid and not worker.is_reaped:
                    if worker.code is None:
                        self._note_end(worker, _find_code(worker))
                    worker.is_reaped = True
            os.waitpid(found.si_pid, 0)

    def _note_end(self, worker: Worker, code: int | None) -> None:
        worker.code = code
        if not code or self.first is not None:
            return
        self.first = worker
        for stream in [each for each in self.streams if each.tail is worker.tail]:
            self._read_rest(stream)
        running = sum(each.code is None for each in self.workers)
        text = self._describe(worker, code)
        if running and not self.stopped_by:
            # A stop from outside is not hurried: the others may be saving what they have.
            self._say(f"{text}; ending the other {running}.")
            self._signal_groups(signal.SIGTERM)
            if self.options.kill_after is not None:
                self.kill_at = time.monotonic() + self.options.kill_after
        else:
            self._say(f"{text}.")
        self._write_cause(worker, code, text)

    def _describe(self, worker: Worker, code: int) -> str:
        who = f"rank {worker.rank} (local rank {worker.local_rank} on {self.node.host})"
        if code > 0:
            text = f"{who} exited with code {code}"
        elif -code == signal.SIGKILL and not self.stopped_by:
            text = f"{who} was killed by SIGKILL (often that is the memory limit)"
        else:
            text = f"{who} was killed by {_signal_name(-code)}"
        if self.stopped_by:
            text += f", after {_signal_name(self.stopped_by)} from outside"
        return text

    def _write_cause(self, worker: Worker, code: int, text: str) -> None:
        """At once, for whoever stops us next may not wait until the others have ended."""
        if self.message_path is None:
            return
        cause = {
            "rank": worker.rank,
            "local_rank": worker.local_rank,
            "host": self.node.host,
            "exit_code": _exit_code(code),
            "signal": _signal_name(-code) if code < 0 else None,
            "stopped_by": _signal_name(self.stopped_by) if self.stopped_by else None,
            "time": round(time.time(), 3),
        }
        tail = bytes(worker.tail) if self.log_start is None else _file_tail(self.log_start)
        _write_message(self.message_path, cause, f"{text}.", tail)

    def _finish(self) -> None:
        """The last has ended: end what they left behind, as a container's end would, and read on."""
        self.is_over = True
        self.kill_at = None
        self._signal_groups(signal.SIGKILL)
        for stream in list(self.streams):
            self._read_rest(stream)
            self._close(stream)

    def _read_rest(self, stream: Stream) -> None:
        """What is in the pipe, and no more: one that escaped its group may write for ever."""
        for _ in range(16):  # the largest pipe an ordinary user may have is 1 MiB
            if not stream.read():
                return

    def _say(self, text: str) -> None:
        self.outlets[1].pending += b"launch: %s\n" % text.encode(errors="surrogateescape")


def _note(*_: object) -> None:
    """Nothing: a handler must be there for the interpreter to write the number into the pipe."""


def _tie_to_launcher(alive: int) -> None:
    """In the new process: SIGKILL for its group when the other end of the pipe closes."""
    try:
        kept = fcntl.fcntl(alive, fcntl.F_DUPFD, 100)  # out of the way of scripts that use 3 or 9
        fcntl.fcntl(kept, fcntl.F_SETOWN, -os.getpid())
        fcntl.fcntl(kept, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(kept, fcntl.F_SETFL, fcntl.fcntl(kept, fcntl.F_GETFL) | os.O_ASYNC)
    except (OSError, AttributeError):
        return  # not Linux, or a sandbox: then whoever kills the launcher kills the rest
    poll = select.poll()
    poll.register(kept, 0)
    if poll.poll(0):  # it died before we asked to be told
        os._exit(NOT_EXECUTABLE)


def _watch_deaths(workers: list[Worker]) -> tuple[select.epoll, dict[int, Worker]] | None:
    """None before Python 3.9 and Linux 5.3; then of several dead the lowest rank counts as first."""
    if len(workers) == 1 or not hasattr(os, "pidfd_open"):
        return None
    try:
        by_fd = {os.pidfd_open(worker.pid): worker for worker in workers}
        epoll = select.epoll()
        for fd in by_fd:
            epoll.register(fd, select.EPOLLIN)
    except OSError:
        return None
    return epoll, by_fd


def _find_code(worker: Worker) -> int | None:
    """The exit code, or minus the signal; None while it runs."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        pid, status = os.waitpid(worker.pid, os.WNOHANG)
        worker.is_reaped = pid != 0
        if not pid:
            return None
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    found = os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _exit_code(code: int | None) -> int:
    return 0 if code is None else code if code >= 0 else 128 - code


def _signal_name(number: int) -> str:
    from signal import Signals

    try:
        return Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


# --- the termination message


def _termination_path(env: dict[str, str]) -> str | None:
    """Where the cause is to be written: where the platform says, or where Kubernetes reads it."""
    own = env.get("ASTRAGO_TERMINATION_LOG")
    if own:
        return own
    standard = "/dev/termination-log"
    return standard if os.path.isfile(standard) and os.access(standard, os.W_OK) else None


def _file_tail(start: int) -> bytes:
    """The end of what this run wrote to the file that is our standard error."""
    try:
        fd = os.open("/dev/fd/2", os.O_RDONLY)
        try:
            return os.pread(fd, TAIL_BYTES, max(start, os.fstat(fd).st_size - TAIL_BYTES))
        finally:
            os.close(fd)
    except OSError:
        return b""


def _write_message(
    path: str | None, cause: dict[str, object], text: str, tail: bytes = b""
) -> None:
    """A line of JSON, then the same for people; a place that cannot be written stops nothing."""
    if path is None:
        return
    import json

    head = f"{json.dumps(cause)}\n{text}\n".encode(errors="replace")
    message = head + last_words(tail, MAX_MESSAGE_BYTES - len(head) - 1) + b"\n" if tail else head
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(fd, message[:MAX_MESSAGE_BYTES])
        os.close(fd)
    except OSError:
        return


def last_words(tail: bytes, room: int) -> bytes:
    """Of the end of a standard error what tells most: the last traceback, else the last lines."""
    import re

    text = tail.decode(errors="replace")
    # torch writes the rank before every line of a traceback.
    lines = [re.sub(r"^\[rank\d+\]: ", "", line) for line in re.split(r"\r?\n|\r", text.rstrip())]
    begin = re.compile(r"( *\+ Exception Group )?Traceback \(most recent call last\)")
    starts = [at for at, line in enumerate(lines) if begin.match(line)]
    lines = lines[starts[-1] :] if starts else lines[-20:]
    whole = "\n".join(lines).encode()
    # What was raised stands on the first line after the calls, which are indented.
    raised = next((at for at, line in enumerate(lines) if at and line[:1].strip()), 0)
    if len(whole) <= room or not starts or not raised:
        return _cut(whole, -room)
    end = _cut("\n".join(lines[raised:]).encode(), room // 2)
    calls = _cut("\n".join(lines[:raised]).encode(), len(end) + 1 - room)
    return calls + b"\n" + end


def _cut(text: bytes, room: int) -> bytes:
    """The first bytes, or with a minus the last, without half a character at the cut."""
    part = text[:room] if room >= 0 else text[room:]
    return part.decode(errors="ignore").encode()


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
