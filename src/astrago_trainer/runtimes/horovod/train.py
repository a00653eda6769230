"""Distributed Horovod sample: a small image classifier, one process per slot of mpirun.

Uses Horovod where the image has it. Elsewhere torch.distributed (gloo) does the same work with the
rank and size that mpirun gives, so that the sample runs with any PyTorch; the processes then meet at
MASTER_ADDR (127.0.0.1) and MASTER_PORT (29500). The pictures are made here, so nothing is
downloaded. EPOCHS, BATCH_SIZE (per process) and SAMPLES come from the environment.
"""

from __future__ import annotations  # the image has Python 3.8

import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

try:
    import horovod.torch as hvd
except ImportError:
    hvd = None

CLASSES = 10
LOG_EVERY = 10  # batches


class HorovodGroup:
    """The processes, as Horovod sees them."""

    name = "horovod"

    def __init__(self) -> None:
        hvd.init()
        self.rank, self.size, self.local_rank = hvd.rank(), hvd.size(), hvd.local_rank()

    def share(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        """Start everywhere from the weights of rank 0; give the optimizer to go on with."""
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        return hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    def average_gradients(self, model: nn.Module) -> None:
        """Do nothing: the optimizer of `share` has done it during the backward pass."""

    def gather(self, values: torch.Tensor) -> torch.Tensor:
        """Give one row per rank."""
        return hvd.allgather(values.unsqueeze(0))

    def leave(self) -> None:
        hvd.shutdown()


class GlooGroup:
    """The processes, as mpirun counts them, joined by torch.distributed."""

    name = "torch.distributed"

    def __init__(self) -> None:
        self.rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
        self.size = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))
        self.local_rank = int(os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0"))
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29500")
        torch.distributed.init_process_group("gloo", rank=self.rank, world_size=self.size)

    def share(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        """Start everywhere from the weights of rank 0; give the optimizer to go on with."""
        for parameter in model.parameters():
            torch.distributed.broadcast(parameter.data, src=0)
        return optimizer

    def average_gradients(self, model: nn.Module) -> None:
        for parameter in model.parameters():
            torch.distributed.all_reduce(parameter.grad)
            parameter.grad /= self.size

    def gather(self, values: torch.Tensor) -> torch.Tensor:
        """Give one row per rank."""
        rows = [torch.empty_like(values) for _ in range(self.size)]
        torch.distributed.all_gather(rows, values)
        return torch.stack(rows)

    def leave(self) -> None:
        torch.distributed.destroy_process_group()


def main() -> int:
    epochs = int(os.environ.get("EPOCHS", "3"))
    batch_size = int(os.environ.get("BATCH_SIZE", "64"))
    samples = int(os.environ.get("SAMPLES", "6000"))
    group = HorovodGroup() if hvd else GlooGroup()
    device = torch.device("cuda", group.local_rank) if use_gpu() else torch.device("cpu")
    print(f"{group.name} init succeeded", flush=True)
    print(f"Rank: {group.rank}/{group.size}, device: {device}", flush=True)

    torch.manual_seed(0)
    model = make_model().to(device)
    optimizer = group.share(model, torch.optim.Adam(model.parameters(), lr=1e-3))
    pictures = TensorDataset(*make_pictures(samples))
    sampler = DistributedSampler(pictures, group.size, group.rank, shuffle=True, seed=0)
    loader = DataLoader(pictures, batch_size=batch_size, sampler=sampler)
    if group.rank == 0:
        print(f"Training starts with {group.size} processes", flush=True)

    loss = float("nan")
    for epoch in range(1, epochs + 1):
        sampler.set_epoch(epoch)
        losses = []
        for batch, (inputs, labels) in enumerate(loader):
            optimizer.zero_grad()
            error = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
            error.backward()
            group.average_gradients(model)
            optimizer.step()
            losses.append(error.detach())
            if batch % LOG_EVERY == 0 and group.rank == 0:
                print(f"Epoch {epoch}, Batch {batch}/{len(loader)}, Loss: {error:.4f}", flush=True)
        loss = group.gather(torch.stack(losses).mean().reshape(1).cpu()).mean().item()

    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).cpu()
    is_equal = all(torch.equal(row, weights) for row in group.gather(weights))
    if group.rank == 0:
        equal = "equal" if is_equal else "different"
        print(f"All {group.size} ranks hold {equal} weights", flush=True)
        print("Training finished", flush=True)
        print(f"process count: {group.size}", flush=True)
        print(f"final mean loss: {loss:.4f}", flush=True)
    group.leave()
    return 0 if is_equal else 1


def use_gpu() -> bool:
    # gloo moves tensors of the CPU only.
    return hvd is not None and torch.cuda.is_available()


def make_model() -> nn.Sequential:
    """Two convolutions and two dense layers, for 28 x 28 pictures."""
    return nn.Sequential(
        nn.Conv2d(1, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, CLASSES),
    )


def make_pictures(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw pictures that can be learned: one pattern per class, and noise. Alike on every rank."""
    generator = torch.Generator().manual_seed(0)
    patterns = torch.rand(CLASSES, 1, 28, 28, generator=generator)
    labels = torch.randint(CLASSES, (count,), generator=generator)
    noise = torch.randn(count, 1, 28, 28, generator=generator)
    return patterns[labels] + 0.5 * noise, labels


if __name__ == "__main__":
    sys.exit(main())
