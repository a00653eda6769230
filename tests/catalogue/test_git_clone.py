"""The init container git-clone: it brings the code, and nothing a user writes can misuse it."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from catalogue.git_server import HANG, REDIRECT, WALL, GitServer, make_repository, serve
from catalogue.inline import SYSTEM
from catalogue.shells import (
    DEADLINE_SECONDS,
    POSIX_SHELLS,
    plain_env,
    run,
    running,
    shell_command,
)

SCRIPT = (SYSTEM / "git_clone.sh").read_text()
TOKEN = "s3cret-token"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    make_repository(
        folder,
        "code.git",
        {"main": {"train.py": "print('main')\n"}, "feature/x": {"train.py": "print('x')\n"}},
    )
    with serve(folder) as git:
        yield git


@pytest.fixture
def clone(server: GitServer, tmp_path: Path):
    """Run the script as the init container does, in an empty folder, with the server trusted."""

    def run_script(shell: str = "dash", **env: str) -> subprocess.CompletedProcess[str]:
        return run([*shell_command(shell), "-c", SCRIPT], clone_env(server, tmp_path, **env))

    return run_script


def clone_env(server: GitServer, folder: Path, **env: str) -> dict[str, str]:
    here = {
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "GIT_SYNC_ROOT": str(folder / "git"),
        "GIT_SSL_CAINFO": str(server.certificate),
    }
    return plain_env(**{**here, **env})


def repository(server: GitServer, path: str = "/repositories/code.git", user: str = "") -> str:
    return server.base.replace("https://", f"https://{user}") + path


@pytest.mark.req("M68", "M70", "M78")
@pytest.mark.parametrize("shell", POSIX_SHELLS)
@pytest.mark.parametrize(
    ("branch", "text"),
    [("main", "print('main')\n"), ("feature/x", "print('x')\n"), ("", "print('main')\n")],
)
def test_the_code_of_the_branch_is_in_the_folder(shell, branch, text, clone, server, tmp_path):
    done = clone(shell, GIT_SYNC_REPO=repository(server), GIT_SYNC_BRANCH=branch)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "git" / "train.py").read_text() == text
    assert done.stdout.startswith(f"git-clone: cloning {repository(server)}")
    assert re.search(r"\ngit-clone: done, commit [0-9a-f]{40}\n$", done.stdout)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["git"]


@pytest.mark.req("M75")
@pytest.mark.parametrize("shell", POSIX_SHELLS)
def test_without_a_repository_nothing_is_cloned_and_that_is_fine(shell, clone, tmp_path):
    done = clone(shell, GIT_SYNC_REPO="", GIT_SYNC_BRANCH="main")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "git").exists()


@pytest.mark.req("M78")
def test_everybody_may_read_the_clone_and_only_its_owner_may_write(clone, server, tmp_path):
    done = run(
        ["sh", "-c", f"umask 077\n{SCRIPT}"],
        clone_env(server, tmp_path, GIT_SYNC_REPO=repository(server)),
    )
    assert done.returncode == 0
    for path in (tmp_path / "git").rglob("*"):
        mode = path.stat().st_mode & 0o777
        assert mode == (0o755 if path.is_dir() else mode & 0o700 | 0o044)


@pytest.mark.req("M78")
def test_a_second_try_replaces_the_clone_of_the_first(clone, server, tmp_path):
    assert clone(GIT_SYNC_REPO=repository(server), GIT_SYNC_BRANCH="main").returncode == 0
    (tmp_path / "git" / ".left-over").write_text("by the first try")
    done = clone(GIT_SYNC_REPO=repository(server), GIT_SYNC_BRANCH="feature/x")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "git" / "train.py").read_text() == "print('x')\n"
    assert sorted(path.name for path in (tmp_path / "git").iterdir()) == [".git", "train.py"]


@pytest.mark.parametrize("name", ["data.bin", ".git/config"])
def test_a_folder_with_anything_else_in_it_is_left_alone(name, clone, server, tmp_path):
    precious = tmp_path / "git" / name
    precious.parent.mkdir(parents=True)
    precious.write_text("[core]\n")
    done = clone(GIT_SYNC_REPO=repository(server))
    assert done.returncode == 1
    assert "is not empty and holds no earlier clone of this container" in done.stdout
    assert precious.read_text() == "[core]\n"


@pytest.mark.req("M70", "M135")
@pytest.mark.parametrize(
    ("address", "branch", "message"),
    [
        ("/repositories/code.git", "mian", "has no branch or tag 'mian'"),
        ("/repositories/other.git", "main", "there is no repository at"),
        (f"{WALL}/code.git", "main", "does not exist or wants credentials"),
        (f"{REDIRECT}/code.git", "main", "is redirected; give the address it leads to"),
    ],
)
def test_what_went_wrong_can_be_read(address, branch, message, clone, server):
    done = clone(GIT_SYNC_REPO=repository(server, address), GIT_SYNC_BRANCH=branch)
    assert done.returncode == 1
    last = done.stdout.splitlines()[-1]
    assert last.startswith("git-clone: ")
    assert message in last


@pytest.mark.req("M135")
@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("https://no-such-host.invalid/code.git", "is unknown here: a typing error, or no DNS"),
        ("https://127.0.0.1:1/code.git", "no connection to"),
    ],
)
def test_a_host_that_is_not_there_is_named(address, message, clone):
    done = clone(GIT_SYNC_REPO=address)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("git-clone: ")
    assert message in done.stdout


def test_a_redirect_is_not_followed(clone, server):
    server.requests.clear()
    assert clone(GIT_SYNC_REPO=repository(server, f"{REDIRECT}/code.git")).returncode == 1
    assert server.requests
    assert all(path.startswith(f"{REDIRECT}/code.git/") for path in server.requests)


@pytest.mark.parametrize("user", [f"user:{TOKEN}@", f"{TOKEN}@", f"user:{TOKEN}%40x@"])
@pytest.mark.parametrize(
    ("address", "branch"),
    [
        ("/repositories/code.git", "main"),
        ("/repositories/code.git", "mian"),
        ("/repositories/other.git", "main"),
        (f"{WALL}/code.git", "main"),
        (f"{REDIRECT}/code.git", "main"),
    ],
)
def test_a_credential_is_neither_printed_nor_left_in_the_clone(
    user, address, branch, clone, server, tmp_path
):
    done = clone(GIT_SYNC_REPO=repository(server, address, user), GIT_SYNC_BRANCH=branch)
    assert done.returncode == (0 if (address, branch) == ("/repositories/code.git", "main") else 1)
    assert TOKEN not in done.stdout + done.stderr
    assert "user:" not in done.stdout + done.stderr
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    "address",
    [
        f"https://user:{TOKEN}@no-such-host.invalid/code.git",
        f"https://user:{TOKEN}@127.0.0.1:1/code.git",
        f"https://user:{TOKEN}@127.0.0.1:1/code.git?token={TOKEN}",
        f"http://user:{TOKEN}@127.0.0.1:1/code.git",
        f"-https://user:{TOKEN}@127.0.0.1:1/code.git",
        f"https://user:{TOKEN} @127.0.0.1:1/code.git",
        f"https://user:{TOKEN}@x@127.0.0.1:1/code.git",
    ],
)
def test_a_credential_is_not_printed_when_the_address_is_bad(address, clone):
    done = clone(GIT_SYNC_REPO=address)
    assert done.returncode == 1
    assert TOKEN not in done.stdout + done.stderr


@pytest.mark.req("M70")
@pytest.mark.parametrize(
    ("address", "arguments"),
    [
        ("ssh://git@host.example:2022/team/code.git", "-p 2022 git@host.example git-upload-pack"),
        ("git@host.example:team/code.git", "git@host.example git-upload-pack"),
    ],
)
def test_an_ssh_address_is_handed_to_ssh(address, arguments, clone, tmp_path):
    # A stand-in that writes down its arguments: there is no ssh server in these tests.
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/arguments\nexit 1\n')
    ssh.chmod(0o755)
    assert clone(GIT_SYNC_REPO=address, GIT_SSH_COMMAND=f"{ssh} -v").returncode == 1
    assert arguments in (tmp_path / "arguments").read_text()


# Strings that have made Git, ssh or a shell run something, or read what is not theirs to read.
# {canary} is a file that must not appear; {local} a repository on this machine's disk.
HOSTILE_REPOSITORIES = [
    "--upload-pack=touch {canary}",
    "-u touch {canary}",
    "-utouch {canary}",
    "--config=core.sshCommand=touch {canary}",
    "-ccore.fsmonitor=touch {canary}",
    "--template={local}",
    "--exec=touch {canary}",
    "-oProxyCommand=touch {canary}",
    "ext::sh -c touch% {canary}",
    "ext::sh -c 'touch {canary}'",
    "ext::touch\t{canary}",
    "ext::/bin/touch%20{canary}",
    "fd::17",
    "file://{local}",
    "file:///etc",
    "FILE://{local}",
    "{local}",
    "../repositories/code.git",
    "./code.git",
    "~/code.git",
    "git://127.0.0.1/code.git",
    "http://127.0.0.1:1/code.git",
    "HTTPS://127.0.0.1:1/code.git",
    "ftp://127.0.0.1/code.git",
    "ssh://-oProxyCommand=touch${{IFS}}{canary}/code.git",
    "ssh://user@-oProxyCommand=touch${{IFS}}{canary}/code.git",
    "ssh+git://-oProxyCommand=touch${{IFS}}{canary}/x",
    "-oProxyCommand=touch${{IFS}}{canary}:code.git",
    "user@-oProxyCommand=touch${{IFS}}{canary}:code.git",
    "https://127.0.0.1:1/code.git; touch {canary}",
    "https://127.0.0.1:1/$(touch${{IFS}}{canary})/code.git",
    "https://127.0.0.1:1/`touch${{IFS}}{canary}`/code.git",
    "https://127.0.0.1:1/code.git\ntouch {canary}",
    "https://127.0.0.1:1/'\";touch${{IFS}}{canary};#",
    "https://127.0.0.1:1/code.git --upload-pack=touch",
    "https://",
    "https:///code.git",
    "\x1b[2Jhttps://127.0.0.1:1/code.git",
    "::",
    "transport::https://127.0.0.1:1/code.git",
]
HOSTILE_BRANCHES = [
    "--upload-pack=touch {canary}",
    "-u",
    "-",
    "--",
    "--config=core.fsmonitor=touch",
    "-b",
    "main --upload-pack=touch",
    "main\n--upload-pack=touch {canary}",
    "main; touch {canary}",
    "$(touch {canary})",
    "`touch${{IFS}}{canary}`",
    "main'",
    "../../main",
    "main..feature",
    "refs/heads/../../x",
    "main.lock",
    "@{{-1}}",
    "main~1",
    "main^",
    "main:train.py",
    "a\\b",
    "*",
    "[a",
    "main ",
    "\tmain",
    "\x1bmain",
]


@pytest.mark.parametrize("shell", POSIX_SHELLS)
@pytest.mark.parametrize("text", HOSTILE_REPOSITORIES)
def test_a_hostile_repository_is_refused_and_runs_nothing(shell, text, clone, server, tmp_path):
    canary = tmp_path / "canary"
    local = server.certificate.parent / "repositories" / "code.git"
    done = clone(shell, GIT_SYNC_REPO=text.format(canary=canary, local=local))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("git-clone: ")
    assert not canary.exists()
    assert not (tmp_path / "git").exists() or not list((tmp_path / "git").iterdir())


@pytest.mark.parametrize("shell", POSIX_SHELLS)
@pytest.mark.parametrize("text", HOSTILE_BRANCHES)
def test_a_hostile_branch_is_refused_and_runs_nothing(shell, text, clone, server, tmp_path):
    canary = tmp_path / "canary"
    done = clone(
        shell, GIT_SYNC_REPO=repository(server), GIT_SYNC_BRANCH=text.format(canary=canary)
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("git-clone: ")
    assert not canary.exists()
    assert not (tmp_path / "git").exists() or not list((tmp_path / "git").iterdir())


@pytest.mark.parametrize("root", ["git", "/", "//", "/tmp/../etc", " ", "-r"])
def test_a_folder_that_is_no_plain_absolute_path_is_refused(root, clone, server):
    done = clone(GIT_SYNC_REPO=repository(server), GIT_SYNC_ROOT=root)
    assert done.returncode == 1
    assert "must be a plain absolute path" in done.stdout


@pytest.mark.parametrize("limit", ["-1", "0", "ten", "1; touch canary", "9999999"])
def test_a_time_limit_that_is_no_number_is_refused(limit, clone, server):
    done = clone(GIT_SYNC_REPO=repository(server), GIT_SYNC_TIMEOUT=limit)
    assert done.returncode == 1
    assert "must be a number of seconds" in done.stdout


def test_the_transports_are_not_taken_from_the_environment(clone, server, tmp_path):
    # Git would follow a rewritten address, so the last word must be the list of transports.
    local = server.certificate.parent / "repositories" / "code.git"
    done = clone(
        GIT_SYNC_REPO="https://rewritten.invalid/code.git",
        GIT_ALLOW_PROTOCOL="file:ext:https",
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0=f"url.file://{local}.insteadOf",
        GIT_CONFIG_VALUE_0="https://rewritten.invalid/code.git",
    )
    assert done.returncode == 1
    assert "transport 'file' not allowed" in done.stdout


@pytest.mark.parametrize("shell", POSIX_SHELLS)
def test_a_server_that_never_answers_is_given_up(shell, clone, server):
    done = clone(shell, GIT_SYNC_REPO=repository(server, f"{HANG}/x.git"), GIT_SYNC_TIMEOUT="1")
    assert done.returncode == 1
    assert done.stdout.endswith("after 1 s (GIT_SYNC_TIMEOUT)\n")


@pytest.mark.parametrize("shell", POSIX_SHELLS)
def test_sigterm_ends_a_clone_at_once(shell, server, tmp_path):
    path = f"{HANG}/{shell}.git"
    env = clone_env(server, tmp_path, GIT_SYNC_REPO=repository(server, path))
    with running([*shell_command(shell), "-c", SCRIPT], env) as process:
        # Other tests leave requests there as well; git is under way when its own has arrived.
        while not server.hanging.get(timeout=DEADLINE_SECONDS).startswith(path):
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 143
    assert [path.name for path in tmp_path.iterdir()] == ["git"]
