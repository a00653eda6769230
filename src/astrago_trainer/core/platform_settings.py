"""The administrator's settings file: its fields, their rules, and the platform that they make.

Every field is optional and replaces one default of `Platform`. The same strict reading as for a request: unknown fields
are refused, and all problems are reported at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.core.platform import FRAMEWORKS, Framework, Platform, Preset
from astrago_trainer.core.quantity import Quantity
from astrago_trainer.core.spec.base import Broken, Model, Rules
from astrago_trainer.core.spec.parse import parse_model
from astrago_trainer.core.spec.text import (
    AbsolutePath,
    Count,
    Image,
    ObjectName,
    PositiveQuantityText,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_ENTRIES = 100
"""Of a list that the form shows."""

_USUAL = Platform()

PresetName = Annotated[Text, Field(min_length=1, max_length=40)]
Seconds = Annotated[Count, Field(ge=0, le=2**31 - 1)]


class FrameworkSettings(Model):
    """What jobs of one framework run on."""

    runtime: ObjectName | None = Field(None, description="For jobs that name no runtime.")
    git_runtime: ObjectName | None = Field(
        None, description="The same for jobs with code from git: it has a git-clone init container."
    )
    image: Image | None = Field(
        None, description="For jobs that name no image, on the default runtime."
    )
    images: tuple[Image, ...] = Field(
        (), max_length=_MAX_ENTRIES, description="What the form offers beside it."
    )


class FrameworksSettings(Model):
    """One entry per framework."""

    pytorch: FrameworkSettings = FrameworkSettings()
    tensorflow: FrameworkSettings = FrameworkSettings()
    horovod: FrameworkSettings = FrameworkSettings()


class PresetSettings(Model):
    """A size of a node that the form offers by name."""

    name: PresetName = Field(description="What the form shows.")
    gpus: Annotated[Count, Field(ge=0, le=1024)] = Field(0, description="GPUs per node.")
    cpu: PositiveQuantityText = Field(description="CPU cores per node.")
    memory: PositiveQuantityText = Field(description="Memory per node.")


class LimitSettings(Model):
    """The most that one job may ask for."""

    nodes: Annotated[Count, Field(ge=1, le=2**31 - 1)] = Field(
        _USUAL.max_nodes, description="Nodes of a job."
    )
    gpus_per_node: Annotated[Count, Field(ge=0, le=1024)] = Field(
        _USUAL.max_gpus_per_node, description="GPUs of a node."
    )
    cpu_per_node: PositiveQuantityText = Field(
        _USUAL.max_cpu_per_node, description="CPU cores of a node."
    )
    memory_per_node: PositiveQuantityText = Field(
        _USUAL.max_memory_per_node, description="Memory of a node."
    )


class DefaultSettings(Model):
    """For jobs that do not say."""

    ttl_seconds: Seconds = Field(
        _USUAL.default_ttl_seconds, description="How long a finished job is kept."
    )
    max_restarts: Annotated[Count, Field(ge=0, le=1000)] | None = Field(
        None, description="Restarts after a failure; left out: the runtime's own number."
    )


def _unique_names(settings: PlatformSettings) -> Iterator[Broken]:
    seen: set[str] = set()
    for index, each in enumerate(settings.presets or ()):
        if each.name in seen:
            where = ("presets", index, "name")
            message = f"must be unique; found {each.name!r} twice."
            yield (where, "FieldValueDuplicate", message, "Rename one of them.")
        seen.add(each.name)


def _presets_within_limits(settings: PlatformSettings) -> Iterator[Broken]:
    """A size that the form offers must be one that the server accepts."""
    limits = settings.limits
    for index, each in enumerate(settings.presets or ()):
        for field, found, most in (
            ("gpus", str(each.gpus), str(limits.gpus_per_node)),
            ("cpu", each.cpu, limits.cpu_per_node),
            ("memory", each.memory, limits.memory_per_node),
        ):
            if Quantity.parse(found) > Quantity.parse(most):
                message = f"must be at most {most}, the limit of this file; found {found}."
                where = ("presets", index, field)
                yield (where, "FieldValueInvalid", message, "Lower it, or raise the limit.")


class PlatformSettings(Model):
    """The file; an empty one changes nothing."""

    frameworks: FrameworksSettings = FrameworksSettings()
    presets: tuple[PresetSettings, ...] | None = Field(
        None, max_length=_MAX_ENTRIES, description="Left out: small, medium and large."
    )
    allowed_host_paths: tuple[AbsolutePath, ...] = Field(
        (), max_length=_MAX_ENTRIES, description="Folders of the nodes that jobs may mount."
    )
    limits: LimitSettings = LimitSettings()
    defaults: DefaultSettings = DefaultSettings()

    RULES: ClassVar[Rules] = (
        (frozenset({"presets"}), _unique_names),
        (frozenset({"presets", "limits"}), _presets_within_limits),
    )

    def of(self, framework: Framework) -> FrameworkSettings:
        found: FrameworkSettings = getattr(self.frameworks, framework)
        return found

    def applied_to(self, platform: Platform) -> Platform:
        """The platform, with what the file decides instead of its defaults."""
        limits, defaults = self.limits, self.defaults
        presets = platform.presets
        if self.presets is not None:
            presets = tuple(Preset(**each.model_dump()) for each in self.presets)
        return replace(
            platform,
            default_runtimes={**platform.default_runtimes, **self._given("runtime")},
            git_runtimes={**platform.git_runtimes, **self._given("git_runtime")},
            default_images={**platform.default_images, **self._given("image")},
            images={**platform.images, **self._given("images")},
            presets=presets,
            allowed_host_paths=self.allowed_host_paths,
            max_nodes=limits.nodes,
            max_gpus_per_node=limits.gpus_per_node,
            max_cpu_per_node=limits.cpu_per_node,
            max_memory_per_node=limits.memory_per_node,
            default_ttl_seconds=defaults.ttl_seconds,
            default_max_restarts=defaults.max_restarts,
        )

    def runtimes(self) -> Iterator[tuple[str, str]]:
        """Where the file names a runtime, and which."""
        for framework in FRAMEWORKS:
            for field in ("runtime", "git_runtime"):
                if name := getattr(self.of(framework), field):
                    yield f"frameworks.{framework}.{field}", name

    def _given(self, field: str) -> Mapping[Framework, Any]:
        values = ((framework, getattr(self.of(framework), field)) for framework in FRAMEWORKS)
        return {framework: value for framework, value in values if value}


def parse_platform_settings(data: object) -> PlatformSettings:
    """Raises InvalidRequest with every problem."""
    settings, problems = parse_model(PlatformSettings, data)
    if settings is None:
        raise InvalidRequest(problems)
    return settings


def check_runtimes(settings: PlatformSettings, known: Sequence[str]) -> Iterator[Problem]:
    """Runtimes that the file names and an engine with these does not have."""
    from difflib import get_close_matches

    for path, name in settings.runtimes():
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"Did you mean {close[0]}?" if close else f"Name one of {', '.join(known)}."
            message = f"must name a runtime that is installed; found {name!r}."
            yield Problem(path, "FieldValueNotFound", message, hint)
