"""Benchmarks: ours and the peer in one run, interleaved, one JSON line each. Run with `make bench`."""
