# Init container tf-config-generator: leaves TF_CONFIG in a file that the container node sources.
set -eu

# --- tf_config.sh
# TF_CONFIG of this worker: all workers by their lasting host names, and which of them this one is.
# Reads NUM_WORKERS, else PET_NNODES, else 1; JOB_COMPLETION_INDEX, else the end of the host name;
# NAMESPACE (default), TF_PORT (2222). TF_ADDRESSES, host:port of each worker, goes before host names
# and port. Every value is checked, because the result is quoted text. All is said on one stream: a
# pod's log does not keep the order between two.
tf_fail() {
  printf '❌ TF_CONFIG 생성 실패 (TF_CONFIG generation failed): %s\n' "$1"
  exit 1
}
tf_number() {
  case $2 in
    '' | *[!0-9]* | 0[0-9]* | ??????*) tf_fail "$1 must be a number of at most 5 digits, not '$2'" ;;
  esac
}
tf_name() {
  case $2 in
    '' | *[!abcdefghijklmnopqrstuvwxyz0123456789-]*) tf_fail "$1 '$2' is no name of Kubernetes" ;;
  esac
}
echo '🔧 TF_CONFIG 생성 시작 (TF_CONFIG generation started)'
tf_count=${NUM_WORKERS:-${PET_NNODES:-}}
tf_workers=${tf_count:-1}
tf_port=${TF_PORT:-2222}
tf_namespace=${NAMESPACE:-default}
# shellcheck disable=SC3028 # the kubelet sets HOSTNAME
tf_host=${HOSTNAME:-$(hostname -s)}
tf_host=${tf_host%%.*}
tf_job=${tf_host%-node-0-*}
if [ "$tf_job" = "$tf_host" ]; then tf_fail "host name '$tf_host' is not <job>-node-0-<number>"; fi
tf_index=${JOB_COMPLETION_INDEX:-${tf_host##*-}}
tf_number 'the number of workers' "$tf_workers"
tf_number 'the index of this worker' "$tf_index"
tf_number TF_PORT "$tf_port"
tf_name 'the namespace' "$tf_namespace"
tf_name 'the job' "$tf_job"
if [ "$tf_workers" -lt 1 ]; then tf_fail 'there must be at least 1 worker'; fi
if [ "$tf_port" -lt 1 ] || [ "$tf_port" -gt 65535 ]; then tf_fail "TF_PORT $tf_port is no port"; fi
case ${TF_ADDRESSES:-} in
  *[!abcdefghijklmnopqrstuvwxyz0123456789.:,-]*) tf_fail "TF_ADDRESSES '$TF_ADDRESSES' is no list of host:port" ;;
esac
tf_given=${TF_ADDRESSES:-}, tf_hosts='' tf_next=0
while [ "$tf_next" -lt "$tf_workers" ]; do
  tf_address=${tf_given%%,*} tf_given=${tf_given#*,}
  if [ -z "$tf_address" ]; then
    tf_address="$tf_job-node-0-$tf_next.$tf_job.$tf_namespace.svc.cluster.local:$tf_port"
  fi
  tf_hosts="$tf_hosts${tf_hosts:+,}\"$tf_address\""
  tf_next=$((tf_next + 1))
done
# shellcheck disable=SC2089,SC2090 # the quotes are part of the JSON
TF_CONFIG="{\"cluster\":{\"worker\":[$tf_hosts]},\"task\":{\"type\":\"worker\",\"index\":$tf_index}}"
tf_range="this is worker $tf_index, but the number of workers is $tf_workers; \
set NUM_WORKERS to the numNodes of the TrainJob"
# --- end of tf_config.sh
tf_file=${TF_CONFIG_FILE:-/shared-env/tf_config.env}
# Sourced first thing by the command of node, the file also brings the forwarding of signals.
cat > "$tf_file.part" << 'ASTRAGO_END'
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
ASTRAGO_END
if [ "$tf_index" -lt "$tf_workers" ]; then
  printf "export TF_CONFIG='%s'\n" "$TF_CONFIG" >> "$tf_file.part"
elif [ -n "$tf_count" ]; then
  rm -f "$tf_file.part"
  tf_fail "$tf_range"
else
  # A job of the first form gives the number to the container node alone, which then makes
  # TF_CONFIG itself; a job that relies on this file is stopped by it.
  echo "NUM_WORKERS is not set here and this is worker $tf_index: there is no TF_CONFIG to write"
  cat >> "$tf_file.part" << 'ASTRAGO_END'
echo "There is no TF_CONFIG: set NUM_WORKERS of the init container tf-config-generator" \
  "to the numNodes of the TrainJob."
exit 1
ASTRAGO_END
fi
cat > "${tf_file%/*}/forward.py" << 'ASTRAGO_END'
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
mv "$tf_file.part" "$tf_file"
if [ "$tf_index" -lt "$tf_workers" ]; then
  echo '✅ TF_CONFIG 생성 완료! (TF_CONFIG generation done)'
  echo "TF_CONFIG: $TF_CONFIG"
fi
