import { describe, expect, it } from "vitest";
import { Problem } from "@/api/problem";
import type { Job } from "@/api/types";
import { eachOf } from "./bulk";

const jobs = Array.from({ length: 20 }, (_, number) => ({ name: `job-${number}` }) as Job);

describe("many jobs at one word", () => {
  it("goes through all of them, a few at a time, and tells who was refused", async () => {
    let open = 0;
    let most = 0;
    const { done, refused } = await eachOf(jobs, async (job) => {
      most = Math.max(most, ++open);
      await Promise.resolve();
      open -= 1;
      if (job.name === "job-3") throw new Problem({ status: 409, code: "conflict", detail: "it has ended" });
    });
    expect(done).toHaveLength(19);
    expect(refused.map(({ job, problem }) => [job.name, problem.message])).toEqual([
      ["job-3", "it has ended"],
    ]);
    expect(most).toBeLessThanOrEqual(6);
  });
});
