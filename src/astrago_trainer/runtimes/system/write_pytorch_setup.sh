# Init container setup: leaves the scripts that a command sources in a volume that node has at /shared.
set -eu

folder=${SETUP_FOLDER:-/shared}
cat > "$folder/setup_pytorch_env.sh" << 'ASTRAGO_END'
# --- setup_pytorch_env.sh
# Environment of a PyTorch process: what the Trainer sets (PET_*) under the names PyTorch reads.
# Delivered in /shared, by the ConfigMap pytorch-pet-setup or the runtime's init container `setup`,
# and sourced by bash before user code.

# --- handover.sh
# Makes every signal reach the training code. Must be the first command of a `bash -c` string.
# First pass: forward.py, which lies beside this file, takes the place of this shell, runs the same
# string as its child and passes signals on. Second pass: the traps of that child.
# The mark is never taken back, so that a string can be started again once only, whatever it holds.
if [ -n "${BASH_EXECUTION_STRING:-}" ] && [ -z "${ASTRAGO_SIGNALS:-}" ]; then
  astrago_python=$(type -P python3 || type -P python || :)
  astrago_forward=${BASH_SOURCE[0]%/*}/forward.py
  if [ -n "$astrago_python" ] && [ -r "$astrago_forward" ]; then
    export ASTRAGO_SIGNALS=forwarded
    astrago_command=("$astrago_python" -IS "$astrago_forward")
    astrago_traps='(^|[[:space:];&|({])trap[[:space:]]'
    if [[ $BASH_EXECUTION_STRING =~ $astrago_traps ]]; then astrago_command+=(--own-traps); fi
    astrago_command+=("$BASH")
    if shopt -qo pipefail; then astrago_command+=(-o pipefail); fi
    if shopt -q login_shell; then astrago_command+=(-l); fi
    exec "${astrago_command[@]}" "-${-//[cims]/}c" "$BASH_EXECUTION_STRING" "$0" "$@"
  fi
  echo "Signals do not reach the training code, which a stop then kills after its grace period:" \
    "it takes python3 or python, found '$astrago_python', and the file $astrago_forward."
elif [ -n "${BASH_EXECUTION_STRING:-}" ]; then
  # After the command that was interrupted nothing else is started. Its exit code is kept; but 0 with
  # commands still to come would call a stopped job finished, so that is 128+n.
  astrago_stop() {
    wait # what runs in the background got the signal too
    if [ "$1" -ne 0 ]; then exit "$1"; fi
    set -T # for functions and subshells too, whichever comes next
    # shellcheck disable=SC2064 # the number is meant to be put in now
    trap "exit $2" DEBUG
  }
  trap 'astrago_stop "$?" 129' HUP
  trap 'astrago_stop "$?" 130' INT
  trap 'astrago_stop "$?" 131' QUIT
  trap 'astrago_stop "$?" 143' TERM
  trap : USR1 USR2 # meant for a program that takes the place of this shell
fi
# --- end of handover.sh

echo '🔧 PyTorch 분산 학습 환경 설정 시작 (PyTorch setup started)'
astrago_missing=''
for astrago_name in PET_NODE_RANK PET_NNODES PET_MASTER_ADDR PET_MASTER_PORT; do
  if [ -z "${!astrago_name:-}" ]; then astrago_missing="$astrago_missing $astrago_name"; fi
done
# A runtime without mlPolicy.torch sets none of them, which suits a single node.
if [ "${astrago_missing// /}" = PET_NODE_RANKPET_NNODESPET_MASTER_ADDRPET_MASTER_PORT ] &&
  [ "${JOB_COMPLETION_INDEX:-0}" = 0 ]; then
  astrago_missing=''
fi
if [ -n "$astrago_missing" ]; then
  echo "❌ PyTorch 환경변수 설정 실패 (PyTorch setup failed): not set:$astrago_missing. The Trainer sets" \
    "them when the runtime has mlPolicy.torch and the TrainJob has spec.trainer."
  exit 1
fi
# One process per node, whatever PET_NPROC_PER_NODE says: without a GPU the Trainer puts the number
# of CPUs there, so it does not tell how the user starts. torchrun needs no exception: its agent
# reads PET_* alone, and it sets every name below anew for the workers it starts.
export RANK="${PET_NODE_RANK:-0}" WORLD_SIZE="${PET_NNODES:-1}"
export MASTER_ADDR="${PET_MASTER_ADDR:-localhost}" MASTER_PORT="${PET_MASTER_PORT:-29500}"
export LOCAL_RANK="${PET_LOCAL_RANK:-0}" LOCAL_WORLD_SIZE=1
# WARN is silent until something breaks and then says why; INFO is a hundred lines per rank and
# start. A job that wants them sets NCCL_DEBUG itself.
export NCCL_DEBUG="${NCCL_DEBUG:-WARN}"
echo '✅ PyTorch 환경변수 설정 완료! (PyTorch setup done)'
echo "  - RANK: $RANK"
echo "  - WORLD_SIZE: $WORLD_SIZE"
echo "  - LOCAL_RANK: $LOCAL_RANK"
echo "  - MASTER_ADDR: $MASTER_ADDR"
echo "  - MASTER_PORT: $MASTER_PORT"
# --- end of setup_pytorch_env.sh
ASTRAGO_END
cat > "$folder/forward.py" << 'ASTRAGO_END'
# --- forward.py
"""Runs a shell as a child and passes every signal on to it: `docs/decisions/0011-*`.

usage: python forward.py [--own-traps] shell [argument ...]

A shell checks its traps and then waits for its child; a signal in between is lost. Here all signals
are blocked and taken one by one, so each is either waiting or taken. The exit code is the child's
own, 128+n after signal n; what it leaves in its process group is killed, as a container's end does.

A shell between two commands may act on a signal after the second one only. So what it starts after
a stop gets the stop too; what the training starts while it stops does not. With --own-traps the
shell has traps of its own: what these start is meant, and left alone.
"""

from __future__ import annotations

# Not `signal`: it builds enums for 4 ms, half of what this program takes.
import _signal as signal
import os
import sys

STOPS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}  # for the whole group
NOTES = {signal.SIGUSR1, signal.SIGUSR2}  # for the shell, or what it became by `exec`, alone
TAKEN = {*STOPS, *NOTES, signal.SIGCHLD}
CHECK_SECONDS = 0.1


def main(words: list[str]) -> int:
    has_own_traps = words[:1] == ["--own-traps"]
    words = words[has_own_traps:]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN)
    child = start(words, mask)
    shell = b"".join(os.fsencode(word) + b"\0" for word in words)
    before = command_of(os.getpid())  # the child has it too, until it is the shell
    stop, informed = 0, set()
    while True:
        number = take(CHECK_SECONDS if stop else None)
        if number == signal.SIGCHLD:
            code = end_of(child)
            if code is not None:
                attempt(os.killpg, child, signal.SIGKILL)
                return code
        elif number in NOTES:
            attempt(os.kill, child, number)
        elif number in STOPS:
            is_program = command_of(child) not in (before, shell)
            stop = 0 if is_program or has_own_traps else number
            informed = {identity for identity, _ in members(child)}
            attempt(os.killpg, child, number)
        elif command_of(child) != shell:  # it has become a program, which did not get the stop
            attempt(os.kill, child, stop)
            stop = 0
        else:
            late = newcomers(child, informed)
            informed |= late
            for identity in late:
                attempt(os.kill, identity[0], stop)


def start(words: list[str], mask: set[int]) -> int:
    """Start the shell in a process group of its own, with the signals as they were here."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if ignored, the child's code would be gone
    child = os.fork()
    if child:
        attempt(os.setpgid, child, child)  # here too: a signal may come before the child does it
        return child
    os.setpgid(0, 0)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        os.execvp(words[0], words)
    except OSError as error:
        os.write(2, f"forward: {words[0]}: {error.strerror}\n".encode())
    os._exit(127)


def take(seconds: float | None) -> int:
    """Give the next signal, or 0 after so many seconds."""
    if seconds is None:
        return signal.sigwait(TAKEN)
    info = signal.sigtimedwait(TAKEN, seconds)
    return info.si_signo if info else 0


def attempt(call, target: int, value: int) -> None:
    try:
        call(target, value)
    except OSError:  # the process has ended, or does not need it any more
        return


def end_of(child: int) -> int | None:
    """Give the exit code if it has ended. As process 1, reap what others have left."""
    while True:
        end = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if end is None:
            return None
        if end.si_pid == child:  # not reaped: its number still names the group
            return end.si_status + (0 if end.si_code == os.CLD_EXITED else 128)
        os.waitpid(end.si_pid, 0)


def command_of(pid: int) -> bytes:
    """Give its command line, which is another after an `exec`; none of a process that has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def members(group: int):
    """Give (pid, start, place of the stack: another after an `exec`) and parent of each process."""
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[2]) == group:
            yield (int(name), fields[19], fields[25]), int(fields[1])


def newcomers(shell: int, informed: set) -> set:
    """Give the processes that the shell started after the stop, and those that these started."""
    left, late, parents = set(members(shell)), set(), {shell}
    while True:
        more = {each for each in left if each[1] in parents and each[0] not in informed}
        if not more:
            return late
        left -= more
        late |= {identity for identity, _ in more}
        parents = {identity[0] for identity in late}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
# --- end of forward.py
ASTRAGO_END
