"""One file per part of the operator that changes the pods; `phases.py` says in which order they run."""
