"""SIGTERM reaches the training code, and the code it ends with reaches Kubernetes."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from catalogue.inline import SYSTEM
from catalogue.shells import POSIX_SHELLS, plain_env, read_until, run, running, shell_command
from catalogue.signal_campaign import campaign

SIGNALS = f"source {SYSTEM / 'handover.sh'}"

# Says so when it is ready and when SIGTERM has come; then ends with the given code. It waits for the
# signal with sigwait, because a handler could run just before a sleep begins, which would go on.
TRAINING = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.write(1, b"ready\\n")
signal.sigwait({signal.SIGTERM})
os.write(1, b"stopping\\n")
sys.exit(int(sys.argv[1]))
"""

TORCH_ENV = {
    "PET_NODE_RANK": "0",
    "PET_NNODES": "1",
    "PET_MASTER_ADDR": "localhost",
    "PET_MASTER_PORT": "29500",
}


@pytest.fixture
def training(tmp_path: Path) -> str:
    path = tmp_path / "training.py"
    path.write_text(TRAINING)
    return f"python {path}"


@pytest.fixture(params=["setup_pytorch_env.sh", "generate_tf_config.sh", "setup", "tf_config.env"])
def composed(request, tmp_path):
    """Every way in which a job begins: sourced from a ConfigMap, or from what an init container wrote."""
    env = plain_env(
        **TORCH_ENV,
        HOSTNAME="job-node-0-0",
        NUM_WORKERS="1",
        TF_CONFIG_FILE=str(tmp_path / "tf_config.env"),
        SETUP_FOLDER=str(tmp_path),
    )
    if request.param == "setup":
        start = init_container("write_pytorch_setup.sh", env, tmp_path / "setup_pytorch_env.sh")
    elif request.param == "tf_config.env":
        start = init_container("write_tf_config.sh", env, tmp_path / "tf_config.env")
    else:
        start = SYSTEM / request.param
    return lambda command: (["bash", "-c", f"source {start}\n\n{command}"], env)


def init_container(script: str, env: dict[str, str], written: Path) -> Path:
    done = run([*shell_command(POSIX_SHELLS[-1]), "-c", (SYSTEM / script).read_text()], env)
    assert (done.returncode, done.stderr) == (0, "")
    assert (written.parent / "forward.py").read_text().splitlines()[1:-1] == (
        (SYSTEM / "forward.py").read_text().splitlines()
    )
    return written


def stop_when_ready(arguments, env, signal_number=signal.SIGTERM) -> tuple[int, str]:
    with running(arguments, env) as process:
        output = read_until(process, "ready")
        process.send_signal(signal_number)
        output += process.stdout.read()
        return process.wait(), output


@pytest.mark.req("M11", "M12", "M19", "M47", "M48")
def test_the_training_code_gets_sigterm_and_its_exit_code_is_kept(composed, training):
    code, output = stop_when_ready(*composed(f"{training} 7"))
    assert code == 7
    assert output.endswith("ready\nstopping\n")


@pytest.mark.parametrize("own_code", [0, 1, 143])
def test_the_exit_code_of_the_last_command_is_kept_whatever_it_is(own_code, training):
    code, _ = stop_when_ready(["bash", "-c", f"{SIGNALS}\n{training} {own_code}"], plain_env())
    assert code == own_code


@pytest.mark.parametrize(
    ("own_code", "code"), [(7, 7), (0, 143)], ids=["failed", "ended well, but too early"]
)
@pytest.mark.parametrize(
    "form",
    [
        "{training}\necho second",
        "{training} && echo second; echo third",
        "if {training}; then echo second; fi; echo third",
        "work() {{ {training}; echo second; }}\nwork\necho third",
        "for turn in 1 2; do {training}; done; echo third",
    ],
    ids=["list", "and", "if", "function", "loop"],
)
def test_no_further_command_is_started_after_sigterm(form, own_code, code, training):
    command = form.format(training=f"{training} {own_code}")
    found, output = stop_when_ready(["bash", "-c", f"{SIGNALS}\n{command}"], plain_env())
    assert (found, output) == (code, "ready\nstopping\n")


