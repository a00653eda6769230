"""Puts the server and all that it needs into a cluster, from the files in `deploy`."""
