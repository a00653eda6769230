"""What tests look at in a directory of checkpoints, and the damage they do there."""

from __future__ import annotations

from pathlib import Path

from astrago_trainer.checkpoint import Checkpoints


def steps(directory: Path) -> list[int]:
    """The complete ones, oldest first."""
    return sorted(int(path.parent.name[5:]) for path in directory.glob("step-*/manifest.json"))


def names(folder: Path) -> list[str]:
    """All files below, without the random numbers in their names."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(
        "-".join(name.split("-")[:3]) if "manifest" not in name else name for name in found
    )


def part_of(folder: Path, rank: int = 0) -> Path:
    (path,) = folder.glob(f"rank-{rank:05d}-*")
    return path


def flip_bit(path: Path, position: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def truncate(path: Path, by: int = 1) -> None:
    path.write_bytes(path.read_bytes()[:-by])


def ranks(directory: Path, world_size: int, **options: object) -> list[Checkpoints]:
    """One object per rank, as if each were in a process of its own."""
    return [
        Checkpoints(directory, rank=rank, world_size=world_size, **options)  # type: ignore[arg-type]
        for rank in range(world_size)
    ]


def save_all(group: list[Checkpoints], step: int, text: str = "") -> None:
    for rank, each in enumerate(group):
        each.save(step, state_of(rank, step, text))


def state_of(rank: int, step: int, text: str = "") -> bytes:
    return f"rank {rank} step {step} {text}".encode()
