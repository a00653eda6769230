import { describe, expect, it } from "vitest";
import { factsOf } from "./facts";

describe("what a runtime sets", () => {
  it("is read from every part of its manifest", () => {
    const facts = factsOf({
      spec: {
        mlPolicy: { numNodes: 2, mpi: { mpiImplementation: "OpenMPI", runLauncherAsNode: true } },
        template: {
          spec: {
            successPolicy: { operator: "All", targetReplicatedJobs: ["launcher"] },
            failurePolicy: { maxRestarts: 3, restartStrategy: "BlockingRecreate" },
            replicatedJobs: [
              {
                name: "launcher",
                dependsOn: [{ name: "node", status: "Ready" }],
                template: {
                  spec: {
                    ttlSecondsAfterFinished: 60,
                    template: {
                      spec: {
                        volumes: [{ name: "key", emptyDir: { medium: "Memory" } }],
                        initContainers: [{ name: "copy", image: "busybox", command: ["sh", "-c", "true"] }],
                        containers: [
                          {
                            name: "node",
                            image: "horovod",
                            env: [{ name: "A", value: "1" }],
                            volumeMounts: [{ name: "key", mountPath: "/key", readOnly: true }],
                          },
                        ],
                      },
                    },
                  },
                },
              },
            ],
          },
        },
      },
    });
    expect(facts).toEqual({
      nodes: 2,
      policy: "mpi",
      policySettings: [
        { name: "mpiImplementation", value: "OpenMPI" },
        { name: "runLauncherAsNode", value: "true" },
      ],
      maxRestarts: 3,
      restartStrategy: "BlockingRecreate",
      successOf: ["launcher"],
      pods: [
        {
          name: "launcher",
          waitsFor: ["node"],
          init: [{ name: "copy", image: "busybox", command: "sh -c true", env: [], mounts: [] }],
          containers: [
            {
              name: "node",
              image: "horovod",
              command: "",
              env: [{ name: "A", value: "1" }],
              mounts: [{ name: "key", path: "/key", isReadOnly: true }],
            },
          ],
          volumes: [{ name: "key", kind: "emptyDir" }],
          ttlSeconds: 60,
        },
      ],
    });
  });
  it("is little for a manifest with little in it", () => {
    expect(factsOf({ spec: { mlPolicy: null, template: 3 } })).toMatchObject({
      nodes: 1,
      policy: "",
      pods: [],
    });
    expect(factsOf(null).maxRestarts).toBe(0);
  });
});
