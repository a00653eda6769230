"""The shipped objects: as kustomize lists them, as an installation wants them, with no right too many."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from astrago_trainer import __version__, catalogue
from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.engines.kubernetes.resources import TENANT
from astrago_trainer.engines.kubernetes.tenants import TenantPolicy
from astrago_trainer.install.cluster import resource_of
from astrago_trainer.install.manifests import (
    NAMESPACE,
    Installation,
    installation_objects,
    server_settings,
    shipped_objects,
)

ROOT = Path(__file__).parents[2]
OBJECTS = list(shipped_objects())
ROLES = {
    each["metadata"]["name"]: each["rules"] for each in OBJECTS if each["kind"] == "ClusterRole"
}


def of_kind(objects, kind):
    return [each for each in objects if each["kind"] == kind]


def test_every_file_of_the_folder_is_listed():
    folder = ROOT / "deploy"
    listed = (folder / "kustomization.yaml").read_text()
    files = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
    assert files
    assert all(f"- {name}\n" in listed for name in files)


def test_the_whole_catalogue_is_installed():
    installed = {each["metadata"]["name"] for each in of_kind(OBJECTS, "ClusterTrainingRuntime")}
    assert installed == set(catalogue.names())
    for each in of_kind(OBJECTS, "ClusterTrainingRuntime"):
        assert each == catalogue.load_runtime(each["metadata"]["name"])


def test_every_kind_has_a_place_at_the_api_server():
    paths = {resource_of(each).path("", each["metadata"]["name"]) for each in OBJECTS}
    assert len(paths) == len(OBJECTS)


@pytest.mark.req("M33")
def test_the_backend_role_is_the_one_of_the_mission_and_no_more():
    verbs = ["create", "get", "list", "update", "patch", "delete"]
    assert ROLES["trainjob-backend-role"] == [
        {"apiGroups": [""], "resources": ["configmaps", "pods", "pods/log"], "verbs": verbs},
        {
            "apiGroups": ["trainer.kubeflow.org"],
            "resources": ["trainjobs"],
            "verbs": [*verbs, "watch"],
        },
    ]


def test_no_role_has_a_right_that_leads_to_others():
    for rules in ROLES.values():
        for rule in rules:
            assert not {"*", "escalate", "impersonate", "deletecollection"} & set(rule["verbs"])
            assert not {"*", "secrets", "pods/exec", "serviceaccounts/token"} & set(
                rule["resources"]
            )
            assert "*" not in rule["apiGroups"]
            if "bind" in rule["verbs"]:
                assert rule["verbs"] == ["bind"]
                assert rule["resourceNames"]


def test_the_reader_only_reads():
    assert {verb for rule in ROLES["astrago-reader"] for verb in rule["verbs"]} == {
        "get",
        "list",
        "watch",
    }


def test_sign_up_may_bind_what_it_binds():
    (bind,) = [rule for rule in ROLES["astrago-signup"] if "bind" in rule["verbs"]]
    assert set(TenantPolicy().roles) <= set(bind["resourceNames"])
    assert set(bind["resourceNames"]) <= set(ROLES)


def test_the_policies_hold_where_tenants_are():
    bindings = of_kind(OBJECTS, "ValidatingAdmissionPolicyBinding")
    assert {each["spec"]["policyName"] for each in bindings} == {
        each["metadata"]["name"] for each in of_kind(OBJECTS, "ValidatingAdmissionPolicy")
    }
    for each in bindings:
        assert each["spec"]["validationActions"] == ["Deny"]
        selector = each["spec"].get("matchResources", {}).get("namespaceSelector")
        is_for_tenants = each["metadata"]["name"].startswith("astrago-tenant-")
        assert selector == (
            {"matchExpressions": [{"key": TENANT, "operator": "Exists"}]}
            if is_for_tenants
            else None
        )


def test_the_server_runs_without_privileges():
    (deployment,) = of_kind(OBJECTS, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (server,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert server["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert server["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert server["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert server["resources"]["limits"]["memory"]
    assert server["image"] == f"astrago-trainer:{__version__}"


def test_another_namespace_is_meant_everywhere():
    objects = installation_objects(Installation(namespace="ml-platform"))
    assert NAMESPACE not in json.dumps(objects)
    places = {each["metadata"].get("namespace") for each in objects} - {None}
    assert places == {"ml-platform"}
    assert "system:serviceaccount:ml-platform:astrago" in json.dumps(objects)


def test_image_storage_and_settings_are_set():
    wanted = Installation(
        image="registry.example.org/a:1",
        storage="1Ti",
        storage_class="fast",
        settings={"ASTRAGO_SIGNUP": "open", "ASTRAGO_LOG": "text"},
    )
    objects = installation_objects(wanted)
    (claim,) = of_kind(objects, "PersistentVolumeClaim")
    assert claim["spec"]["resources"] == {"requests": {"storage": "1Ti"}}
    assert claim["spec"]["storageClassName"] == "fast"
    (deployment,) = of_kind(objects, "Deployment")
    server = deployment["spec"]["template"]["spec"]["containers"][0]
    assert server["image"] == "registry.example.org/a:1"
    found = server_settings(objects)
    assert (found["ASTRAGO_SIGNUP"], found["ASTRAGO_LOG"]) == ("open", "text")
    assert found["ASTRAGO_ENGINE"] == "kubernetes"


def test_without_storage_the_data_is_the_pods():
    objects = installation_objects(Installation(storage="none"))
    assert not of_kind(objects, "PersistentVolumeClaim")
    (deployment,) = of_kind(objects, "Deployment")
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    assert {"name": "data", "emptyDir": {}} in volumes


def test_everything_that_is_wrong_is_told_at_once():
    wanted = Installation(namespace="Über", image="a b", storage="much", settings={"no name": "x"})
    with pytest.raises(InvalidRequest) as refused:
        installation_objects(wanted)
    assert [each.path for each in refused.value.problems] == [
        "--namespace",
        "--image",
        "--storage",
        "--set",
    ]


def test_the_files_are_in_the_wheel(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    package = ROOT / "src" / "astrago_trainer"
    files = [*package.glob("deploy/*"), *package.glob("runtimes/**/*.yaml")]
    assert {f"astrago_trainer/{path.relative_to(package)}" for path in files} <= packed
