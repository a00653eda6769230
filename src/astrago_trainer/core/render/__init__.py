"""From what a user asks for to the objects that Kubernetes or the local engine is given."""

from astrago_trainer.core.render.configmaps import code_digest
from astrago_trainer.core.render.job import Rendered, owner_reference, render, spec_hash
from astrago_trainer.core.render.runtime import name_limit

__all__ = ["Rendered", "code_digest", "name_limit", "owner_reference", "render", "spec_hash"]
