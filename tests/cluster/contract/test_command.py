"""What Kubernetes does to a command on its way into the container."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import a_node, a_runtime, a_trainjob, ended


@pytest.mark.req("M41", "M44", "M45")
def test_a_dollar_sign_does_not_always_arrive_as_it_was_written(space):
    space.create(a_runtime(a_node("exit 0")))
    script = "echo '$(EPOCHS) $(UNKNOWN) $$ $$$$ $(date)'; sleep 1"
    env = [{"name": "EPOCHS", "value": "3"}]

    space.create(a_trainjob(trainer={"command": ["sh", "-c", script], "env": env}))
    space.until_one("trainjobs", "job", ended)

    (pod,) = space.list("pods")
    assert space.log(pod["metadata"]["name"]) == "3 $(UNKNOWN) $ $$ $(date)\n"
