"""What the administrator decided: versions, default runtimes and images, scripts and ceilings.

`render` and the checks read it; nothing in here is asked from a user. The texts of the scripts come
in as data, because the core reads no files: the catalogue loads them and builds a `Platform`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

Framework = Literal["pytorch", "tensorflow", "horovod"]
FRAMEWORKS: tuple[Framework, ...] = get_args(Framework)

TrainerVersion = Literal["2.1", "2.2", "2.3"]
PLATFORM = "(platform)"
"""The source of what the platform itself puts into a job; no field of a request is called so."""

SYSTEM_PATH = "/shared"
"""Where pods find the platform's own scripts."""
REQUIREMENTS_CONTAINER = "install-requirements"
REQUIREMENTS_VARIABLE = "ASTRAGO_REQUIREMENTS"
"""The init container that installs the packages of a job, and the variable that lists them."""

TRAINER_VERSIONS: tuple[TrainerVersion, ...] = get_args(TrainerVersion)


_MPIRUN = (
    # exec, because mpirun handles SIGTERM and bash as process 1 would not. Ranks in other pods come
    # from ssh and see no variable that -x does not name.
    "exec mpirun --bind-to none --map-by slot --mca pml ob1 --mca btl ^openib "
    "-x PATH -x LD_LIBRARY_PATH -x PYTHONUNBUFFERED python"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemScripts:
    """A System ConfigMap: scripts of the platform that a job of its framework mounts at `/shared`."""

    name: str
    """Of the ConfigMap, for example `pytorch-pet-setup`."""
    volume: str
    """Of the pod's volume; the seeds' TensorFlow one has a shorter name than its ConfigMap."""
    sourced: str
    """The key of `data` that is sourced before the user's command."""
    data: Mapping[str, str]
    """File name -> text."""
    framework: Framework
    """Of the jobs that bring it; those on a runtime with scripts of its own do without."""
    launcher: str = ""
    """The key of `data` that starts several processes on a node; empty where it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A size of a node that the form offers by name."""

    name: str
    gpus: int
    cpu: str
    memory: str


PRESETS = (
    Preset(name="small", gpus=1, cpu="4", memory="16Gi"),
    Preset(name="medium", gpus=2, cpu="8", memory="32Gi"),
    Preset(name="large", gpus=4, cpu="16", memory="64Gi"),
)
"""Those of the mock-up (M83)."""


def _table(**entries: str) -> Mapping[Framework, str]:
    return MappingProxyType(entries)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """One installation: the same request on the same platform gives the same bytes."""

    trainer_version: TrainerVersion = "2.1"
    """Which dialect of TrainJob the cluster speaks; 2.1 is the reference."""
    default_runtimes: Mapping[Framework, str] = field(
        default_factory=lambda: _table(
            pytorch="pytorch-simple",
            tensorflow="tensorflow-distributed",
            horovod="horovod-runtime",
        )
    )
    git_runtimes: Mapping[Framework, str] = field(
        default_factory=lambda: _table(pytorch="pytorch-runtime", tensorflow="tensorflow-runtime")
    )
    """Has a `git-clone` init container; taken for code from git when no runtime is named."""
    default_images: Mapping[Framework, str] = field(default_factory=_table)
    """For jobs without an image on the default runtime; others keep their runtime's image."""
    images: Mapping[Framework, tuple[str, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """What the form offers beside the runtime's image (X23)."""
    presets: tuple[Preset, ...] = PRESETS
    system_scripts: tuple[SystemScripts, ...] = ()
    preludes: Mapping[str, str] = field(default_factory=dict)
    """Name of a runtime that brings its scripts -> what a command sources of them first."""
    requirements_script: str = ""
    """Shell text of the init container that installs the packages of a job."""
    interpreters: Mapping[Framework, str] = field(
        default_factory=lambda: _table(pytorch="python", tensorflow="python3", horovod=_MPIRUN)
    )
    """What runs the user's script when the request has no command: shell words before its path."""
    progress_server: str = ""
    """`http://host:port` where pods reach our server to report progress; empty: nobody listens."""
    progress_ca_file: str = ""
    """In the pods: the certificate of that server's authority, where their system does not know it."""
    default_ttl_seconds: int = 86_400
    default_max_restarts: int | None = None
    """None leaves it to the runtime; a number makes each job own a copy of its runtime."""

    max_nodes: int = 1000
    max_gpus_per_node: int = 64
    max_cpu_per_node: str = "4096"
    max_memory_per_node: str = "64Ti"
    """Wider than any machine: these catch slips, quotas do the rationing."""
    allowed_host_paths: tuple[str, ...] = ()
    """Prefixes of host paths that a job may mount; none by default (M50)."""
    git_schemes: frozenset[str] = frozenset({"https", "ssh"})

    def runtime_for(self, framework: Framework, *, runtime: str | None, has_git_code: bool) -> str:
        """The name of the runtime a request means; a named one always wins."""
        if runtime is not None:
            return runtime
        default = self.default_runtimes[framework]
        return self.git_runtimes.get(framework, default) if has_git_code else default

    def scripts_for(self, runtime: str, framework: Framework | None) -> SystemScripts | None:
        """The System ConfigMap that a job of this framework brings to this runtime."""
        if runtime in self.preludes:
            return None
        return next((each for each in self.system_scripts if each.framework == framework), None)
