"""The form of a new job: filled by mouse and by keyboard, previewed, kept, cloned, told again, and run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from astrago_trainer.client import TrainerClient
from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.core.spec import parse_job_spec
from astrago_trainer.manifests import parse_documents
from tests.server.hostile import STRINGS
from tests.server.serving import Process, a_process, a_request
from tests.web.site import PATIENCE, Site, a_window

expect.set_options(timeout=PATIENCE * 1000)

TWO_NODES = "import os\nprint('> rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], os.environ['WORD'])\n"
FINE = "No problems: this will be accepted."


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Process]:
    """One server for all tests of this file; each has its own namespace or names."""
    with a_process(tmp_path_factory.mktemp("new") / "data") as process:
        yield process


@pytest.fixture
def site(browser, running) -> Iterator[Site]:
    with a_window(browser, running.address) as found:
        # A form that is being filled in is refused again and again; Chromium tells the console.
        found.expected = ("status of 422",)
        yield found


def _client(site: Site, namespace: str = "team") -> TrainerClient:
    return TrainerClient(site.address, site.token or None, namespace=namespace)


def _field(page: Page, path: str) -> Locator:
    return page.locator(f'[id="field-{path}"]')


def _open(site: Site, path: str = "/new") -> Page:
    page = site.open(path)
    expect(page.get_by_text(FINE)).to_be_visible()
    return page


def _write(page: Page, path: str, text: str) -> None:
    """Replaces what is in an editor, as a person pastes."""
    content = _field(page, path).locator(".cm-content")
    content.click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)


def _spec(site: Site, name: str, namespace: str = "team") -> dict[str, Any]:
    found: dict[str, Any] = site.api("GET", f"/namespaces/{namespace}/jobs/{name}/manifest")["spec"]
    return found


def _ended(site: Site, name: str, namespace: str = "team") -> str:
    client = _client(site, namespace)
    assert client.wait(name, timeout_seconds=120).phase == "Complete", client.explain(name)
    said = sorted(line.text for line in client.logs(name) if line.text.startswith("> "))
    return "\n".join(line.removeprefix("> ") for line in said)


@pytest.mark.req("M37", "M83")
def test_a_job_of_two_nodes_is_filled_in_by_mouse_and_runs(site):
    page = _open(site)
    _field(page, "name").fill("by-mouse")
    _field(page, "namespace").fill("team")
    page.get_by_text("Multi node", exact=True).click()
    expect(_field(page, "nodes")).to_have_value("2")
    page.get_by_role("button", name="Resource preset").click()
    page.get_by_role("option", name=re.compile("^Small: 1 GPU, 4 CPU, 16Gi")).click()
    expect(_field(page, "resources.gpus")).to_have_value("1")
    expect(_field(page, "resources.memory.limit")).to_have_value("16")
    for path, value in (("gpus", "0"), ("cpu.limit", "0.1"), ("memory.limit", "0.25")):
        _field(page, f"resources.{path}").fill(value)
    expect(
        page.get_by_role("button", name=re.compile("Custom.*preset|preset.*Custom"))
    ).to_be_visible()
    _write(page, "code.inline", TWO_NODES)
    page.get_by_role("button", name="Add a variable").click()
    _field(page, "env[0].name").fill("WORD")
    _field(page, "env[0].value").fill("it's “$HOME” & <b>")
    expect(page.get_by_text("All 2 pods fit now.")).to_be_visible()

    lines = page.get_by_role("listbox", name="Effective objects")
    nodes = lines.get_by_role("option", name=re.compile('you value: "it'))
    nodes.hover()
    told = page.get_by_text(re.compile(r"set by you: env\[0\]\.value"))
    expect(told).to_be_visible()
    page.get_by_role("button", name="Go to the field").click()
    expect(_field(page, "env[0].value")).to_be_focused()

    expect(page.get_by_text(FINE)).to_be_visible()
    # Twice, as impatient people do: it is one job.
    page.get_by_role("button", name="Start the job").dblclick()
    expect(page).to_have_url(f"{site.address}/jobs/team/by-mouse")
    text = _ended(site, "by-mouse")
    assert text == "rank 0 of 2 it's “$HOME” & <b>\nrank 1 of 2 it's “$HOME” & <b>"
    assert len(site.api("GET", "/namespaces/team/jobs?q=by-mouse")["items"]) == 1
    site.open("/new")
    expect(_field(page, "name")).to_have_value("")  # the draft has gone with the job


def _tab_to(page: Page, target: str) -> None:
    """Presses Tab until the element of this id has the keyboard, or something inside of it."""
    is_there = (
        "(id) => { const it = document.getElementById(id);"
        " return it !== null && it.contains(document.activeElement); }"
    )
    for _ in range(150):
        if page.evaluate(is_there, target):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{target} is not reached by Tab")


def test_the_keyboard_alone_is_enough(site):
    page = _open(site)
    keys = page.keyboard
    _tab_to(page, "field-name")
    keys.type("by-keyboard")
    _tab_to(page, "field-namespace")
    keys.press("ControlOrMeta+a")
    keys.type("team")
    keys.press("Tab")  # the type
    keys.press("Tab")  # single or multi
    keys.press("ArrowLeft")
    expect(page.get_by_role("radio", name="Single node")).to_be_checked()
    keys.press("ArrowRight")
    expect(page.get_by_role("radio", name="Multi node")).to_be_checked()
    _tab_to(page, "field-nodes")
    expect(_field(page, "nodes")).to_have_value("2")
    for path, value in (("resources.cpu.limit", "0.1"), ("resources.memory.limit", "0.25")):
        _tab_to(page, f"field-{path}")
        keys.press("ControlOrMeta+a")
        keys.type(value)
    _tab_to(page, "field-code.inline")
    keys.press("ControlOrMeta+a")
    keys.insert_text("print('> hello')\n")
    _tab_to(page, "field-env")
    keys.press("Enter")
    keys.press("Shift+Tab")  # its remove button, then the value, the kind and the name
    for _ in range(3):
        keys.press("Shift+Tab")
    expect(_field(page, "env[0].name")).to_be_focused()
    keys.type("WORD")
    expect(page.get_by_text(FINE)).to_be_visible()
    lines = page.get_by_role("listbox", name="Effective objects")
    for _ in range(80):
        keys.press("Tab")
        if lines.evaluate("(list) => list === document.activeElement"):
            break
    keys.press("End")
    keys.press("ArrowUp")
    expect(page.get_by_text(re.compile("^Line [0-9]+, set by"))).to_be_visible()
    for _ in range(20):
        keys.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Start the job":
            break
    keys.press("Enter")
    expect(page).to_have_url(f"{site.address}/jobs/team/by-keyboard")
    assert _ended(site, "by-keyboard") == "hello\nhello"
    assert _spec(site, "by-keyboard")["env"][0]["name"] == "WORD"


def test_every_problem_leads_to_its_field_and_is_told_there(site):
    page = _open(site)
    page.get_by_role("button", name="Add a variable").click()
    _field(page, "env[0].name").fill("no name")
    page.locator("summary", has_text="More").click()
    page.get_by_role("button", name="Add an entry").nth(1).click()
    page.get_by_role("textbox", name="Key").fill("-bad-")
    page.locator("summary", has_text="More").click()
    problems = page.get_by_role("region", name="Problems")
    expect(problems.get_by_text("2 problems to solve")).to_be_visible()
    problems.get_by_role("button", name="env[0].name").click()
    name = _field(page, "env[0].name")
    expect(name).to_be_focused()
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(name).to_have_accessible_description(
        re.compile("must hold only letters, digits and '_'")
    )
    problems.get_by_role("button", name="labels.-bad-").click()
    expect(_field(page, "labels.-bad-")).to_be_focused()
    expect(_field(page, "labels.-bad-")).to_be_in_viewport()
    page.get_by_role("button", name="Start the job").click()
    expect(page.get_by_role("alert").get_by_text("2 problems")).to_be_visible()
    expect(name).to_have_value("no name")
    page.get_by_role("button", name="Remove variable 1").click()
    page.get_by_role("button", name="Remove entry 1").click()
    expect(page.get_by_text(FINE)).to_be_visible()


def test_images_of_earlier_jobs_of_the_namespace_are_offered(site):
    for name, image in (("first", "x/train:1"), ("second", "x/train:2")):
        body = a_request(name=name, image=image, nodes=1, suspend=True)
        site.api("POST", "/namespaces/imaging/jobs", body)
    page = _open(site)
    page.get_by_text("Custom", exact=True).last.click()
    expect(page.get_by_text("No image was used here yet.")).to_be_visible()
    _field(page, "namespace").fill("imaging")
    page.get_by_role("button", name="Container image").click()
    page.get_by_role("option", name="x/train:1").click()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    _field(page, "name").press_sequentially("letters")
    expect(page.get_by_role("option", name=re.compile("letters-progress")).first).to_be_attached()
    assert any(url.endswith("jobs:preview") for url in asked)
    assert not any(url.endswith("/images") for url in asked)
    _field(page, "namespace").fill("team")  # nothing of this is kept for the next one


def test_a_draft_survives_a_reload_until_the_form_is_reset(site):
    page = _open(site)
    _field(page, "name").fill("kept")
    page.get_by_text("TensorFlow", exact=True).click()
    _write(page, "code.inline", "print('kept')\n")
    # Asked from outside: the page's own policy forbids to evaluate text in it, as `wait_for_function` does.
    stored = "() => Object.values(localStorage).some((text) => text.includes(\"print('kept')\"))"
    deadline = time.monotonic() + PATIENCE
    while not page.evaluate(stored):
        assert time.monotonic() < deadline, "the draft is not stored"
        page.wait_for_timeout(50)
    page.reload()
    expect(_field(page, "name")).to_have_value("kept")
    expect(page.get_by_role("radio", name="TensorFlow")).to_be_checked()
    expect(_field(page, "code.inline").locator(".cm-content")).to_contain_text("print('kept')")
    page.get_by_role("button", name="Reset", exact=True).click()
    page.get_by_role("alertdialog").get_by_role("button", name="Reset", exact=True).click()
    expect(_field(page, "name")).to_have_value("")
    page.reload()
    expect(page.get_by_role("radio", name="PyTorch")).to_be_checked()
    expect(_field(page, "name")).to_have_value("")


@pytest.fixture
def korean(browser, running) -> Iterator[Site]:
    with a_window(browser, running.address, locale="ko-KR") as found:
        found.expected = ("status of 422",)
        yield found


@pytest.mark.req("M37", "M83", "M137", "M141")
def test_the_korean_form_has_the_labels_of_the_mock_up(korean):
    page = korean.open("/new")
    for label in (
        "분산 학습 타입",
        "분산학습 노드 개수",
        "자원 프리셋",
        "GPU",
        "CPU 한도",
        "메모리 한도",
    ):
        expect(page.get_by_text(label, exact=True).first).to_be_visible()
    expect(
        page.get_by_text("이미지 주소: pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime")
    ).to_be_visible()
    for section in ("커맨드", "환경변수", "볼륨 마운트"):
        expect(page.get_by_role("heading", name=section, exact=True)).to_be_visible()
    for button in ("초기화", "설정 저장", "작업 시작"):
        expect(page.get_by_role("button", name=button, exact=True)).to_be_visible()
    page.get_by_text("이름으로 입력", exact=True).click()
    expect(page.get_by_label("이미지 주소", exact=True)).to_be_visible()
    page.get_by_text("셸 커맨드", exact=True).click()
    # While it is empty, its name goes on with what is wrong.
    expect(page.get_by_role("textbox", name=re.compile("^커맨드"))).to_be_visible()


ONE_MACHINE = ("2", "0", "1", "1")
MOCK_UP = ("2", "1", "4", "32")


def _expect_sizes(page: Page, sizes: tuple[str, ...]) -> None:
    """Nodes, and of each its GPUs, cores and GiB."""
    paths = ("nodes", "resources.gpus", "resources.cpu.limit", "resources.memory.limit")
    for path, size in zip(paths, sizes, strict=True):
        expect(_field(page, path)).to_have_value(size)


@pytest.mark.req("M141")
def test_a_reset_returns_to_the_values_of_the_beginning(korean):
    page = korean.open("/new")
    reset = page.get_by_role("button", name="초기화", exact=True)
    expect(reset).to_be_disabled()  # nothing was entered yet
    _expect_sizes(page, ONE_MACHINE)
    page.get_by_role("button", name="자원 프리셋").click()
    page.get_by_role("option", name="기본: GPU 1개, CPU 4, 32Gi").click()
    _expect_sizes(page, MOCK_UP)
    _field(page, "name").fill("typed")
    reset.click()
    dialog = page.get_by_role("alertdialog", name="입력한 내용을 초기화할까요?")
    dialog.get_by_role("button", name="초기화", exact=True).click()
    expect(_field(page, "name")).to_have_value("")
    _expect_sizes(page, ONE_MACHINE)
    expect(reset).to_be_disabled()


@pytest.mark.req("M141")
def test_on_a_cluster_the_form_begins_with_the_values_of_the_mock_up(korean):
    def as_on_a_cluster(route: Route) -> None:
        # The page takes its defaults from the name of the engine alone; a cluster would add nothing here.
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "engine": "kubernetes"})

    korean.page.route("**/api/v1/whoami", as_on_a_cluster)
    page = korean.open("/new")
    expect(page.get_by_role("radio", name="다중 노드")).to_be_checked()
    _expect_sizes(page, MOCK_UP)
    expect(page.get_by_role("button", name="자원 프리셋")).to_contain_text(
        "기본: GPU 1개, CPU 4, 32Gi"
    )
    expect(page.get_by_text("노드 2개 × GPU 1개, CPU 4, 32Gi")).to_be_visible()


@pytest.mark.req("M83", "M141")
def test_saved_settings_are_a_job_that_starts_when_it_is_resumed(korean):
    page = korean.open("/new")
    _field(page, "name").fill("saved")
    _field(page, "namespace").fill("team")
    for path, value in (("cpu.limit", "0.1"), ("memory.limit", "0.25")):
        _field(page, f"resources.{path}").fill(value)
    expect(page.get_by_text("문제가 없습니다. 제출할 수 있습니다.")).to_be_visible()
    page.get_by_role("button", name="설정 저장", exact=True).dblclick()
    expect(page).to_have_url(f"{korean.address}/jobs/team/saved")
    expect(page.get_by_text("saved 설정을 저장했습니다.")).to_be_visible()
    expect(page.get_by_role("button", name="재개", exact=True)).to_be_visible()
    assert _spec(korean, "saved")["suspend"] is True
    assert len(korean.api("GET", "/namespaces/team/jobs?q=saved")["items"]) == 1
    page.get_by_role("button", name="재개", exact=True).click()
    page.get_by_role("alertdialog").get_by_role("button", name="재개", exact=True).click()
    client = _client(korean)
    assert client.wait("saved", timeout_seconds=120).phase == "Complete", client.explain("saved")


@pytest.mark.req("M83")
def test_horovod_has_a_panel_for_its_launcher_and_one_for_its_workers(site):
    page = _open(site)
    page.get_by_text("Horovod", exact=True).click()
    page.get_by_text("Multi node", exact=True).click()
    _field(page, "nodes").fill("3")
    _field(page, "launcher.cpu.limit").fill("0.5")
    _field(page, "launcher.memory.limit").fill("1")
    page.get_by_role("button", name=re.compile("Pod of .*Part|Part.*Pod of")).click()
    expect(page.get_by_role("option", name="Pod of “launcher”")).to_be_visible()
    page.get_by_role("option", name="Pod of “node”").click()
    page.get_by_role("tab", name="Copy as").click()
    page.get_by_role("tab", name="curl", exact=True).click()
    text = page.get_by_role("region", name="Text to copy")
    expect(text).to_contain_text('"launcher"')
    body = json.loads((text.text_content() or "").partition("<<'EOF'\n")[2].rpartition("EOF")[0])
    assert body["launcher"] == {"cpu": "0.5", "memory": "1Gi"}
    assert (body["framework"], body["nodes"]) == ("horovod", 3)


def test_a_runtime_is_chosen_by_the_address(site):
    page = _open(site, "/new?runtime=tensorflow-runtime")
    expect(page.get_by_role("radio", name="TensorFlow")).to_be_checked()
    expect(_field(page, "runtime")).to_contain_text("tensorflow-runtime")


def test_a_clone_begins_as_the_old_job_and_marks_what_differs(site):
    request = a_request(
        name="old",
        nodes=1,
        env=[{"name": "WORD", "value": "two\nlines"}],
        labels={"tier": "x"},
        max_restarts=1,
        code={"files": {"train.py": "print('hello')\n", "other.py": ""}},
    )
    site.api("POST", "/namespaces/team/jobs", request)
    page = _open(site, "/new?from=old&namespace=team")
    expect(page.get_by_role("heading", level=1, name="Clone of old")).to_be_visible()
    expect(page.get_by_text("Nothing changed yet")).to_be_visible()
    _field(page, "max_restarts").fill("2")
    _field(page, "env[0].value").fill("other")
    expect(page.get_by_text("2 fields differ from the original")).to_be_visible()
    expect(page.get_by_text(re.compile("^Changed"))).to_have_count(2)
    expect(page.get_by_text("Changed; it was 1")).to_be_visible()
    page.get_by_role("button", name="Reset this field").first.click()
    expect(page.get_by_text("1 field differs from the original")).to_be_visible()
    expect(_field(page, "env[0].value")).to_have_value("two\nlines")
    expect(page.get_by_text(FINE)).to_be_visible()
    page.get_by_role("button", name="Start the job").click()
    page.wait_for_url(re.compile(r"/jobs/team/(?!old$)[a-z0-9-]+$"))
    made = page.url.rpartition("/")[2]
    old, new = _spec(site, "old"), _spec(site, made)
    assert new["max_restarts"] == 2
    same = {"env", "labels", "code", "resources", "framework"}
    assert {key: new[key] for key in same} == {key: old[key] for key in same}
    job = site.api("GET", f"/namespaces/team/jobs/{made}")
    assert job["cloned_from"]["name"] == "old"


def test_a_clone_is_made_though_its_original_is_deleted_meanwhile(site):
    jobs = "/namespaces/meanwhile/jobs"
    site.submit("meanwhile", name="original", nodes=1)
    page = _open(site, "/new?from=original&namespace=meanwhile")
    _field(page, "name").fill("copy")
    expect(page.get_by_text(FINE)).to_be_visible()
    site.api("DELETE", f"{jobs}/original")
    until = time.monotonic() + PATIENCE
    while site.api("GET", jobs)["items"]:
        assert time.monotonic() < until
    site.expected += ("status of 422",)
    page.get_by_role("button", name="Start the job").click()
    page.wait_for_url(f"{site.address}/jobs/meanwhile/copy")
    assert site.api("GET", f"{jobs}/copy")["cloned_from"] is None


def test_a_lost_answer_keeps_the_input_and_a_second_try_is_the_same_job(site):
    site.expected += ("ERR_FAILED",)
    page = _open(site)
    _field(page, "namespace").fill("again")
    _field(page, "max_restarts").fill("1")
    expect(page.get_by_text(FINE)).to_be_visible()
    keys: list[str] = []

    def lose(route, request):
        keys.append(request.headers["idempotency-key"])
        route.fetch()  # the server has it; the answer is lost
        route.abort()

    page.route("**/namespaces/again/jobs", lose)
    page.get_by_role("button", name="Start the job").click()
    expect(page.get_by_role("alert").get_by_text("The server does not answer")).to_be_visible()
    expect(_field(page, "max_restarts")).to_have_value("1")
    page.unroute("**/namespaces/again/jobs")
    page.reload()  # the draft has the key, too
    expect(_field(page, "max_restarts")).to_have_value("1")
    expect(_field(page, "namespace")).to_have_value("again")
    expect(page.get_by_text(FINE)).to_be_visible()
    page.on("request", lambda sent: keys.append(sent.headers.get("idempotency-key", "")))
    page.get_by_role("button", name="Start the job").click()
    page.wait_for_url("**/jobs/again/*")
    assert [each for each in keys if each] == [keys[0]] * 2
    assert len(site.api("GET", "/namespaces/again/jobs")["items"]) == 1


def _drop(page: Page, target: Locator, path: Path) -> None:
    """As from a file manager: a page cannot make such an event itself."""
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    assert box is not None
    session = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send(
            "Input.dispatchDragEvent",
            {
                "type": kind,
                "x": box["x"] + box["width"] / 2,
                "y": box["y"] + box["height"] / 2,
                "data": {"items": [], "files": [str(path)], "dragOperationsMask": 1},
            },
        )


def test_files_are_chosen_or_dropped_edited_and_run(site, tmp_path):
    page = _open(site)
    _field(page, "name").fill("uploaded")
    _field(page, "namespace").fill("team")
    page.get_by_text("Upload files", exact=True).click()
    main, picture = tmp_path / "main.py", tmp_path / "picture.png"
    main.write_text("import part\nprint('>', part.WORD)\n")
    picture.write_bytes(b"\x89PNG\xff\xfe")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    chooser.value.set_files([main, picture])
    expect(page.get_by_text("Not added, because they are not text or too large")).to_contain_text(
        "picture.png"
    )
    expect(_field(page, "code.entrypoint")).to_contain_text("main.py")
    (tmp_path / "part.py").write_text("WORD = 'x'\n")
    _drop(page, page.get_by_text("Drop files or a folder here"), tmp_path / "part.py")
    page.get_by_role("button", name="Edit part.py").click()
    _write(page, "code.files[1]", "WORD = 'edited'\n")
    for path, value in (("cpu.limit", "0.1"), ("memory.limit", "0.25")):
        _field(page, f"resources.{path}").fill(value)
    expect(page.get_by_text(FINE)).to_be_visible()
    page.get_by_role("button", name="Start the job").click()
    expect(page).to_have_url(f"{site.address}/jobs/team/uploaded")
    assert _ended(site, "uploaded") == "edited\nedited"


def test_the_sample_trains_on_two_nodes(site):
    page = _open(site)
    page.get_by_role("button", name="Fill in the sample").click()
    _field(page, "name").fill("sample")
    _field(page, "namespace").fill("team")
    _field(page, "env[0].value").fill("4")
    expect(page.get_by_text(FINE)).to_be_visible()
    page.get_by_role("button", name="Start the job").click()
    expect(page).to_have_url(f"{site.address}/jobs/team/sample")
    _ended(site, "sample")
    text = "\n".join(sorted(line.text for line in _client(site).logs("sample")))
    learned = re.findall(r"node ([01]) learned y = ([-0-9.]+)x \+ ([-0-9.]+)", text)
    assert [(node, float(a), float(b)) for node, a, b in learned] == [
        ("0", pytest.approx(3, abs=0.2), pytest.approx(2, abs=0.2)),
        ("1", pytest.approx(3, abs=0.2), pytest.approx(2, abs=0.2)),
    ]
    losses = [point.value for point in _client(site).metrics("sample")["loss"]]
    assert losses[-1] < losses[0] / 10


def _pasted(page: Page, form: str) -> str:
    page.get_by_role("tab", name=form, exact=True).click()
    panel = page.get_by_role("tabpanel", name=form, exact=True)
    panel.get_by_role("button", name="Copy", exact=True).click()
    expect(panel.get_by_role("button", name="Copied")).to_be_visible()
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def _run(command: list[str], text: str, site: Site, home: Path) -> str:
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "ASTRAGO_TOKEN": site.token,
        **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
    }
    done = subprocess.run(
        command, input=text, env=environment, capture_output=True, text=True, timeout=120, cwd=home
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_copy_works_when_it_is_pasted(guarded, tmp_path):
    """On a server that wants tokens: the texts have none, and take the reader's."""
    site = guarded
    site.expected = ("status of 401", "status of 422", "status of 404")
    site.api("POST", "/tenants", {"namespace": "team"})
    page = site.open("/new")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_label("Token").fill(site.token)
    page.get_by_role("button", name="Sign in").click()
    _field(page, "namespace").fill("team")
    page.get_by_text("Multi node", exact=True).click()
    for path, value in (("cpu.limit", "0.1"), ("memory.limit", "0.25")):
        _field(page, f"resources.{path}").fill(value)
    hostile = '\'; touch pasted; echo "$(id)" `id` \\ EOF ${HOME} 한국어 !!'
    _write(
        page,
        "code.inline",
        f"import os\nfor line in os.environ['WORD'].split('\\n'): print('>', line)\nEOF = {hostile!r}\n",
    )
    page.get_by_role("button", name="Add a variable").click()
    _field(page, "env[0].name").fill("WORD")
    _field(page, "env[0].value").fill(f"{hostile}\nEOF\n{hostile}")
    page.get_by_role("tab", name="Copy as").click()

    specs = []
    for form, name, command in (
        ("Command line", "by-cli", ["bash"]),
        ("curl", "by-curl", ["bash"]),
        ("Python", "by-python", [sys.executable, "-"]),
    ):
        _field(page, "name").fill(name)
        page.get_by_role("tab", name=form, exact=True).click()
        expect(page.get_by_role("region", name="Text to copy")).to_contain_text(name)
        text = _pasted(page, form)
        assert site.token not in text
        _run(command, text, site, tmp_path)
        spec = _spec(site, name)
        assert spec.pop("name") == name
        specs.append(spec)
        assert _ended(site, name) == "\n".join(sorted([hostile, "EOF", hostile] * 2))
    assert specs[0] == specs[1] == specs[2]
    assert specs[0]["nodes"] == 2
    assert not (tmp_path / "pasted").exists()

    page.get_by_role("tab", name="TrainJob YAML").click()
    expect(page.get_by_role("region", name="Text to copy")).to_contain_text("kind: TrainJob")
    text = _pasted(page, "TrainJob YAML")
    apply = ["astrago", "apply", "--server", site.address, "--namespace", "team", "-f", "-"]
    _run(apply, text.replace("name: by-python", "name: by-trainjob"), site, tmp_path)
    assert _ended(site, "by-trainjob") == "\n".join(sorted([hostile, "EOF", hostile] * 2))
    documents = parse_documents(text.encode(), "pasted")
    applied = site.api("GET", "/namespaces/team/jobs/by-python/manifest")
    assert documents[-1]["spec"] == applied["objects"][-1]["spec"]
    shown = json.loads(_run(["astrago", "preview", "-f", "-", "-o", "json"], text, site, tmp_path))
    previewed = site.api("POST", "/namespaces/team/jobs:preview", {**specs[0], "name": "by-python"})
    assert shown["objects"] == previewed["objects"]


