"""A client of the REST API, with the standard library alone: create a job, wait, read its logs, delete it.

python3 samples/backend/client.py http://127.0.0.1:8000 [TOKEN]
"""

import json
import sys
import time
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen


class TrainJobs:
    def __init__(self, server, token=""):
        self.url = f"{server}/api/trainjob"
        self.headers = {"Content-Type": "application/json"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"

    def create(self, body, key):
        """The same key and body again give the first answer: a retry never starts a second job."""
        return self._call("POST", "/create", body, {"Idempotency-Key": key})

    def status(self, name, namespace):
        return self._call("GET", f"/{name}/status?{urlencode({'namespace': namespace})}")

    def logs(self, name, namespace, worker=0):
        query = urlencode({"namespace": namespace, "worker": worker})
        return self._call("GET", f"/{name}/logs?{query}")["logs"]

    def delete(self, name, namespace):
        return self._call("DELETE", f"/{name}?{urlencode({'namespace': namespace})}")

    def wait(self, name, namespace):
        while (job := self.status(name, namespace))["state"] == "Running":
            time.sleep(1)
        return job

    def _call(self, method, path, body=None, headers=None):
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, {**self.headers, **(headers or {})}, method=method)
        try:
            with urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except HTTPError as error:
            raise SystemExit(f"{error.code}: {json.load(error)['detail']}") from None


if __name__ == "__main__":
    jobs = TrainJobs(*sys.argv[1:])
    made = jobs.create(
        {
            "user_id": "user123",
            "namespace": "user-123",
            "framework": "pytorch",
            "training_code": "import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n",
            "image": "python:3.11-slim",
            "num_nodes": 2,
            "cpu_request": "100m",
            "cpu_limit": "1",
            "memory_request": "128Mi",
            "memory_limit": "512Mi",
            "gpu_count": 0,
            "command": "python /workspace/scripts/train.py",
        },
        key=f"example-{time.time_ns()}",
    )
    place = made["trainjob_name"], made["namespace"]
    print(jobs.wait(*place)["state"])
    for worker in range(2):
        print(jobs.logs(*place, worker).splitlines()[-1])
    jobs.delete(*place)
