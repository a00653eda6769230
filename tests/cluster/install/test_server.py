"""The server inside the cluster: installed by the command, it takes people in and runs their jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cluster.operators import Kubectl
from tests import patient
from tests.cluster.api import LINGER, PATIENCE, Api, Space
from tests.cluster.install.conftest import OPTIONS, Installed, Tenant, a_kubeconfig, astrago

from astrago_trainer.install.manifests import NAMESPACE, Installation, installation_objects
from astrago_trainer.manifests import parse_documents

ROOT = Path(__file__).parents[3]
SCRIPT = LINGER + "import os; print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])"
SMALL = {"cpu": {"request": "50m", "limit": 1}, "memory": "256Mi"}


@pytest.mark.req("M5", "M33", "X17")
def test_somebody_signs_up_and_a_job_runs_to_its_end_with_logs(installed: Installed, api: Api):
    tenant = installed.sign_up()
    client = tenant.client()
    job = client.submit(
        {"framework": "pytorch", "nodes": 2, "code": {"inline": SCRIPT}, "resources": SMALL}
    )
    ended = client.wait(job.name, timeout_seconds=PATIENCE)
    assert (ended.phase, ended.has_succeeded) == ("Complete", True), ended
    lines = {line.text for line in client.logs(job.name)}
    assert {"rank 0 of 2", "rank 1 of 2"} <= lines
    client.delete(job.name)
    Space(api, tenant.namespace).until_gone("trainjobs")


LOOKS_AROUND = """
import os, ssl, urllib.error, urllib.request
print("token", os.path.exists("/var/run/secrets/kubernetes.io/serviceaccount/token"))
address = "https://kubernetes.default.svc/api/v1/namespaces"
try:
    urllib.request.urlopen(address, context=ssl._create_unverified_context(), timeout=20)
    print("API open")
except urllib.error.HTTPError as error:
    print("API", error.code)
"""


def test_a_job_has_no_token_of_the_cluster_and_is_nobody_there(tenant: Tenant):
    client = tenant.client()
    job = client.submit(
        {"framework": "pytorch", "code": {"inline": LINGER + LOOKS_AROUND}, "resources": SMALL}
    )
    assert client.wait(job.name, timeout_seconds=PATIENCE).has_succeeded
    lines = {line.text for line in client.logs(job.name)}
    assert "token False" in lines
    assert lines & {"API 401", "API 403"}
    client.delete(job.name)


def test_a_job_with_restarts_of_its_own_gets_its_runtime(tenant: Tenant, tenant_space: Space):
    client = tenant.client()
    job = client.submit(
        {
            "framework": "pytorch",
            "code": {"inline": "raise SystemExit(3)"},
            "resources": SMALL,
            "max_restarts": 0,
        }
    )
    ended = client.wait(job.name, timeout_seconds=PATIENCE)
    assert ended.phase == "Failed"
    assert "exit code 3" in ended.message
    assert tenant_space.list("trainingruntimes")
    client.delete(job.name)
    tenant_space.until_gone("trainingruntimes")


def test_what_the_server_knows_outlives_its_pod(installed: Installed, tenant: Tenant):
    client = tenant.client()
    job = client.submit(
        {"framework": "pytorch", "code": {"inline": SCRIPT}, "resources": SMALL, "name": "kept"}
    )
    client.wait(job.name, timeout_seconds=PATIENCE)
    selector = ("-l", "app.kubernetes.io/name=astrago-trainer")
    installed.kubectl("-n", NAMESPACE, "delete", "pod", *selector)
    installed.until_it_answers()
    client = tenant.client()
    assert client.get("kept").phase == "Complete"
    assert "rank 0 of 1" in {line.text for line in client.logs("kept")}


def test_a_second_installation_changes_nothing(installed: Installed):
    done = astrago("install", "--apply", *OPTIONS)
    assert done.returncode == 0, done.stdout + done.stderr
    objects = parse_documents(astrago("install", *OPTIONS).stdout.encode(), "-")
    told = [line for line in done.stdout.splitlines()[1:-2] if not line.startswith("unchanged  ")]
    assert told == []
    assert f"{len(objects)} objects: {len(objects)} unchanged." in done.stdout
    again = astrago("install", "--diff", *OPTIONS)
    assert "nothing was written" in again.stdout
    assert "changed    " not in again.stdout.replace("unchanged  ", "")


def test_a_diff_shows_the_change_and_does_not_make_it(installed: Installed):
    done = astrago("install", "--diff", *OPTIONS, "--set", "ASTRAGO_SIGNUP=off")
    assert done.returncode == 0, done.stderr
    assert "changed    Deployment astrago" in done.stdout
    assert "-" in done.stdout
    assert 'value: "off"' in done.stdout or "value: off" in done.stdout
    kept = installed.kubectl("-n", NAMESPACE, "get", "deployment/astrago", "-o", "json")
    variables = json.loads(kept)["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "ASTRAGO_SIGNUP", "value": "open"} in variables


def test_kustomize_makes_the_same_objects(kubectl: Kubectl):
    """Whoever prefers kubectl gets what the command prints, in another order."""

    def named(objects):
        return {(each["kind"], each["metadata"]["name"]): each for each in objects}

    made = parse_documents(kubectl("kustomize", str(ROOT / "deploy")).encode(), "kustomize")
    assert named(made) == named(installation_objects(Installation()))


def test_conflicts_are_told_and_can_be_taken_over(installed: Installed):
    name = "clusterrole/astrago-reader"
    rules = json.dumps({"rules": []})
    manager = "--field-manager=somebody"
    installed.kubectl("patch", name, "--type=merge", "-p", rules, manager)
    refused = astrago("install", "--apply", *OPTIONS)
    assert refused.returncode == 1
    assert "refused    ClusterRole astrago-reader" in refused.stdout
    assert "--force-conflicts takes these fields over" in refused.stdout
    assert "Traceback" not in refused.stderr
    taken = astrago("install", "--apply", "--force-conflicts", *OPTIONS)
    assert taken.returncode == 0, taken.stdout
    assert "changed    ClusterRole astrago-reader" in taken.stdout


def test_without_a_token_nobody_comes_in(installed: Installed):
    answer = patient.get(f"{installed.address}/api/v1/whoami", timeout=PATIENCE)
    assert answer.status_code == 401
    assert patient.get(f"{installed.address}/healthz", timeout=PATIENCE).status_code == 200


def test_who_may_not_install_is_told_so_for_every_object(
    installed: Installed, kubectl: Kubectl, namespace: str, tmp_path: Path
):
    kubectl("-n", namespace, "create", "serviceaccount", "nobody")
    token = kubectl("-n", namespace, "create", "token", "nobody").strip()
    config = a_kubeconfig(tmp_path / "config", token)
    refused = astrago("install", "--apply", "--kubeconfig", str(config), *OPTIONS)
    assert refused.returncode == 1
    assert "24 objects: 24 refused." in refused.stdout
    assert "cannot get resource" in refused.stdout
    assert "with the rights of a cluster's administrator" in refused.stdout
    assert not refused.stderr