def test_whatever_is_typed_is_shown_as_it_is_and_never_run(site):
    """The shared list of strings that want to be more than text; `site` fails for a dialog or a report."""
    carried = []
    for text in STRINGS:
        try:
            parse_job_spec(
                {"user": "u", "namespace": "n", **a_request(env=[{"name": "A", "value": text}])}
            )
            carried.append(text)
        except InvalidRequest:  # half of a character, or NUL
            continue
    assert len(carried) > 290
    thirds = [carried[start::3] for start in range(3)]
    site.submit(
        name="hostile",
        env=[{"name": f"E{number}", "value": text} for number, text in enumerate(thirds[0])],
        args=thirds[1],
        annotations={f"example.org/a{number}": text for number, text in enumerate(thirds[2])},
        code={"inline": "\n".join(carried)},
        suspend=True,
    )
    page = _open(site, "/new?from=hostile&namespace=team&plan=copy&as=python")
    shown = page.evaluate("[...document.querySelectorAll('textarea')].map((each) => each.value)")
    # A textarea has one kind of line end; the form keeps the others until somebody types there.
    expected = [
        re.sub("\r\n?", "\n", text) for third in (thirds[1], thirds[0], thirds[2]) for text in third
    ]
    assert shown == expected
    text = page.get_by_role("region", name="Text to copy").locator("pre").text_content() or ""
    seen: dict[str, Any] = {}
    exec(  # the same text is run by Python here, against a recorder
        compile(
            text.replace("from astrago_trainer.client import TrainerClient", ""), "pasted", "exec"
        ),
        {"TrainerClient": lambda *_, **__: _Recorder(seen), "print": lambda *_: None},
    )
    assert [each["value"] for each in seen["env"]] == thirds[0]
    assert seen["args"] == thirds[1]
    assert list(seen["annotations"].values()) == thirds[2]
    assert seen["code"]["inline"] == "\n".join(carried)
    page.get_by_role("tab", name="Effective pods").click()
    expect(page.get_by_role("option", name="E0", exact=False).first).to_be_visible()

    page = _open(site)
    page.get_by_text("A shell command", exact=True).click()
    for text in (each for each in STRINGS if "<" in each or "`" in each):
        line = re.sub("[\r\n\0\ud800-\udfff]", "", text)
        _field(page, "name").fill(line)
        expect(_field(page, "name")).to_have_value(line)
    _write(page, "command", "\n".join(carried))
    expect(
        page.get_by_role("region", name="Problems").get_by_role("button", name="name")
    ).to_be_visible()


