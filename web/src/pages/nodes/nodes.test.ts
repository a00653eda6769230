import { describe, expect, it } from "vitest";
import { type Node, share, toneOf, total } from "./nodes";

describe("nodes", () => {
  it("add up", () => {
    const nodes = [
      { capacity: { cpu: 8, memory: 10, gpus: 2 } },
      { capacity: { cpu: 0.5, memory: 5, gpus: 0 } },
    ] as Node[];
    expect(total(nodes, (node) => node.capacity)).toEqual({ cpu: 8.5, memory: 15, gpus: 2 });
  });
  it("have nothing to fill without capacity", () => {
    expect(share(0, 0)).toBe(0);
    expect([0.5, 0.9, 1].map(toneOf)).toEqual(["accent", "accent", "warn"]);
  });
});
