import { expect, it } from "vitest";
import { quotaUses } from "./quota";

const GI = 2 ** 30;
const GPU = "nvidia.com/gpu";

/** Two nodes with a GPU each; only the GPU has no request of its own. */
const OBJECTS = [
  {
    spec: {
      replicatedJobs: [
        {
          name: "node",
          template: {
            spec: {
              parallelism: 2,
              template: {
                spec: {
                  initContainers: [{ resources: { requests: { memory: "6Gi" } } }],
                  containers: [
                    {
                      resources: {
                        limits: { cpu: "4", memory: "8Gi", [GPU]: "1" },
                        requests: { cpu: "2", memory: "4Gi" },
                      },
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
];

it("counts what the job adds to each quota", () => {
  const quotas = [
    { resource: `requests.${GPU}`, hard: "8", used: "3" },
    { resource: "requests.cpu", hard: "64", used: "500m" },
    { resource: "memory", hard: "64Gi", used: "1Gi" },
    { resource: "limits.memory", hard: "64Gi", used: "0" },
    { resource: "pods", hard: "10", used: "2" },
  ];
  expect(quotaUses(OBJECTS, quotas).map(({ used, hard, takes }) => [used, hard, takes])).toEqual([
    [3, 8, 2],
    [0.5, 64, 4],
    [GI, 64 * GI, 12 * GI],
    [0, 64 * GI, 16 * GI],
    [2, 10, 2],
  ]);
});

it("leaves out what the job does not touch", () => {
  expect(quotaUses(OBJECTS, [{ resource: "services", hard: "1", used: "1" }])).toEqual([]);
});
