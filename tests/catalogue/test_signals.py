"""SIGTERM reaches the training code, and the code it ends with reaches Kubernetes."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from catalogue.inline import SYSTEM
from catalogue.shells import plain_env, read_until, run, running

SIGNALS = (SYSTEM / "signals.sh").read_text()

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


@pytest.fixture(params=["setup_pytorch_env", "generate_tf_config", "pytorch", "tensorflow"])
def composed(request, tmp_path):
    """Every way in which a job begins: sourced from /shared, or with a prelude of its own."""
    tf_config = tmp_path / "tf_config.env"
    tf_config.write_text("export TF_CONFIG='{}'\n")
    env = plain_env(
        **TORCH_ENV, HOSTNAME="job-node-0-0", NUM_WORKERS="1", TF_CONFIG_FILE=str(tf_config)
    )
    if request.param in ("pytorch", "tensorflow"):
        start = (SYSTEM / f"prelude_{request.param}.sh").read_text()
    else:
        start = f"source {SYSTEM / request.param}.sh\n"
    return lambda command: (["bash", "-c", f"{start}\n{command}"], env)


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
    prelude = (SYSTEM / "prelude_pytorch.sh").read_text()
    rest = ["zero", "one arg", "", "two*"]
    env = plain_env(HOME="/home/user")
    alone = run(["bash", "-c", command, *rest], env, input="typed\n")
    after = run(["bash", "-c", f"{prelude}\n{command}", *rest], env, input="typed\n")
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
    script.write_text(f"source {SYSTEM / 'signals.sh'}\necho $PPID\n")
    done = run(["bash", str(script)], plain_env())
    assert done.stdout == f"{os.getpid()}\n"


def test_a_command_string_is_started_again_once_and_not_more():
    command = f"{SIGNALS}\necho outer $PPID\nbash -c '. {SYSTEM / 'signals.sh'}; echo inner'"
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
        if entry.read_text().rpartition(")")[2].split()[1] == str(parent)
    ]
    return pid


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
