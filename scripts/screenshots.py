"""`make screenshots`: every page in both languages, both colours and two widths, of a real server with jobs on it.

The pictures are in build/screenshots, as `jobs-en-light-1280.png`; `python -m scripts.screenshots jobs nodes` takes
some of them. The jobs are real processes: one learns, one was started again, one ran out of memory, one waits.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, sync_playwright
from tests.server.serving import a_process, bearer
from tests.web.chromium import FLAGS, chromium

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "screenshots"
LANGUAGES = {"en": "en-US", "ko": "ko-KR"}
COLOURS = ("light", "dark")
WIDTHS = {1280: 800, 390: 844}
PATIENCE = 120.0
TEAM, OTHER = "vision", "language"

# What a training prints is what people's trainings print; the numbers are those of a curve with noise.
LEARNS = """
import math, os, random, time
random.seed({seed})
rank = int(os.environ.get("PET_NODE_RANK", "0"))
total, pause = {total}, {pause}
print(f"rank {{rank}}: loading the data set", flush=True)
for step in range(1, total + 1):
    loss = 2.4 * math.exp(-3.2 * step / total) + 0.12 + random.gauss(0, 0.035)
    accuracy = 0.97 - 0.85 * math.exp(-3.6 * step / total) + random.gauss(0, 0.008)
    rate = 3e-4 * (1 - step / total)
    print(f"step {{step}}/{{total}} loss {{loss:.4f}} accuracy {{accuracy:.4f}} lr {{rate:.2e}}", flush=True)
    time.sleep(pause)
"""
# The second node dies once; whoever finds the mark is the second attempt.
STUMBLES = """
import os, pathlib, sys
mark = pathlib.Path(os.environ["MARK"])
if os.environ.get("PET_NODE_RANK") == "1" and not mark.exists():
    mark.touch()
    for step in range(1, 40):
        print(f"step {step}/600 loss {2.4 - step * 0.012:.4f}", flush=True)
    sys.exit("NCCL error: remote process exited or there was a network error")
"""
EATS = """
import time
print("loading the model", flush=True)
kept = []
for gigabyte in range(64):
    print(f"allocated {gigabyte * 64} MiB", flush=True)
    kept.append(bytearray(b"x") * (64 << 20))
    time.sleep(0.02)