class _Recorder:
    name = phase = ""

    def __init__(self, seen: dict[str, Any]) -> None:
        self._seen = seen

    def submit(self, body: dict[str, Any]) -> _Recorder:
        self._seen.update(body)
        return self


def test_a_phone_in_korean_has_everything_and_axe_finds_nothing_serious(browser, running):
    with a_window(browser, running.address) as site:
        site.expected = ("status of 422",)
        page = site.page
        page.set_viewport_size({"width": 390, "height": 844})
        page.add_init_script("localStorage.setItem('astrago.language', 'ko')")
        site.open("/new")
        expect(page.get_by_text("문제가 없습니다. 제출할 수 있습니다.")).to_be_visible()
        page.get_by_text("Horovod", exact=True).click()
        page.get_by_text("다중 노드", exact=True).click()
        expect(page.get_by_role("heading", name="런처")).to_be_visible()
        page.locator("summary", has_text="추가 설정").click()
        for name in ("변수 추가", "볼륨 추가", "톨러레이션 추가"):
            page.get_by_role("button", name=name).click()
        expect(page.get_by_text(re.compile("해결할 문제")).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        words = page.locator("main").inner_text()
        untranslated = re.findall(r"\b(?:the|of each|Add|Remove|Where|fits?|your)\b", words)
        assert [each for each in untranslated if each not in ("the",)] == []
        assert site.axe() == []


def test_nothing_serious_for_axe_in_the_dark(site):
    """The light colours are looked at on the phone."""
    site.page.emulate_media(color_scheme="dark")
    page = _open(site, "/new?plan=copy")
    expect(page.get_by_role("region", name="Text to copy")).to_be_visible()
    page.get_by_role("button", name="Add a volume").click()
    page.get_by_text("A shell command", exact=True).click()
    expect(page.get_by_text(re.compile("problems to solve")).first).to_be_visible()
    assert site.axe() == []
