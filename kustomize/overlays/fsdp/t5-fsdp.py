# Made by `make manifests`; change the source instead: samples/fsdp/t5-fsdp.py.
"""A T5 model trained with FSDP2 under torchrun: saved after every epoch, continued where it stopped.

`--model_id tiny` is a small encoder-decoder of this file on made-up text: no download, no GPU. Any
T5 of Hugging Face (google-t5/t5-small, google-t5/t5-large …) learns to summarise billsum and needs
requirements.txt. With --save_path, a folder that all nodes share, a start finds the newest saved
epoch there and goes on with the next one; the number of processes may have changed in between.
"""

import argparse
import gc
import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, DistributedSampler

STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD")
INPUT_TOKENS, TARGET_TOKENS = 512, 128  # of a bill and of its summary
LOG_EVERY = 50  # steps
KEPT = 2  # saved epochs: the newest, and the one before while the newest is being written
STOPPED = 128 + signal.SIGTERM

stop_requested = False


def main() -> int:
    signal.signal(signal.SIGTERM, request_stop)
    options = read_options()
    device = join_group()
    rank, world_size = dist.get_rank(), dist.get_world_size()
    print(f"Rank: {rank}/{world_size}, world size: {world_size}, device: {device}", flush=True)
    if device.type == "cpu" and options.precision != "fp32":
        options.precision = "fp32"
        report("bf16 needs a GPU: fp32 is used")

    torch.manual_seed(0)
    task = tiny_task(options) if options.model_id == "tiny" else t5_task(options)
    parameters = sum(parameter.numel() for parameter in task.model.parameters())
    model = shard(task, options, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    report(
        f"Model: {options.model_id}, {parameters / 1e6:.1f} million parameters, "
        f"{options.sharding_strategy}, {options.precision}"
    )
    sampler = DistributedSampler(task.data, shuffle=True, seed=0)
    loader = DataLoader(
        task.data,
        batch_size=options.batch_size,
        sampler=sampler,
        num_workers=options.num_workers,
        persistent_workers=options.num_workers > 0,
        worker_init_fn=leave_stop_to_parent,
        pin_memory=options.pin_memory and device.type == "cuda",
    )

    first = resume(model, optimizer, options.save_path)
    started = time.monotonic()
    loss = float("nan")
    for epoch in range(first, options.epochs):
        sampler.set_epoch(epoch)
        loss = train_epoch(model, loader, optimizer, epoch, options.grad_acc_steps, device)
        if is_stopping():
            # Not 0: Kubernetes would count the pod as finished and never train the rest.
            print(f"Rank {rank}: stopped by SIGTERM in epoch {epoch}", flush=True)
            return STOPPED
        report(f"Epoch {epoch} done, mean loss: {loss:.4f}")
        if options.save_path:
            save(model, optimizer, options.save_path, epoch)
    if first >= options.epochs:
        report(f"Nothing left to train: {options.epochs} epochs are saved")
        return 0
    report("Training finished")
    report(f"final mean loss: {loss:.4f}")
    report(f"wall time: {time.monotonic() - started:.1f} s")
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--model_id", default="google-t5/t5-small", help="a T5 of Hugging Face, or tiny")
    add("--epochs", type=int, default=1, help="in all, the saved ones among them")
    add("--train_size", type=int, default=1000, help="examples per epoch, of all processes")
    add("--batch_size", type=int, default=4, help="per process")
    add("--grad_acc_steps", type=int, default=1, help="batches per step of the optimizer")
    add("--lr", type=float, default=1e-5, help="learning rate of AdamW")
    add("--sharding_strategy", choices=STRATEGIES, default="FULL_SHARD", help="what each rank has")
    add("--precision", choices=("bf16", "fp32"), default="bf16", help="of parameters in use")
    add("--use_offload", action="store_true", help="keep parameters in the memory of the CPU")
    add("--use_checkpointing", action="store_true", help="recompute activations: less memory")
    add("--use_prefetch", action="store_true", help="gather the next block during this one")
    add("--pin_memory", type=as_bool, nargs="?", const=True, default=True, help="true or false")
    add("--num_workers", type=int, default=4, help="processes that load data; they use /dev/shm")
    add("--save_path", type=Path, help="folder for the saved epochs, shared by all nodes")
    return parser.parse_args()


def as_bool(text: str) -> bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def report(text: str) -> None:
    if dist.get_rank() == 0:
        print(text, flush=True)


# --- the group


def join_group() -> torch.device:
    """Meet the other processes; without any in the environment, be a group of one."""
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1")):
        os.environ.setdefault(name, value)
    os.environ.setdefault("MASTER_PORT", "29500")
    patience = timedelta(minutes=30)  # NCCL's own 10 are short for saving a large model
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
        # gloo beside NCCL: for the stop flag, and for parameters that are kept on the CPU.
        dist.init_process_group("cpu:gloo,cuda:nccl", timeout=patience, device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo", timeout=patience)
    return device


def request_stop(*_: object) -> None:
    # Only noted: the step under way is finished first, so that no peer waits for a half step.
    global stop_requested
    stop_requested = True


def leave_stop_to_parent(_: int) -> None:
    # torchrun sends SIGTERM to the loading processes, too; the training one ends them when it is done.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def is_stopping() -> bool:
    """Say whether any rank was asked to stop; all give the same answer at the same step."""
    return any_rank(stop_requested)


def any_rank(is_true: bool) -> bool:
    flag = torch.tensor([float(is_true)])
    dist.all_reduce(flag, dist.ReduceOp.MAX)
    return bool(flag.item())


def leave_group(code: int) -> NoReturn:
    # What still refers to the group's threads is collected first: else the interpreter may abort at
    # its end (github.com/pytorch/pytorch/issues/190489). Some remain even so; all is done and
    # written, so the process ends without that end.
    gc.collect()
    dist.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


# --- what is trained


@dataclass
class Task:
    """A model that answers (loss, …) to the fields of an example, its blocks, and the examples."""

    model: nn.Module
    blocks: list[nn.Module]
    data: Dataset


def t5_task(options: argparse.Namespace) -> Task:
    """A T5 of Hugging Face and the bills it summarises; both are downloaded."""
    try:
        from datasets import load_dataset
        from transformers import AutoTokenizer, T5ForConditionalGeneration
    except ImportError as error:
        sys.exit(f"{error.name} is missing: pip install -r requirements.txt, or --model_id tiny")
    tokenizer = AutoTokenizer.from_pretrained(options.model_id)
    model = T5ForConditionalGeneration.from_pretrained(options.model_id, dtype=torch.float32)
    model.config.use_cache = False  # for generating only
    if options.use_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})

    def to_tokens(bill: dict[str, str]) -> dict[str, list[int]]:
        fields = tokenizer(
            f"summarize: {bill['text']}",
            max_length=INPUT_TOKENS,
            padding="max_length",
            truncation=True,
        )
        summary = tokenizer(
            bill["summary"], max_length=TARGET_TOKENS, padding="max_length", truncation=True
        )
        ignored = tokenizer.pad_token_id
        labels = [-100 if token == ignored else token for token in summary["input_ids"]]
        return {**fields, "labels": labels}

    bills = load_dataset("FiscalNote/billsum", split=f"train[:{options.train_size}]")
    data = bills.map(to_tokens, remove_columns=bills.column_names).with_format("torch")
    return Task(model, [*model.encoder.block, *model.decoder.block], data)