def test_a_process_without_a_handler_ends_with_143(tmp_path):
    command = "python -uc 'import time; print(\"ready\"); time.sleep(300)'; echo second"
    code, output = stop_when_ready(["bash", "-c", f"{SIGNALS}\n{command}"], plain_env())
    assert code == 143
    assert "second" not in output


def test_an_interrupt_reaches_the_training_code_too():
    command = "python -uc 'print(\"ready\")\nwhile True: pass'; echo second"
    arguments = ["bash", "-c", f"{SIGNALS}\n{command}"]
    code, output = stop_when_ready(arguments, plain_env(), signal.SIGINT)
    assert code == 130
    assert output.endswith("KeyboardInterrupt\n")


def test_processes_in_the_background_may_finish_their_own_stop(training):
    command = f"{training} 0 & {training} 0 & wait"
    with running(["bash", "-c", f"{SIGNALS}\n{command}"], plain_env()) as process:
        read_until(process, "ready")
        read_until(process, "ready")
        process.send_signal(signal.SIGTERM)
        output = process.stdout.read()
        code = process.wait()
    assert (code, output) == (143, "stopping\nstopping\n")


def test_a_second_signal_is_passed_on_as_well():
    command = """python -c '
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.write(1, b"ready\\n")
for count in (1, 2, 3):
    signal.sigwait({signal.SIGTERM})
    os.write(1, b"signal %d\\n" % count)
sys.exit(9)
'"""
    with running(["bash", "-c", f"{SIGNALS}\n{command}"], plain_env()) as process:
        read_until(process, "ready")
        for count in (1, 2, 3):
            process.send_signal(signal.SIGTERM)
            read_until(process, f"signal {count}")
        assert process.wait() == 9


@pytest.mark.parametrize(
    ("command", "code"),
    [("true", 0), ("exit 3", 3), ("false", 1), ("no-such-command-anywhere", 127)],
)
def test_without_a_signal_the_exit_code_is_that_of_the_command(command, code):
    assert run(["bash", "-c", f"{SIGNALS}\n{command}"], plain_env()).returncode == code


def test_a_shell_that_is_killed_is_reported_as_killed():
    done = run(["bash", "-c", f"{SIGNALS}\nkill -KILL $BASHPID"], plain_env())
    assert done.returncode == 137


@pytest.mark.req("M41", "M45")
@pytest.mark.parametrize(
    "command",
    [
        "echo \"double $HOME\" 'single $HOME' \\$HOME",
        'printf \'%s\\n\' "$0" "$#" "$@"',
        'x=\'a  b\'\n\nfor word in $x "$x"; do\n  echo "<$word>"\ndone',
        "cat <<'END'\n$HOME `date` $(date) \\n\nEND\necho after",
        'echo "$(echo nested "$(echo \'deep  er\')")" `echo old`',
        'python -c \'print("py $HOME", "\\\\n")\' # a comment with \' and "',
        "echo $((6 * 7)) ${x:-default} $'tab\\there' \"한국어 😀\"",
        'set -- 1 2 3; shift; echo "$*"; (exit 4); echo $?',
        'read -r line; echo "read: $line"',
        "echo out; echo err >&2; exit 5",
        "trap 'echo leaving' EXIT; echo body",
        "if true\nthen\n\techo tab\nfi",
    ],
)
def test_a_command_runs_after_the_prelude_as_it_does_alone(command):
    rest = ["zero", "one arg", "", "two*"]
    env = plain_env(HOME="/home/user")
    alone = run(["bash", "-c", command, *rest], env, input="typed\n")
    after = run(["bash", "-c", f"{SIGNALS}\n{command}", *rest], env, input="typed\n")
    assert (after.stdout, after.stderr, after.returncode) == (
        alone.stdout,
        alone.stderr,
        alone.returncode,
    )


@pytest.mark.parametrize(
    ("options", "command", "code", "output"),
    [
        (["-c"], "false; echo on", 0, "on\n"),
        (["-ec"], "false; echo on", 1, ""),
        (["-e", "-o", "pipefail", "-c"], "false | true; echo on", 1, ""),
        (["-uc"], "echo $not_set; echo on", 127, ""),
        (["-lc"], "shopt -q login_shell && echo login", 0, "login\n"),
    ],
)
def test_the_options_of_the_shell_stay_as_they_were(options, command, code, output):
    done = run(["bash", *options, f"{SIGNALS}\n{command}"], plain_env(HOME="/nonexistent"))
    assert (done.returncode, done.stdout) == (code, output)


