"""Where the API server has each kind of object that the engine reads or writes."""

from __future__ import annotations

from dataclasses import dataclass

_TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"


@dataclass(frozen=True, slots=True)
class Resource:
    base: str
    plural: str

    def path(self, namespace: str = "", name: str = "", part: str = "") -> str:
        """All of them, those of a namespace, one of them, or a part of one (`log`)."""
        steps = [self.base, f"namespaces/{namespace}" if namespace else "", self.plural, name, part]
        return "/".join(step for step in steps if step)


TRAINJOBS = Resource(_TRAINER, "trainjobs")
RUNTIMES = Resource(_TRAINER, "trainingruntimes")
CLUSTER_RUNTIMES = Resource(_TRAINER, "clustertrainingruntimes")
JOBSETS = Resource("/apis/jobset.x-k8s.io/v1alpha2", "jobsets")
JOBS = Resource("/apis/batch/v1", "jobs")
PODS = Resource("/api/v1", "pods")
EVENTS = Resource("/api/v1", "events")
CONFIGMAPS = Resource("/api/v1", "configmaps")
SECRETS = Resource("/api/v1", "secrets")
NODES = Resource("/api/v1", "nodes")
NAMESPACES = Resource("/api/v1", "namespaces")
ACCOUNTS = Resource("/api/v1", "serviceaccounts")
QUOTAS = Resource("/api/v1", "resourcequotas")
LIMITS = Resource("/api/v1", "limitranges")
POLICIES = Resource("/apis/networking.k8s.io/v1", "networkpolicies")
BINDINGS = Resource("/apis/rbac.authorization.k8s.io/v1", "rolebindings")

BY_KIND = {
    "TrainJob": TRAINJOBS,
    "TrainingRuntime": RUNTIMES,
    "ConfigMap": CONFIGMAPS,
    "Secret": SECRETS,
    "Namespace": NAMESPACES,
    "ServiceAccount": ACCOUNTS,
    "ResourceQuota": QUOTAS,
    "LimitRange": LIMITS,
    "NetworkPolicy": POLICIES,
    "RoleBinding": BINDINGS,
}
"""Kinds that are written."""

JOB_UID = "trainer.astrago.io/job-uid"
"""Label of a TrainJob and of what was made for it alone: the job's own uid, known before the TrainJob has one."""
SUSPENDED_BY_US = "trainer.astrago.io/suspended"
"""Annotation; a queue suspends jobs as well, and what it suspends is not ours to resume."""
TENANT = "trainer.astrago.io/tenant"
"""Label of a namespace that this platform made for a tenant, with the tenant's name; one without it is not touched."""
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
