"""Python environments that stand in for images on the local engine: chosen, installed on demand, listed."""

from astrago_trainer.environments.choosing import images_here

__all__ = ["images_here"]
