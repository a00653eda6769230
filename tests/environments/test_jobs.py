"""A job whose environment is missing: it waits in Pulling, says how far the install is, and then runs."""

from __future__ import annotations

import asyncio
import socket

import pytest
from tests.engines.jobs import a_handle, effective, log, until, until_over

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.base import Effective
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.environments.choosing import Chosen
from astrago_trainer.environments.folders import environment_of, locked

SCRIPT = "python -c 'import greeting; print(greeting.VERSION)'"


@pytest.fixture(params=["view", "plain"])
def engine(request, tmp_path, wheels):
    return LocalEngine(tmp_path / "data", isolation=request.param, images=Chosen({}, ()))


def a_job(requirements: str, script: str = SCRIPT, **changes) -> Effective:
    init = {
        "name": "install-requirements",
        "image": "pytorch/pytorch:2.2.2",
        "command": ["sh", "-c", "exit 1"],  # for a cluster: here the environment takes its place
        "env": [{"name": "ASTRAGO_REQUIREMENTS", "value": requirements}],
    }
    return effective(script, pod={"initContainers": [init], "restartPolicy": "Never"}, **changes)


def test_the_environment_is_installed_before_the_pods_start(engine):
    async def scenario():
        first, second = a_handle(), a_handle("second")
        await engine.apply(first, a_job("greeting"))
        await engine.apply(second, a_job("greeting", name="second"))
        waiting = await until(engine, first, lambda seen: seen.phase is Phase.PULLING)
        return waiting, await until_over(engine, first), await until_over(engine, second), first

    waiting, ended, second, handle = asyncio.run(scenario())

    assert waiting.reason == "InstallingEnvironment"
    assert "installing Python 3." in waiting.message
    assert "with 1 requirement" in waiting.message
    assert ended.phase is Phase.COMPLETE, ended.message
    assert second.phase is Phase.COMPLETE, second.message
    folder = engine.folder(handle).path
    assert log(folder) == "1.0\n"
    assert "is ready" in log(folder, container="environment") or not waiting.pods
    assert [each.reason for each in ended.events][1:3] == [
        "InstallingEnvironment",
        "EnvironmentReady",
    ]


def test_a_failed_install_fails_the_job_once_with_the_reason(engine):
    async def scenario():
        handle = a_handle()
        job = a_job("no-such-package-of-ours", job_set={"failurePolicy": {"maxRestarts": 3}})
        await engine.apply(handle, job)
        return await until_over(engine, handle)

    ended = asyncio.run(scenario())

    assert ended.phase is Phase.FAILED
    assert (ended.reason, ended.restarts) == ("EnvironmentFailed", 0)
    assert "no-such-package-of-ours" in ended.message
    assert "Correct the requirements" in ended.message


def test_a_job_is_deleted_while_its_environment_is_installed(engine, monkeypatch):
    with socket.socket() as silent:  # an index that never answers
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{silent.getsockname()[1]}/")

        async def scenario():
            handle = a_handle()
            await engine.apply(handle, a_job("greeting"))
            await until(engine, handle, lambda seen: seen.phase is Phase.PULLING)
            await engine.stop(handle)
            return await engine.observe(handle)

        assert asyncio.run(scenario()).is_gone
        with locked(environment_of("python", ("greeting",)).folder, lambda: None):
            pass  # the installer is gone: its lock is free
