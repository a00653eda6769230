"""What the tests of render share."""

from __future__ import annotations

from typing import Any

from astrago_trainer.core.platform import Platform
from astrago_trainer.core.render import Rendered, render
from unit.core.builders import a_platform, a_runtime, a_spec

Json = dict[str, Any]

COMMAND = "python /workspace/scripts/train.py"


def a_render(
    *, runtime: Json | None = None, platform: Platform | None = None, **changes: Any
) -> Rendered:
    """A request on a runtime object; changes are fields of the request."""
    return render(a_spec(**changes), runtime or a_runtime(), platform or a_platform())


def trainer_of(rendered: Rendered) -> Json:
    return rendered.trainjob["spec"]["trainer"]


def pod_of(rendered: Rendered) -> Json:
    return rendered.trainjob["spec"]["podTemplateOverrides"][0]


def found(rendered: Rendered) -> list[tuple[str, str]]:
    return [(problem.path, problem.code) for problem in rendered.problems]
