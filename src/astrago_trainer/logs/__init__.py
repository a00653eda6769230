"""Logs as files: one per attempt, pod and container, written by the training process itself.

Beside each lies an index of times. Everything here reads by byte offset, in constant memory, and asks nobody but the
kernel: `reader` for what is there, `follow` (asyncio) and `follow_sync` for what comes, `merged` for all ranks at once,
`indexer` for the job's supervisor, `writer` for logs that arrive over the network.

This file imports nothing: the supervisor must not pay for asyncio.
"""
