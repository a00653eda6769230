"""The catalogue: what each runtime sets, readable, and its manifest for who wants it."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.web.site import PATIENCE

expect.set_options(timeout=PATIENCE * 1000)


def test_a_runtime_says_what_it_sets(site):
    page = site.open("/runtimes")
    for each in site.api("GET", "/runtimes")["items"]:
        expect(page.get_by_role("link", name=each["name"], exact=True)).to_be_visible()
    page.get_by_role("link", name="horovod-runtime").click()
    whole = page.get_by_role("region", name="The whole job")
    for words in ("mpi", "runLauncherAsNode=true", "at most 3 times", "BlockingRecreate"):
        expect(whole).to_contain_text(words)
    launcher = page.get_by_role("region", name="Pods “launcher”")
    for words in (
        "Init container ssh-key",
        "busybox",
        "horovod/horovod",
        "emptyDir",
        "OMPI_ALLOW_RUN",
    ):
        expect(launcher).to_contain_text(words)
    manifest = page.get_by_text("kind: ClusterTrainingRuntime")
    expect(manifest).to_be_hidden()
    page.get_by_text("Manifest as YAML").click()
    expect(manifest).to_be_visible()
    expect(page.get_by_role("link", name="New job with this runtime")).to_have_attribute(
        "href", "/new?runtime=horovod-runtime"
    )


def test_a_runtime_that_is_not_there_says_which_are(site):
    site.expected = ("status of 404",)
    page = site.open("/runtimes/nothing")
    expect(page.get_by_role("alert")).to_contain_text("pytorch-simple")
