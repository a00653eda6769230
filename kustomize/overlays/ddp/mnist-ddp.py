# Made by `make manifests`; change the source instead: samples/mnist-ddp.py.
"""MNIST-shaped pictures learned with DistributedDataParallel, for torchrun on any number of nodes.

Runs on GPUs (NCCL) and without (gloo). The pictures are made here, as many as MNIST has, so nothing
is downloaded. EPOCHS (10; or the option --epochs), BATCH_SIZE (64, per process), SAMPLES (60000, of
all processes together) and LEARNING_RATE (0.001) come from the environment. SIGTERM ends all ranks
after the same step.
"""

import argparse
import gc
import os
import signal
import sys
from typing import NoReturn

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CLASSES = 10
LOG_EVERY = 100  # batches
STOPPED = 128 + signal.SIGTERM

stop_requested = False


def main() -> int:
    sys.stdout.reconfigure(encoding="utf-8")  # whatever the image's locale is
    signal.signal(signal.SIGTERM, request_stop)
    parser = argparse.ArgumentParser(description="Train a small classifier with DDP.")
    parser.add_argument("--epochs", type=int, default=int(os.environ.get("EPOCHS", "10")))
    epochs = parser.parse_args().epochs
    batch_size = int(os.environ.get("BATCH_SIZE", "64"))
    samples = int(os.environ.get("SAMPLES", "60000"))
    learning_rate = float(os.environ.get("LEARNING_RATE", "0.001"))
    device = join_group()
    rank, world_size = dist.get_rank(), dist.get_world_size()
    # torchrun sets the first, the runtimes of the platform the second.
    nodes = os.environ.get("GROUP_WORLD_SIZE") or os.environ.get("PET_NNODES") or world_size
    print(
        "✅ 분산 학습 초기화 성공! (distributed init succeeded)\n"
        f"Rank: {rank}/{world_size}, world size: {world_size}, backend: {dist.get_backend()}, "
        f"device: {device}",
        flush=True,
    )

    torch.manual_seed(0)
    model = DistributedDataParallel(
        Classifier().to(device), device_ids=[device.index] if device.type == "cuda" else None
    )
    pictures = TensorDataset(*make_pictures(samples))
    sampler = DistributedSampler(pictures, shuffle=True, seed=0)
    loader = DataLoader(pictures, batch_size=batch_size, sampler=sampler)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)

    loss = float("nan")
    for epoch in range(1, epochs + 1):
        sampler.set_epoch(epoch)
        loss = train_epoch(model, loader, optimizer, epoch=epoch, device=device)
        if is_stopping(device):
            # Not 0: Kubernetes would count the pod as finished and never train the rest.
            print(f"Rank {rank}: stopped by SIGTERM in epoch {epoch}", flush=True)
            return STOPPED
        if rank == 0:
            print(f"Epoch {epoch}/{epochs} done, mean loss: {loss:.4f}", flush=True)

    if not has_equal_weights(model):
        print(f"Rank {rank}: the ranks hold different weights", file=sys.stderr, flush=True)
        return 1
    if rank == 0:
        print(f"All {world_size} ranks hold equal weights", flush=True)
        print("Training finished", flush=True)
        print(f"final mean loss: {loss:.4f}", flush=True)
        print("🎉 PyTorch 분산 학습 완료! (training finished)", flush=True)
        print(f"📊 노드 수: {nodes}", flush=True)
        print(f"📉 최종 평균 Loss: {loss:.4f}", flush=True)
    return 0


def request_stop(*_: object) -> None:
    # Only noted: the step under way is finished first, so that no peer waits for a half step.
    global stop_requested
    stop_requested = True


def join_group() -> torch.device:
    """Meet the other processes; without any in the environment, be a group of one."""
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1")):
        os.environ.setdefault(name, value)
    os.environ.setdefault("MASTER_PORT", "29500")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
        dist.init_process_group("nccl")
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    return device


class Classifier(nn.Sequential):
    """Two convolutions and two dense layers, for 28 x 28 pictures."""

    def __init__(self) -> None:
        super().__init__(
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


def train_epoch(
    model: nn.Module,
    loader: DataLoader,
    optimizer: torch.optim.Optimizer,
    *,
    epoch: int,
    device: torch.device,
) -> float:
    """Train one epoch, or until all are asked to stop; give the mean loss over all ranks."""
    losses = []
    for batch, (pictures, labels) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(pictures.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if batch % LOG_EVERY == 0 and dist.get_rank() == 0:
            print(f"Epoch {epoch}, Batch {batch}/{len(loader)}, Loss: {loss:.4f}", flush=True)
        if is_stopping(device):
            break
    mean = torch.stack(losses).mean()
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()


def is_stopping(device: torch.device) -> bool:
    """Say whether any rank was asked to stop; all give the same answer at the same step.

    A rank that left alone would leave its peers waiting in the next exchange of gradients.
    """
    flag = torch.tensor([float(stop_requested)], device=device)
    dist.all_reduce(flag, dist.ReduceOp.MAX)
    return bool(flag.item())


def has_equal_weights(model: nn.Module) -> bool:
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    lowest, highest = weights.clone(), weights.clone()
    dist.all_reduce(lowest, dist.ReduceOp.MIN)
    dist.all_reduce(highest, dist.ReduceOp.MAX)
    return torch.equal(lowest, highest)


def leave_group(code: int) -> NoReturn:
    # A reference cycle in DistributedDataParallel would keep the group's threads until the
    # interpreter ends, which then may abort (github.com/pytorch/pytorch/issues/190489). Some
    # remain even so; all is done and written, so the process ends without that end.
    gc.collect()
    dist.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    leave_group(main())
