"""What a user asks for: the model, how untrusted data becomes one, and the rules it must meet."""

from astrago_trainer.core.spec.check import check_job_spec
from astrago_trainer.core.spec.models import (
    Amount,
    Code,
    EmptyDir,
    EnvVar,
    GitSource,
    JobSpec,
    KeyRef,
    LauncherResources,
    Resources,
    Toleration,
    Volume,
)
from astrago_trainer.core.spec.parse import parse_job_spec, parse_model

__all__ = [
    "Amount",
    "Code",
    "EmptyDir",
    "EnvVar",
    "GitSource",
    "JobSpec",
    "KeyRef",
    "LauncherResources",
    "Resources",
    "Toleration",
    "Volume",
    "check_job_spec",
    "parse_job_spec",
    "parse_model",
]