def test_in_a_script_file_nothing_is_started_again(tmp_path):
    script = tmp_path / "script.sh"
    script.write_text(f"{SIGNALS}\necho $PPID\n")
    done = run(["bash", str(script)], plain_env())
    assert done.stdout == f"{os.getpid()}\n"


def test_a_command_string_is_started_again_once_and_not_more():
    command = f"{SIGNALS}\necho outer $PPID\nbash -c '{SIGNALS}; echo inner'"
    with running(["bash", "-c", command], plain_env()) as process:
        output = process.stdout.read()
    assert output == f"outer {process.pid}\ninner\n"


def _new_pid_namespace() -> list[str]:
    """Give the command that makes its child process 1 of something, as a container does."""
    for options in (["--pid"], ["--user", "--map-root-user", "--pid"]):
        command = ["unshare", *options, "--fork", "--kill-child"]
        if (
            shutil.which("unshare")
            and not subprocess.run([*command, "true"], capture_output=True).returncode
        ):
            return command
    return []


def child_of(parent: int) -> int:
    (pid,) = [
        int(entry.parent.name)
        for entry in Path("/proc").glob("[0-9]*/stat")
        # After the name, which may hold anything: state, then the parent.
        if stat_of(entry).rpartition(")")[2].split()[1:2] == [str(parent)]
    ]
    return pid


def stat_of(entry: Path) -> str:
    try:
        return entry.read_text()
    except OSError:  # it has ended meanwhile
        return ""


@pytest.mark.req("M11", "M19")
def test_as_process_1_of_a_container_the_shell_passes_sigterm_on(training):
    unshare = _new_pid_namespace()
    if not unshare:
        pytest.skip("no new process namespace on this machine")
    shell = ["bash", "-c", f'{SIGNALS}\necho "process $PPID"\n{training} 7\necho second']
    with running([*unshare, *shell], plain_env()) as process:
        output = read_until(process, "ready")
        os.kill(child_of(process.pid), signal.SIGTERM)
        output += process.stdout.read()
        code = process.wait()
    assert (code, output) == (7, "process 1\nready\nstopping\n")


def test_as_process_1_what_lost_its_parent_is_reaped():
    unshare = _new_pid_namespace()
    if not unshare:
        pytest.skip("no new process namespace on this machine")
    # The one in the middle ends at once, so process 1 becomes the parent of what it started.
    orphan = "import os; os.fork() or os._exit(0)"
    command = f"python -c '{orphan}'; until ! ls /proc/*/stat | xargs grep -sl ' Z 1 '; do :; done"
    done = run([*unshare, "--mount-proc", "bash", "-c", f"{SIGNALS}\n{command}"], plain_env())
    assert (done.returncode, done.stdout) == (0, "")


def test_a_signal_at_any_instant_reaches_the_training():
    # The long version: make campaign.
    ends, wrong = campaign(rounds=300, seed=int(time.time()), at_once=4)
    assert not wrong
    assert ends["training stopped"] > 0


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2], ids=["USR1", "USR2"])
def test_a_note_reaches_the_program_that_took_the_place_of_the_shell_alone(number):
    note = f"""python -uc '
import os, signal, sys
noted = {{signal.{signal.Signals(number).name}}}
signal.pthread_sigmask(signal.SIG_BLOCK, noted)
worker = os.fork()
if not worker:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, noted)
    signal.pause()
print("ready")
signal.sigwait(noted)
is_alive = os.waitpid(worker, os.WNOHANG) == (0, 0)
os.kill(worker, signal.SIGKILL)
sys.exit(4 if is_alive else 5)'"""
    code, _ = stop_when_ready(["bash", "-c", f"{SIGNALS}\nexec {note}"], plain_env(), number)
    assert code == 4


def test_a_note_for_a_shell_changes_nothing(training):
    with running(["bash", "-c", f"{SIGNALS}\n{training} 7"], plain_env()) as process:
        read_until(process, "ready")
        process.send_signal(signal.SIGUSR1)
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "stopping\n"
        assert process.wait() == 7


