"""Files that are whole or not there: written under a temporary name, forced to the disk, then renamed.

A rename is durable once its folder is forced to the disk, too. Nothing here knows what a checkpoint is.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CHUNK = 1 << 20
_NOT_FOR_FOLDERS = (errno.EINVAL, errno.ENOTSUP)
"""Answers to fsync of a folder where a file system has no such thing (some of FUSE and SMB)."""


class HashingFile(io.RawIOBase):
    """A new file that can be hashed while it is written, so that its bytes are in memory only once.

    It is made by `open`.
    """

    def __init__(self, path: Path, *, is_hashing: bool) -> None:
        self.path = path
        self.size = 0
        self.failure: OSError | None = None
        """Why a write failed: writers such as torch's report it as an error of their own."""
        self._hash = hashlib.sha256() if is_hashing else None
        self._descriptor = -1

    def open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(self.path, flags, 0o666)

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        view = memoryview(data)  # type: ignore[arg-type]  # any buffer; typeshed names them since 3.12 only
        with self._named():
            written = os.write(self._descriptor, view)
        if self._hash is not None:
            self._hash.update(view[:written])
        self.size += written
        return written

    def sync(self) -> None:
        with self._named():
            os.fsync(self._descriptor)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = str(self.path)
            self.failure = error
            raise

    def close(self) -> None:
        super().close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def sha256(self) -> str:
        """The hash of what was written; read from the closed file where it was not taken on the way."""
        return sha256_of(self.path) if self._hash is None else self._hash.hexdigest()


def replace(path: Path, content: bytes, temporary: Path, *, is_synced: bool) -> None:
    """Put new content in place of a file: a reader sees the old or the new one, never a part."""
    file = HashingFile(temporary, is_hashing=False)
    try:
        file.open()
        with io.BufferedWriter(file) as writer:
            writer.write(content)
            writer.flush()
            if is_synced:
                file.sync()
        temporary.replace(path)
    except BaseException:
        remove(temporary)
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_FOR_FOLDERS:
            raise
    finally:
        os.close(descriptor)


def refresh(folder: Path, temporary: Path) -> None:
    """See the names in a folder as they are now.

    A client of NFS may show for up to a minute what it has in its cache, and asks the server anew once it has changed
    the folder itself.
    """
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))
    except OSError:
        return  # may not be written: its cache is left to itself
    remove(temporary)


def remove(path: Path) -> None:
    """Remove a file if that can be done; what stays is found again by the next tidying up."""
    try:
        path.unlink()
    except OSError:
        return


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(_CHUNK))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(buffer[:count])
    return digest.hexdigest()
