"""`astrago preview -f FILE --as FORM`: the job of a file as a text for another door."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astrago_trainer import catalogue
from astrago_trainer.cli.job_file import read_job_file, with_defaults
from astrago_trainer.client.places import configured_place, user_name
from astrago_trainer.core.render import render
from astrago_trainer.core.spec import parse_job_spec
from astrago_trainer.platform_file import platform_here
from astrago_trainer.retelling import Door, retell, spec_to_body

if TYPE_CHECKING:
    from astrago_trainer.core.platform import TrainerVersion

_HERE = "http://127.0.0.1:8000"
"""Where `astrago up` answers, for who has no server configured."""


def retold(file: str, form: str, version: TrainerVersion) -> str:
    """Raises InvalidRequest or Unreadable, as a preview does."""
    place = configured_place()
    spec = parse_job_spec(with_defaults(read_job_file(file).job))
    platform = platform_here(version)
    name = platform.runtime_for(
        spec.framework,
        runtime=spec.runtime,
        has_git_code=spec.code is not None and spec.code.git is not None,
    )
    rendered = render(spec, catalogue.load_runtime(name), platform)
    door = Door(place.url if place else _HERE, spec.namespace, has_auth=bool(place and place.token))
    return retell(form, spec_to_body(spec, caller=user_name()), rendered.objects, door)
