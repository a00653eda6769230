"""Trains a chain of hashes on some ranks and kills one of them at random moments; says what the resumes found.

Run by a test as a program of its own: it forks. State n + 1 follows from state n, so that a wrong state is seen in all
that come after it. The ranks go in step, as with collectives: each waits for all others before every step.
"""

from __future__ import annotations

import hashlib
import json
import logging
import signal
import socket
import sys
from itertools import combinations
from pathlib import Path
from random import Random

from astrago_trainer.checkpoint import Checkpoints
from tests.checkpoint.lives import Life, Report

SIZE = 300_000  # bytes of a state: several writes
LONGEST_SECONDS = 0.05  # until a kill: some saves


class Peers:
    """Connections between all ranks, made before they are forked."""

    def __init__(self, world_size: int) -> None:
        self._pairs = {pair: socket.socketpair() for pair in combinations(range(world_size), 2)}

    def of(self, rank: int) -> list[socket.socket]:
        """Those of one rank; the others are closed, so that the end of a rank is seen."""
        own = [ends[rank == pair[1]] for pair, ends in self._pairs.items() if rank in pair]
        self.close(but=own)
        return own

    def close(self, but: list[socket.socket] | None = None) -> None:
        for ends in self._pairs.values():
            for end in ends:
                if end not in (but or []):
                    end.close()


def chain(rank: int, step: int) -> bytes:
    state = bytes([rank]) * 32
    for _ in range(step):
        state = hashlib.sha256(state).digest()
    return state


def train(
    checkpoints: Checkpoints, rank: int, peers: list[socket.socket], steps: int, report: Report
) -> None:
    found = checkpoints.latest()
    step = found.step if found else 0
    state = found.load()[:32] if found else chain(rank, 0)
    report(f"from {step}")
    assert state == chain(rank, step)
    while step < steps and all_alive(peers):
        step += 1
        state = hashlib.sha256(state).digest()
        wait = step % 3 > 0
        checkpoints.save(step, state * (SIZE // 32), wait=wait)
        if wait:
            report(f"saved {step}")


def all_alive(peers: list[socket.socket]) -> bool:
    try:
        for peer in peers:
            peer.send(b".")
        return all(peer.recv(1) for peer in peers)
    except ConnectionError:
        return False


def main(directory: Path, world_size: int, kills: int, seed: int) -> None:
    logging.disable()  # checkpoints that were not completed are expected here
    chance = Random(seed)
    promised = reached = resumes = 0
    for index in range(kills + 1):
        is_last = index == kills
        peers = Peers(world_size)
        steps = reached + 5 if is_last else sys.maxsize
        life = Life(
            world_size,
            lambda rank, report, peers=peers, steps=steps: train(
                Checkpoints(directory, rank=rank, world_size=world_size),
                rank,
                peers.of(rank),
                steps,
                report,
            ),
        )
        peers.close()
        if not is_last:
            victim = chance.randrange(world_size)
            life.read(victim)
            signal.sigtimedwait([], chance.uniform(0, LONGEST_SECONDS))
            life.kill(victim)
        codes = life.end(kill=False)
        assert set(codes) <= ({0} if is_last else {0, -signal.SIGKILL}), f"a rank failed: {codes}"
        starts = {step for rank in life.numbers("from") for step in rank}
        assert len(starts) == 1, f"life {index}: the ranks went on from {starts}"
        resumes += 1
        saved = [max(rank, default=0) for rank in life.numbers("saved")]
        assert min(starts) >= promised, f"life {index}: {promised} was saved, {starts} found"
        promised = max(promised, *starts, min(saved))
        reached = max(promised, *saved)
    final = [
        Checkpoints(directory, rank=rank, world_size=world_size).latest()
        for rank in range(world_size)
    ]
    assert all(each.load()[:32] == chain(rank, each.step) for rank, each in enumerate(final))
    print(json.dumps({"kills": kills, "resumes": resumes - 1, "steps": final[0].step}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
