"""Fits y = 3x + 2 on several nodes, with nothing but Python's standard library.

Each node has its own data. After every step all nodes average their gradients through node 0, as
DistributedDataParallel does, so all of them learn from everybody's data. EPOCHS is the length.
"""

import json
import math
import os
import socket
import time

RANK = int(os.environ.get("RANK", "0"))
WORLD = int(os.environ.get("WORLD_SIZE", "1"))
MASTER = (os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "29500")))
EPOCHS = int(os.environ.get("EPOCHS", "20"))
STEPS = 50
RATE = 0.1


def connect():
    """Node 0 waits for all others; they try until node 0 is there."""
    if RANK == 0:
        listener = socket.create_server(("", MASTER[1]))
        return [listener.accept()[0].makefile("rw") for _ in range(WORLD - 1)]
    until = time.monotonic() + 120
    while True:
        try:
            return [socket.create_connection(MASTER, timeout=120).makefile("rw")]
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def send(stream, numbers):
    stream.write(json.dumps(numbers) + "\n")
    stream.flush()


def averaged(peers, numbers):
    """The mean of these numbers over all nodes."""
    if RANK == 0:
        every = [numbers] + [json.loads(peer.readline()) for peer in peers]
        mean = [sum(each[i] for each in every) / WORLD for i in range(len(numbers))]
        for peer in peers:
            send(peer, mean)
        return mean
    send(peers[0], numbers)
    return json.loads(peers[0].readline())


def sample(number):
    """Between -1 and 1, and a little noise; every node has others."""
    number = number * WORLD + RANK
    return math.sin(number * 12.9898), 0.1 * math.sin(number * 78.233)


def main():
    print(f"node {RANK} of {WORLD}: node 0 is {MASTER[0]}:{MASTER[1]}", flush=True)
    peers = connect()
    slope, offset = 0.0, 0.0
    for epoch in range(1, EPOCHS + 1):
        loss = 0.0
        for step in range(STEPS):
            x, noise = sample(epoch * STEPS + step)
            error = slope * x + offset - (3 * x + 2 + noise)
            down, side, square = averaged(peers, [2 * error * x, 2 * error, error * error])
            slope, offset = slope - RATE * down, offset - RATE * side
            loss += square / STEPS
        if RANK == 0:
            print(f"Epoch {epoch}/{EPOCHS} loss: {loss:.4f}", flush=True)
        time.sleep(0.2)  # slow enough to be watched
    print(f"node {RANK} learned y = {slope:.2f}x + {offset:.2f}", flush=True)


if __name__ == "__main__":
    main()
