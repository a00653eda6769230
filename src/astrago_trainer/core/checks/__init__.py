"""What goes wrong beside the controller's own admission: before it (API server) and after it (JobSet, kubelet).

Each module answers problems and never raises; `preview` runs them all and shows everything at once.
"""
