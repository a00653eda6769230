"""Runs jobs on a cluster: the real Kubeflow Trainer, watched, explained and its logs kept."""