def tiny_task(options: argparse.Namespace) -> Task:
    model = TinySeq2Seq(is_checkpointing=options.use_checkpointing)
    return Task(model, [*model.encoder, *model.decoder], MadeUpText(options.train_size))


class TinySeq2Seq(nn.Module):
    """An encoder and a decoder, called as T5 is, small enough for a CPU."""

    VOCABULARY, WIDTH, HEADS, LAYERS, PLACES = 64, 64, 4, 2, 32

    def __init__(self, *, is_checkpointing: bool) -> None:
        super().__init__()
        shape = {"dropout": 0.0, "batch_first": True, "norm_first": True}
        sizes = (self.WIDTH, self.HEADS, 4 * self.WIDTH)
        self.tokens = nn.Embedding(self.VOCABULARY, self.WIDTH)
        self.places = nn.Embedding(self.PLACES, self.WIDTH)
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(*sizes, **shape) for _ in range(self.LAYERS)
        )
        self.decoder = nn.ModuleList(
            nn.TransformerDecoderLayer(*sizes, **shape) for _ in range(self.LAYERS)
        )
        self.head = nn.Linear(self.WIDTH, self.VOCABULARY)
        self.is_checkpointing = is_checkpointing

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor]:
        memory = self.embed(input_ids)
        for layer in self.encoder:
            memory = self.run(layer, memory)
        # Each place is predicted from the right ones before it; 0 stands before the first.
        state = self.embed(nn.functional.pad(labels[:, :-1], (1, 0)))
        length = labels.shape[1]
        mask = torch.full((length, length), float("-inf"), device=labels.device).triu(1)
        for layer in self.decoder:
            state = self.run(layer, state, memory, mask.to(state.dtype))
        logits = self.head(state).flatten(0, 1)
        return (nn.functional.cross_entropy(logits.float(), labels.flatten()),)

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        return self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))

    def run(self, layer: nn.Module, *inputs: torch.Tensor) -> torch.Tensor:
        if self.is_checkpointing:
            return checkpoint(layer, *inputs, use_reentrant=False)
        return layer(*inputs)


