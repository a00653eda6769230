"""Astrago Trainer: self-service distributed training on Kubeflow Trainer, or on this machine."""

__version__ = "0.1.0"