@pytest.mark.parametrize(
    "command",
    [
        "trap 'echo saved' EXIT; {training} 7",
        "trap 'python -c \"import time; time.sleep(1)\"; echo saved' EXIT; {training} 7",
        "trap 'sleep 1; echo saved; exit 7' TERM; {training} 0",
    ],
    ids=["exit, builtin", "exit, program", "own trap"],
)
def test_what_the_user_starts_in_a_trap_may_end(command, training):
    text = command.format(training=training)
    code, output = stop_when_ready(["bash", "-c", f"{SIGNALS}\n{text}"], plain_env())
    assert (code, output) == (7, "ready\nstopping\nsaved\n")


def test_what_the_training_starts_while_it_stops_may_end():
    command = """python -c '
import os, signal, subprocess, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.write(1, b"ready\\n")
signal.sigwait({signal.SIGTERM})
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
sys.exit(subprocess.run(["sh", "-c", "sleep 1; echo saved; exit 6"]).returncode)
'"""
    for form in (command, f"exec {command}"):
        code, output = stop_when_ready(["bash", "-c", f"{SIGNALS}\n{form}"], plain_env())
        assert (code, output) == (6, "ready\nsaved\n")


def test_what_is_left_in_the_group_ends_with_the_command():
    command = "(trap '' TERM; exec sleep 300) & echo $!"
    with running(["bash", "-c", f"{SIGNALS}\n{command}"], plain_env()) as process:
        left = int(process.stdout.readline())
        assert process.stdout.read() == "", "the one that is left would hold it open"
        assert process.wait() == 0
    assert not Path(f"/proc/{left}").exists() or " Z " in Path(f"/proc/{left}/stat").read_text()


def test_an_image_without_python_says_so_and_goes_on(tmp_path):
    for name in ("bash", "echo"):
        (tmp_path / name).symlink_to(shutil.which(name))
    done = run(["bash", "-c", f"{SIGNALS}\necho on; exit 3"], {"PATH": str(tmp_path)})
    assert done.returncode == 3
    first, second = done.stdout.splitlines()
    assert first.startswith("Signals do not reach the training code, ")
    assert second == "on"


def test_forward_says_what_it_cannot_start():
    forward = [sys.executable, "-IS", str(SYSTEM / "forward.py")]
    done = run([*forward, "/no/such/shell"], plain_env())
    assert (done.returncode, done.stderr) == (
        127,
        "forward: /no/such/shell: No such file or directory\n",
    )


def test_forward_runs_in_old_images():
    """Python 3.8 has none of these, and the standard library alone is there under -IS."""
    import ast

    tree = ast.parse((SYSTEM / "forward.py").read_text(), feature_version=(3, 8))
    imported = {
        each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names
    }
    assert imported == {"_signal", "os", "sys"}


# A shell that was between two commands when the stop came: it goes on as if there had been none.
SHELL = """
import os, signal, subprocess, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.write(1, b"go\\n")
signal.sigwait({signal.SIGTERM})
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
if sys.argv[1] == "exec":
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
sys.exit(subprocess.run([sys.executable, *sys.argv[2:]]).returncode)
"""


@pytest.mark.parametrize("way", ["command", "exec"])
def test_a_command_that_begins_after_the_stop_gets_it_too(way, tmp_path):
    (tmp_path / "shell.py").write_text(SHELL)
    (tmp_path / "training.py").write_text(TRAINING)
    shell = [sys.executable, str(tmp_path / "shell.py"), way, str(tmp_path / "training.py"), "7"]
    arguments = [sys.executable, "-IS", str(SYSTEM / "forward.py"), *shell]
    with running(arguments, plain_env()) as process:
        read_until(process, "go")
        process.send_signal(signal.SIGTERM)
        output = process.stdout.read()
        # Stopped before it was ready, or after: but stopped.
        assert (process.wait(), output) in {(7, "ready\nstopping\n"), (241, ""), (143, "")}


def test_a_stop_before_a_function_keeps_it_from_running():
    # The trap runs between the two commands: nothing of the function may follow.
    command = "work() { echo second; }\nkill -TERM $$; work; echo third"
    done = run(["bash", "-c", f"{SIGNALS}\n{command}"], plain_env())
    assert (done.returncode, done.stdout) == (143, "")
