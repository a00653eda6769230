"""Manifests of others to a job file: TrainJobs, and the jobs of the Training Operator v1.

Pure. What is read is ticked off, so that what is left over can be named: nothing is lost in silence.
"""

from astrago_trainer.core.convert.converted import Converted
from astrago_trainer.core.convert.legacy import LEGACY_KINDS, legacy_to_job
from astrago_trainer.core.convert.trainjob import trainjob_to_job

__all__ = ["LEGACY_KINDS", "Converted", "legacy_to_job", "trainjob_to_job"]
