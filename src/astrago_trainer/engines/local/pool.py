"""The zygotes of an engine: processes from which supervisors of jobs are forked, faster than they would start.

With nothing to import there is one, of our own interpreter: it saves the start of that. With a framework there is one
for each environment that jobs use, and the job's own processes profit too. Each starts when the first job comes.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from pathlib import Path
from typing import Any

from astrago_trainer.engines.local.zygote import ask

Json = dict[str, Any]

_PACKAGES = str(Path(__file__).parents[3])
_START = (
    "import sys; sys.path.remove(''); sys.path.append({!r}); "
    "from astrago_trainer.engines.local.zygote import main; main()"
)


class Zygote:
    """One interpreter with modules imported, and what is known of it."""

    def __init__(self, programs: str, modules: str, place: Path) -> None:
        self.programs = programs
        self.modules = modules
        self.place = place
        self.trouble = ""
        """Why there is none, for good."""
        self.process: asyncio.subprocess.Process | None = None
        self.is_ready = False

    @property
    def interpreter(self) -> str:
        return f"{self.programs}/python"

    def as_setting(self) -> Json:
        """For the supervisors that are forked from it."""
        return {
            "programs": self.programs,
            "interpreter": self.interpreter,
            "modules": self.modules,
        }

    def memory(self) -> int:
        """Bytes that it holds: its share of what others use, too."""
        if self.process is None or self.process.returncode is not None:
            return 0
        try:
            text = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text(encoding="ascii")
        except OSError:
            return 0
        found = next(line for line in text.splitlines() if line.startswith("Pss:"))
        return int(found.split()[1]) * 1024


class WarmPool:
    """Whoever owns it closes it; the jobs go on."""

    def __init__(self, data: Path, modules: str, env: dict[str, str]) -> None:
        self._folder = data / "warm"
        self._modules = modules
        self._env = env
        self._zygotes: dict[str, Zygote] = {}
        self._starting: set[asyncio.Task[Zygote]] = set()

    def describe(self) -> list[Json]:
        """For people: what is held ready, and what it costs."""
        return [
            {
                "environment": each.programs,
                "modules": each.modules,
                "ready": each.is_ready,
                "trouble": each.trouble,
                "memory_bytes": each.memory(),
            }
            for each in self._zygotes.values()
        ]

    async def begin(self, programs: str, folder: str, settings: Json, errors: int) -> bool:
        """Whether a supervisor was forked. If not, the next one of this environment may find it ready."""
        zygote = self._zygotes.get(self._key(programs))
        if zygote is None:
            task = asyncio.create_task(self.warm_up(programs))
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)
            return False
        if not zygote.is_ready:
            return False
        if zygote.modules:
            settings = {**settings, "warm": zygote.as_setting()}
        request = {"folder": folder, "settings": settings}
        try:
            return await asyncio.to_thread(ask, str(zygote.place), request, errors)
        except OSError:  # it has died: this job starts cold, and so does the next
            del self._zygotes[self._key(programs)]
            return False

    def for_queue(self, programs: str) -> Json | None:
        """How the scheduler can have a job of this environment forked later; None where there is nothing to gain."""
        zygote = self._zygotes.get(self._key(programs))
        if zygote is None or not zygote.is_ready or not zygote.modules:
            return None
        return {"address": str(zygote.place), "warm": zygote.as_setting()}

    def _key(self, programs: str) -> str:
        return programs if self._modules else str(Path(sys.executable).parent)

    async def warm_up(self, programs: str = "") -> Zygote:
        """Returns when it is ready, or known not to be."""
        programs = self._key(programs)
        key = hashlib.sha256(f"{programs}\n{self._modules}".encode()).hexdigest()[:16]
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = self._folder / key
        zygote = self._zygotes[programs] = Zygote(programs, self._modules, place)
        start = _START.format(_PACKAGES)
        options = () if self._modules else ("-S",)  # our own code needs no packages
        try:
            zygote.process = await asyncio.create_subprocess_exec(
                *(zygote.interpreter, *options, "-c", start, str(place), self._modules),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._env,
                cwd="/",
            )
        except OSError as error:
            zygote.trouble = f"{zygote.interpreter}: {error.strerror}"
            return zygote
        assert zygote.process.stdout is not None
        assert zygote.process.stderr is not None
        zygote.is_ready = await zygote.process.stdout.readline() == b"ready\n"
        if not zygote.is_ready:
            said = (await zygote.process.stderr.read()).decode("utf-8", "replace").strip()
            zygote.trouble = said.splitlines()[-1] if said else "it ended without a word"
        return zygote

    async def close(self) -> None:
        for task in self._starting:
            task.cancel()
        for zygote in self._zygotes.values():
            if zygote.process is not None and zygote.process.returncode is None:
                zygote.process.kill()
                await zygote.process.wait()
        self._zygotes.clear()
