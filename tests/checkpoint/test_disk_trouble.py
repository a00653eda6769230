"""A disk that is full, read-only, forbidden or broken: a clear error, nothing older lost, and training can go on."""

import errno
import os
import resource
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from astrago_trainer.checkpoint import Checkpoints, LoadFailed, SaveFailed
from tests.checkpoint.crash_points import left_over
from tests.checkpoint.faults import watching
from tests.checkpoint.views import names, ranks, save_all, state_of, steps

NOBODY = 65534


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "checkpoints", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here: root is needed")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(folder, mode):
    subprocess.run(["mount", "-o", f"remount,{mode}", str(folder)], check=True)


class TestAFullDisk:
    @pytest.mark.parametrize("wait", [True, False])
    def test_is_told_in_bytes_and_what_is_there_stays(self, small_disk, wait):
        directory = small_disk / "checkpoints"
        checkpoints = Checkpoints(directory)
        checkpoints.save(1, bytes(1 << 20))

        with pytest.raises(SaveFailed) as caught:
            checkpoints.save(2, bytes(8 << 20), wait=wait)

        failure = caught.value
        assert (failure.step, failure.path.parent) == (2, directory / "step-000000002")
        assert failure.needed > 2 << 20
        assert 2 << 20 < failure.free < 3 << 20, "what was written of it is gone again"
        assert "step 2 is not saved: " in str(failure)
        assert "No space left on device; bytes needed: 3," in str(failure)
        assert "Older checkpoints are intact. Free space, enlarge the volume" in str(failure)
        assert isinstance(failure.__cause__, OSError)
        assert names(directory) == ["step-000000001/manifest.json", "step-000000001/rank-00000"]
        assert not (directory / "step-000000002").exists()

    def test_is_no_obstacle_to_a_later_save(self, small_disk):
        checkpoints = Checkpoints(small_disk)
        for step in range(1, 10):
            size = (8 << 20) if step % 2 else (900 << 10)
            try:
                checkpoints.save(step, bytes(size))
            except SaveFailed:
                assert step % 2
        assert steps(small_disk) == [4, 6, 8]

    def test_is_made_room_on_before_writing(self, small_disk):
        left_by_a_killed_run = Checkpoints(small_disk, rank=0, world_size=2)
        left_by_a_killed_run.save(1, bytes(3 << 20))

        Checkpoints(small_disk).save(2, bytes(3 << 20))

        assert steps(small_disk) == [2]

    def test_on_one_rank_leaves_the_step_incomplete_for_all(self, small_disk):
        group = ranks(small_disk, 2)
        save_all(group, 1)
        group[0].save(2, state_of(0, 2))
        with pytest.raises(SaveFailed):
            group[1].save(2, bytes(8 << 20))
        assert [each.latest().step for each in group] == [1, 1]

        save_all(group, 3)
        assert [each.latest().step for each in ranks(small_disk, 2)] == [3, 3]

    def test_when_the_manifest_does_not_fit_nothing_is_left(self, small_disk):
        checkpoints = Checkpoints(small_disk)
        checkpoints.save(1, b"weights")
        free = os.statvfs(small_disk)
        (small_disk / "ballast").write_bytes(bytes((free.f_bfree - 2) * free.f_bsize))

        with pytest.raises(SaveFailed, match=r"manifest\.json: No space left"):
            checkpoints.save(2, b"weights")

        assert steps(small_disk) == [1]
        assert not (small_disk / "step-000000002").exists()
        (small_disk / "ballast").unlink()
        checkpoints.save(2, b"weights")
        assert checkpoints.latest().step == 2


