"""The proof that our merge answers what Kubeflow Trainer's own code answers, for each version we
speak.

The Go programs in `go/` are the controller's packages behind a pipe; the modules here build them,
make pairs of runtime and TrainJob, ask both sides and compare. Nothing here is needed to use the
package, and nothing here needs a cluster.
"""