class MadeUpText(Dataset):
    """Token rows whose summary is every second token. Alike on every rank."""

    def __init__(self, count: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.rows = torch.randint(1, TinySeq2Seq.VOCABULARY, (count, 16), generator=generator)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        row = self.rows[index]
        return {"input_ids": row, "labels": row[::2]}


# --- sharding and training


def shard(task: Task, options: argparse.Namespace, device: torch.device) -> FSDPModule:
    """Split parameters, gradients and optimizer state over the ranks, block by block."""
    bf16 = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    settings = {
        "mesh": make_mesh(options.sharding_strategy, device),
        "reshard_after_forward": options.sharding_strategy != "SHARD_GRAD_OP",
        "mp_policy": bf16 if options.precision == "bf16" else MixedPrecisionPolicy(),
    }
    if options.use_offload and device.type == "cuda":
        settings["offload_policy"] = CPUOffloadPolicy(pin_memory=options.pin_memory)
    for block in task.blocks:
        fully_shard(block, **settings)
    model = fully_shard(task.model, **settings)
    if options.use_prefetch:
        for block, following in zip(task.blocks, task.blocks[1:], strict=False):
            block.set_modules_to_forward_prefetch([following])
            following.set_modules_to_backward_prefetch([block])
    return model


def make_mesh(strategy: str, device: torch.device) -> DeviceMesh:
    """All ranks share one copy; HYBRID_SHARD: each node has a copy; NO_SHARD: each rank."""
    world_size = dist.get_world_size()
    sharing = {
        "HYBRID_SHARD": int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        "NO_SHARD": 1,
    }.get(strategy)
    if sharing is None:
        return init_device_mesh(device.type, (world_size,))
    names = ("replicate", "shard")
    return init_device_mesh(device.type, (world_size // sharing, sharing), mesh_dim_names=names)


def train_epoch(
    model: FSDPModule,
    loader: DataLoader,
    optimizer: torch.optim.Optimizer,
    epoch: int,
    grad_acc_steps: int,
    device: torch.device,
) -> float:
    """Train one epoch, or until all are asked to stop; give the mean loss over all ranks."""
    losses = []
    for step, batch in enumerate(loader):
        fields = {name: field.to(device, non_blocking=True) for name, field in batch.items()}
        is_last = (step + 1) % grad_acc_steps == 0 or step + 1 == len(loader)
        model.set_requires_gradient_sync(is_last)
        loss = model(**fields)[0]
        (loss / grad_acc_steps).backward()
        if is_last:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.detach())
        if step % LOG_EVERY == 0:
            report(f"Epoch {epoch}, Step {step}/{len(loader)}, Loss: {loss:.4f}")
        if is_stopping():
            break
    mean = torch.stack(losses).mean().cpu()
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()


# --- saved epochs


def save(model: FSDPModule, optimizer: torch.optim.Optimizer, save_path: Path, epoch: int) -> None:
    """Every rank writes its own part; the epoch counts as saved when the last file is there."""
    weights, moments = get_state_dict(model, optimizer)
    folder = save_path / f"epoch_{epoch}"
    dcp.save({"weights": weights, "moments": moments}, checkpoint_id=folder)
    check_shared(folder)
    report(f"Epoch {epoch} saved in {folder}")
    if dist.get_rank() == 0:
        for older in saved_epochs(save_path)[:-KEPT]:
            shutil.rmtree(save_path / f"epoch_{older}", ignore_errors=True)


def resume(model: FSDPModule, optimizer: torch.optim.Optimizer, save_path: Path | None) -> int:
    """Load the newest saved epoch, if there is one; give the epoch to start with."""
    if save_path is None:
        report("Starting at epoch 0: no --save_path, so nothing is saved")
        return 0
    # Rank 0 looks and decides for all: the others may see a shared folder a little later.
    found = [saved_epochs(save_path)[-1:] if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(found)
    if not found[0]:
        report(f"Starting at epoch 0: nothing is saved in {save_path}")
        return 0
    (epoch,) = found[0]
    folder = save_path / f"epoch_{epoch}"
    check_shared(folder)
    weights, moments = get_state_dict(model, optimizer)
    dcp.load({"weights": weights, "moments": moments}, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    report(f"Resuming at epoch {epoch + 1}: epoch {epoch} is saved in {folder}")
    return epoch + 1


def saved_epochs(save_path: Path) -> list[int]:
    """Those that are complete, oldest first: .metadata is written last."""
    return sorted(
        int(each.parent.name.removeprefix("epoch_")) for each in save_path.glob("epoch_*/.metadata")
    )


def check_shared(folder: Path) -> None:
    """Leave when a rank does not see what rank 0 sees: the parts would never come together again."""
    if any_rank(not (folder / ".metadata").exists()):
        report(
            f"{folder} is not seen by all ranks: --save_path must be a folder shared by all nodes"
        )
        leave_group(1)


if __name__ == "__main__":
    leave_group(main())
