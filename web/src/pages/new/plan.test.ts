import { describe, expect, it } from "vitest";
import { fitOf, type Node, podGroups } from "./fits";
import { originOf } from "./origins";
import { fromCores, fromGi, parseQuantity, toCores, toGi } from "./quantity";

const GI = 2 ** 30;

function aNode(
  name: string,
  free: { cpu: number; memory: number; gpus: number },
  more: Partial<Node> = {},
): Node {
  return {
    name,
    ready: true,
    instance_type: "",
    zone: "",
    capacity_type: "",
    architecture: "",
    os_image: "",
    gpu_type: "",
    gpus: free.gpus || null,
    capacity: { cpu: 8, memory: 32 * GI, gpus: 1 },
    used: { cpu: 0, memory: 0, gpus: 0 },
    free,
    remarks: [],
    jobs: [],
    ...more,
  };
}

const JOB_SET = {
  spec: {
    replicatedJobs: [
      {
        name: "node",
        replicas: 1,
        template: {
          spec: {
            parallelism: 3,
            template: {
              spec: {
                initContainers: [{ resources: { requests: { cpu: "100m" } } }],
                containers: [
                  {
                    resources: {
                      limits: { cpu: "4", memory: "2Gi", "nvidia.com/gpu": "1" },
                      requests: { cpu: "2" },
                    },
                  },
                  { resources: { requests: { cpu: "500m" } } },
                ],
              },
            },
          },
        },
      },
    ],
  },
};

describe("quantities", () => {
  it("are read as Kubernetes reads them", () => {
    expect(["4", "500m", "16Gi", "1.5", "2e3", "1k", ".5", "0"].map(parseQuantity)).toEqual([
      4,
      0.5,
      16 * GI,
      1.5,
      2000,
      1000,
      0.5,
      0,
    ]);
    expect(["", "x", "4 Gi", "-1", "1Xi", "mi"].map(parseQuantity)).toEqual([
      null,
      null,
      null,
      null,
      null,
      null,
    ]);
  });
  it("go to a slider and back", () => {
    expect([toCores("500m"), toGi("256Mi"), toGi("x")]).toEqual([0.5, 0.25, 0]);
    expect([fromCores(0.5), fromCores(0), fromGi(16), fromGi(0.25), fromGi(0)]).toEqual([
      "0.5",
      "",
      "16Gi",
      "256Mi",
      "",
    ]);
  });
});

describe("what fits where", () => {
  it("counts the pods of a JobSet and what each needs", () => {
    expect(podGroups([JOB_SET])).toEqual([{ name: "node", count: 3, cpu: 2.5, memory: 2 * GI, gpus: 1 }]);
    expect(podGroups([])).toEqual([]);
  });
  it("places pods until nothing is free, and says in numbers what is short", () => {
    const nodes = [
      aNode("a", { cpu: 6, memory: 30 * GI, gpus: 2 }),
      aNode("b", { cpu: 1, memory: 30 * GI, gpus: 1 }),
      aNode("c", { cpu: 8, memory: 30 * GI, gpus: 8 }, { ready: false, remarks: ["cordoned"] }),
    ];
    const fit = fitOf(podGroups([JOB_SET]), nodes);
    expect([fit.wanted, fit.placed]).toEqual([3, 2]);
    expect(fit.places.map((each) => each.pods)).toEqual([2, 0, 0]);
    expect(fit.places[1]?.shortages).toEqual([{ kind: "cpu", needed: 2.5, free: 1, capacity: 8 }]);
    expect(fit.places[2]).toMatchObject({ isReady: false, remarks: ["cordoned"] });
  });
});

describe("origins", () => {
  const provenance = {
    "/0/spec/a": "form: nodes",
    "/0/spec/b": "runtime",
    "/0/spec/c": "override 0",
    "/0/spec/d": "mlPolicy.torch",
    "/0/spec/e": "spec.trainer.command",
    "/0/spec/f": "platform",
  };
  it("say who set a line", () => {
    const sources = [..."abcdef"].map((each) => originOf(`/0/spec/${each}`, provenance)?.source);
    expect(sources).toEqual(["you", "runtime", "platform", "operator", "platform", "platform"]);
    expect(originOf("/0/spec/a/0/x", provenance)).toEqual({ source: "you", detail: "nodes" });
    expect(originOf("/1/x", provenance)).toBeNull();
  });
});