"""


@dataclass(frozen=True)
class View:
    """One picture."""

    name: str
    path: str
    ready: Callable[[Page], Any]
    is_signed_in: bool = True
    is_whole: bool = False
    """Also what is below the window."""


def _text(words: str) -> Callable[[Page], Any]:
    return lambda page: page.get_by_text(words).first.wait_for()


def _selector(words: str) -> Callable[[Page], Any]:
    return lambda page: page.locator(words).first.wait_for()


JOB = f"/jobs/{TEAM}/resnet50-imagenet"
VIEWS = (
    View("sign-in", "/jobs", _selector("input[type=password]"), is_signed_in=False),
    View("jobs", "/jobs", _selector("[role=row] svg path[d^=M]")),
    View("jobs-none", "/jobs?q=nothing-is-called-so", _selector("main h2")),
    View("new", "/new", _selector("main form, main input"), is_whole=True),
    View("job", JOB, _text("resnet50-imagenet"), is_whole=True),
    View("job-logs", f"{JOB}?tab=logs", _text("step 1/")),
    View("job-metrics", f"{JOB}?tab=metrics", _selector("canvas")),
    View("job-pods", f"{JOB}?tab=pods", _selector("[role=tabpanel] table")),
    View("job-events", f"{JOB}?tab=events", _selector("[role=tabpanel]")),
    View("job-spec", f"{JOB}?tab=spec", _selector("[role=tabpanel]")),
    View("job-failed", f"/jobs/{TEAM}/bert-large-finetune", _text("bert-large-finetune")),
    View("job-restarted", f"/jobs/{OTHER}/t5-summarise", _text("t5-summarise")),
    View("nodes", "/nodes", _selector("main [role=progressbar]")),
    View("runtimes", "/runtimes", _text("pytorch-simple")),
    View("runtime", "/runtimes/horovod-runtime", _text("OpenMPI"), is_whole=True),
    View("admin-tenants", f"/admin/tenants?namespace={TEAM}", _text("jisoo")),
    View("admin-users", "/admin/users", _text("jisoo")),
    View("admin-tokens", "/admin/tokens", _selector("main table")),
    View("admin-audit", "/admin/audit", _selector("main table")),
)


def main(names: list[str]) -> int:
    wanted = [each for each in VIEWS if not names or each.name in names]
    if unknown := set(names) - {each.name for each in VIEWS}:
        print(f"screenshots: there is no view {', '.join(sorted(unknown))}; there are "
              f"{', '.join(each.name for each in VIEWS)}.", file=sys.stderr)  # fmt: skip
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="astrago-pictures-") as folder:
        data = Path(folder) / "data"
        with (
            a_process(data, ASTRAGO_AUTH="tokens", ASTRAGO_SIGNUP="open") as server,
            sync_playwright() as playwright,
        ):
            token = (data / "admin-token").read_text().strip()
            _fill(_Client(server.address, token), Path(folder))
            browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
            for width, height in WIDTHS.items():
                for language in LANGUAGES:
                    for colour in COLOURS:
                        mark = f"{language}-{colour}-{width}"
                        with _window(
                            browser, server.address, language, colour, width, height
                        ) as page:
                            _take(page, wanted, mark, token)
                        print(mark, flush=True)
            browser.close()
            _end(_Client(server.address, token))
    return 0


def _end(client: _Client) -> None:
    """Jobs go on without their server: nothing may be left running."""
    deadline = time.monotonic() + PATIENCE
    while (
        jobs := client.ask("GET", "/namespaces/-/jobs")["items"]
    ) and time.monotonic() < deadline:
        for job in jobs:
            if not job["is_deleting"]:
                client.ask("DELETE", f"/namespaces/{job['namespace']}/jobs/{job['name']}")
        time.sleep(0.2)


def _take(page: Page, views: list[View], mark: str, token: str) -> None:
    signed_in = page.context.new_page()
    signed_in.add_init_script(f"sessionStorage.setItem('astrago.token', '{token}')")
    for view in views:
        page = signed_in if view.is_signed_in else page
        page.goto(view.path)
        try:
            view.ready(page)
        except Exception as error:  # one that is missing must not cost the others
            print(f"{view.name}-{mark}: {str(error).splitlines()[0]}", file=sys.stderr)
        page.evaluate("document.fonts.ready")
        page.wait_for_timeout(400)  # bars and plots move to where they belong
        page.screenshot(path=FOLDER / f"{view.name}-{mark}.png", full_page=view.is_whole)


@contextmanager
def _window(
    browser: Browser, address: str, language: str, colour: str, width: int, height: int
) -> Iterator[Page]:
    context = browser.new_context(
        base_url=address,
        locale=LANGUAGES[language],
        timezone_id="Asia/Seoul",
        color_scheme="dark" if colour == "dark" else "light",
        viewport={"width": width, "height": height},
        has_touch=width < 500,
    )
    context.set_default_timeout(15_000)
    yield context.new_page()
    context.close()


class _Client:
    def __init__(self, address: str, token: str) -> None:
        self._http = httpx.Client(base_url=f"{address}/api/v1", timeout=PATIENCE)
        self._token = token

    def ask(self, method: str, path: str, body: Any = None, token: str = "") -> Any:
        headers = bearer(token or self._token)
        answer = self._http.request(method, path, json=body, headers=headers)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def submit(self, token: str, namespace: str, name: str, code: str, **fields: Any) -> None:
        body = {
            "name": name,
            "framework": "pytorch",
            "nodes": 2,
            "resources": {"cpu": "100m", "memory": "128Mi"},
            "code": {"inline": code},
            **fields,
        }
        self.ask("POST", f"/namespaces/{namespace}/jobs", body, token)

    def wait(self, namespace: str, name: str, *phases: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while (job := self.ask("GET", f"/namespaces/{namespace}/jobs/{name}"))[
            "phase"
        ] not in phases:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{name} is {job['phase']} ({job['message']}), not {' or '.join(phases)}"
                )
            time.sleep(0.2)


def _fill(client: _Client, folder: Path) -> None:
    """People, and jobs in every state that somebody may look at."""
    tokens = {}
    for namespace, title in ((TEAM, "Vision team"), (OTHER, "Language team")):
        client.ask("POST", "/tenants", {"namespace": namespace, "title": title})
    people = {
        "jisoo": {TEAM: "administrator"},
        "minjun": {TEAM: "member", OTHER: "viewer"},
        "hana": {OTHER: "member"},
    }
    for name, roles in people.items():
        client.ask("POST", "/users", {"name": name})
        for namespace, role in roles.items():
            client.ask("PUT", f"/tenants/{namespace}/members/{name}", {"role": role})
        tokens[name] = client.ask("POST", "/tokens", {"user": name, "label": "laptop"})["secret"]
    client.ask("POST", "/tokens", {"label": "nightly pipeline", "seconds": 30 * 86400})

    quick = LEARNS.format(seed=3, total=120, pause=0)
    client.submit(tokens["jisoo"], TEAM, "mnist-baseline", quick, nodes=1)
    client.submit(tokens["hana"], OTHER, "tokenizer-check", quick, nodes=1)
    client.wait(TEAM, "mnist-baseline", "Complete")
    client.wait(OTHER, "tokenizer-check", "Complete")
    client.submit(tokens["minjun"], TEAM, "bert-large-finetune", EATS, nodes=1)
    client.wait(TEAM, "bert-large-finetune", "Failed")
    mark = str(folder / "mark")
    stumbling = STUMBLES + LEARNS.format(seed=5, total=600, pause=0.9)
    client.submit(
        tokens["hana"], OTHER, "t5-summarise", stumbling,
        env=[{"name": "MARK", "value": mark}], max_restarts=3,
    )  # fmt: skip
    client.submit(
        tokens["jisoo"], TEAM, "resnet50-imagenet", LEARNS.format(seed=7, total=900, pause=0.6)
    )
    client.submit(
        tokens["minjun"], TEAM, "vit-ablation", LEARNS.format(seed=9, total=500, pause=1.0), nodes=1
    )
    client.wait(TEAM, "vit-ablation", "Running")
    client.ask("POST", f"/namespaces/{TEAM}/jobs/vit-ablation:suspend")
    client.wait(TEAM, "vit-ablation", "Suspended")
    client.submit(
        tokens["jisoo"], TEAM, "unet-segmentation", quick, nodes=1,
        resources={"cpu": "1900m", "memory": "256Mi"},
    )  # fmt: skip
    client.wait(OTHER, "t5-summarise", "Running")
    client.wait(TEAM, "resnet50-imagenet", "Running")
    time.sleep(20)  # some of a curve to look at


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