def test_the_size_of_the_last_part_says_what_is_needed(directory):
    checkpoints = Checkpoints(directory)
    checkpoints.save(1, bytes(1_000_000))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, limits[1]))
    try:
        with pytest.raises(
            SaveFailed, match=r"File too large; bytes needed: 1,000,000 .*ulimit -f"
        ):
            checkpoints.save(2, bytes(1_000_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(directory) == ["step-000000001/manifest.json", "step-000000001/rank-00000"]
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN, "Python's own setting"


class TestADirectoryThatMayNotBeWritten:
    def test_because_it_is_mounted_read_only(self, small_disk):
        checkpoints = Checkpoints(small_disk)
        checkpoints.save(1, b"weights")
        remount(small_disk, "ro")
        try:
            with pytest.raises(
                SaveFailed, match=r"Read-only file system.*Mount the volume for writing"
            ):
                checkpoints.save(2, b"weights")
            for each in (Checkpoints(small_disk), Checkpoints(small_disk, rank=0, world_size=2)):
                assert each.latest().step == 1
        finally:
            remount(small_disk, "rw")
        checkpoints.save(2, b"weights")
        assert steps(small_disk) == [1, 2]

    @pytest.fixture
    def ordinary_user(self):
        """Root may do everything: be somebody else for a while."""
        if os.geteuid() != 0:
            yield
            return
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
        yield
        os.seteuid(0)
        os.setegid(0)

    @pytest.fixture
    def forbidden(self):
        # Not below tmp_path, which nobody else may enter.
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder)
            Checkpoints(directory).save(1, b"weights")
            directory.chmod(0o555)
            yield directory
            directory.chmod(0o755)

    def test_because_it_is_somebody_elses(self, forbidden, ordinary_user):
        checkpoints = Checkpoints(forbidden)
        assert checkpoints.latest().step == 1
        with pytest.raises(
            SaveFailed, match=r"Permission denied.*Let the training's user write there"
        ):
            checkpoints.save(2, b"weights")

    @pytest.fixture
    def hidden(self, forbidden):
        forbidden.chmod(0)
        return forbidden

    def test_nor_listed(self, hidden, ordinary_user):
        for each in (Checkpoints(hidden), Checkpoints(hidden, rank=0, world_size=2)):
            with pytest.raises(LoadFailed, match="cannot be listed: Permission denied"):
                each.latest()


class Broken:
    """The n-th change of the disk of some kind fails."""

    def __init__(self, kind, number, code):
        self.kind, self.left, self.code = kind, number, code
        self.has_failed = False

    def __call__(self, name, *arguments, **options):
        is_meant = name == self.kind and not (name == "open" and not arguments[1] & os.O_CREAT)
        self.left -= is_meant
        if is_meant and self.left < 0 and not self.has_failed:
            self.has_failed = True
            raise OSError(self.code, os.strerror(self.code))


def failure_of(checkpoints, step, state):
    """What a training that goes on anyway is told."""
    try:
        checkpoints.save(step, state)
    except SaveFailed as failure:
        return str(failure)
    return ""


@pytest.mark.parametrize("kind", ["open", "write", "fsync", "replace", "mkdir"])
@pytest.mark.parametrize("world_size", [1, 2])
def test_an_error_at_any_change_of_the_disk_is_told_and_loses_nothing_older(
    tmp_path, kind, world_size
):
    for number in range(20):
        directory = tmp_path / f"{number}"
        group = ranks(directory, world_size)
        save_all(group, 1)
        broken = Broken(kind, number, errno.EIO)
        with watching(before=broken):
            failures = [failure_of(each, 2, state_of(rank, 2)) for rank, each in enumerate(group)]
        assert all("Input/output error; " in text for text in failures if text)
        # A folder that the other rank has made need not be made again: that error is none.
        told = [text for text in failures if text]
        assert len(told) == broken.has_failed or (kind == "mkdir" and not told)
        (step,) = {each.latest().step for each in group}
        assert step in (1, 2)
        save_all(group, 3)
        save_all(group, 4)
        assert [each.latest().load() for each in group] == [
            state_of(rank, 4) for rank in range(world_size)
        ]
        assert left_over(directory, world_size) == []
        if not broken.has_failed:
            return
    pytest.fail("there is no end to it")


def test_older_ones_that_cannot_be_removed_are_told_and_the_save_counts(directory, caplog):
    checkpoints = Checkpoints(directory, keep=1)
    checkpoints.save(1, b"weights")
    with watching(before=Broken("rename", 0, errno.EACCES)):
        checkpoints.save(2, b"weights")

    assert checkpoints.latest().step == 2
    assert caplog.messages == ["older checkpoints stay: [Errno 13] Permission denied"]
    checkpoints.save(3, b"weights")
    assert steps(directory) == [3]


def test_a_background_save_that_fails_is_warned_of_and_the_next_one_works(directory, caplog):
    checkpoints = Checkpoints(directory)
    directory.mkdir()
    with watching(before=Broken("fsync", 0, errno.EIO)):
        checkpoints.save(1, b"weights", wait=False)
        with pytest.raises(SaveFailed, match="Input/output error"):
            checkpoints.wait()
    assert caplog.messages[0].startswith("step 1 is not saved: ")

    checkpoints.save(2, b"weights", wait=False)
    checkpoints.wait()
    assert checkpoints.latest().step == 2
    assert not (directory / "step-000000001").exists()


def test_a_part_that_others_know_of_stays_when_the_manifest_fails(directory):
    group = ranks(directory, 2)
    save_all(group, 1)
    group[0].save(2, state_of(0, 2))
    with (
        watching(before=Broken("fsync", 2, errno.EIO)),
        pytest.raises(SaveFailed, match=r"manifest\.json: Input/output error"),
    ):
        group[1].save(2, state_of(1, 2))
    assert steps(directory) == [1]

    group[0].save(3, state_of(0, 3))  # looks again, and completes it

    assert [each.latest().load() for each in ranks(directory, 2)] == [
        state_of(rank, 2) for rank in (0, 1)
    ]
