"""Where each rank runs, as the cluster has it; and what stays of that when the pods are gone."""

from __future__ import annotations

SLEEPS = "import time\nprint('begun', flush=True)\ntime.sleep(1000)\n"
INDEX = "batch.kubernetes.io/job-completion-index"


def told(person):
    return {each["rank"]: (each["node"], each["address"]) for each in person.client.pods("job")}


def there(person):
    return {
        int(pod["metadata"]["labels"][INDEX]): (pod["spec"]["nodeName"], pod["status"]["podIP"])
        for pod in person.space.list("pods")
    }


def test_the_place_of_a_rank_is_told_while_it_runs_and_after_its_pod_is_gone(ann):
    ann.submit(SLEEPS, name="job", nodes=2)
    ann.until("job", lambda job: job.phase == "Running")
    places = there(ann)
    assert places.keys() == {0, 1}
    assert len({address for _, address in places.values()}) == 2
    assert told(ann) == places
    ann.client.suspend("job")
    ann.until("job", lambda job: job.phase == "Suspended")
    ann.space.until_gone("pods")
    assert told(ann) == places
    ann.delete("job")


def test_the_place_of_a_rank_that_has_ended_outlives_its_trainjob(ann):
    ann.submit("print('hello')\n", name="job", nodes=2)
    assert ann.wait("job").has_succeeded
    places = there(ann)
    assert told(ann) == places
    ann.space.delete("trainjobs", "job")
    ann.space.until_gone("pods")
    assert told(ann) == places
