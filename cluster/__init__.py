"""A real one-node Kubernetes with the real Kubeflow Trainer on this machine, for tests; as root, without Docker.

Everything is built from pinned Go modules and Debian packages. `python -m cluster up` starts it or finds it running.
"""
