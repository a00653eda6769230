import { describe, expect, it } from "vitest";
import type { Attempt, Job, JobEvent } from "@/api/types";
import { told } from "./timeline";

const at = (second: number) => `2026-11-15T12:00:${String(second).padStart(2, "0")}.000Z`;
const ms = (second: number) => Date.parse(at(second));

function aJob(fields: Partial<Job> = {}): Job {
  return {
    ...{ name: "a", namespace: "team", uid: "1", owner: "ann", framework: "pytorch", runtime: "r", nodes: 1 },
    ...{ gpus_per_node: 0, engine: "local", phase: "Running", meaning: "", state: "Running", reason: "" },
    cloned_from: null,
    ...{ message: "", run: 1, attempt: 0, restarts: 0, max_restarts: 0, is_suspended: false },
    ...{ is_deleting: false, is_expired: false, ttl_seconds: null, created_at: at(0) },
    ...{ started_at: null, finished_at: null, version: 1 },
    ...fields,
  };
}
let number = 0;
const event = (second: number, reason: string, message = "", actor = "astrago"): JobEvent => ({
  ...{ number: number++, time: at(second), actor, reason, message },
});
const attempt = (run: number, index: number, begin: number, end: number | null, failure = ""): Attempt => ({
  ...{ run, attempt: index, phase: failure ? "Failed" : "Running" },
  ...{ reason: failure && "Error", message: failure },
  ...{ started_at: at(begin), ended_at: end === null ? null : at(end) },
});

describe("told", () => {
  it("is one stretch before anything happened", () => {
    expect(told(aJob({ phase: "Pending" }), [event(0, "Accepted", "", "ann")], [])).toEqual([
      { run: 1, attempt: 0, failure: "", stretches: [{ phase: "Pending", from: ms(0), until: null }] },
    ]);
  });
  it("gives a restart to the attempt that failed, and its time to the next", () => {
    const events = [
      event(0, "Accepted", "", "ann"),
      event(1, "Running", "was Pending"),
      event(5, "BackoffLimitExceeded", "rank 1", "local"),
      event(5, "Restarting", "was Running; BackoffLimitExceeded: rank 1 ended; restart 1 of 3"),
      event(6, "Running", "was Restarting"),
      event(9, "Complete", "was Running; AllJobsCompleted: done"),
    ];
    const found = told(aJob({ phase: "Complete", attempt: 1 }), events, [
      attempt(1, 0, 1, 6, "rank 1 ended"),
      attempt(1, 1, 6, 9),
    ]);
    expect(found).toEqual([
      {
        ...{ run: 1, attempt: 0, failure: "Error: rank 1 ended" },
        stretches: [
          { phase: "Pending", from: ms(0), until: ms(1) },
          { phase: "Running", from: ms(1), until: ms(5) },
        ],
      },
      {
        ...{ run: 1, attempt: 1, failure: "" },
        stretches: [
          { phase: "Restarting", from: ms(5), until: ms(6) },
          { phase: "Running", from: ms(6), until: ms(9) },
          { phase: "Complete", from: ms(9), until: ms(9) },
        ],
      },
    ]);
  });
  it("tells of restarts that came while nobody looked", () => {
    const events = [
      event(1, "Running", "was Pending"),
      event(5, "Restarting", "was Running; Error: rank 1 ended"),
      event(7, "Restarting", "was Restarting; Error: rank 0 ended"),
      event(20, "Running", "was Restarting"),
    ];
    const found = told(aJob({ attempt: 2 }), events, [
      attempt(1, 0, 1, 5, "rank 1 ended"),
      attempt(1, 1, 5, 7, "rank 0 ended"),
      attempt(1, 2, 7, null),
    ]);
    expect(found.map((each) => each.failure)).toEqual(["Error: rank 1 ended", "Error: rank 0 ended", ""]);
    expect(found[2]?.stretches).toEqual([
      { phase: "Restarting", from: ms(7), until: ms(20) },
      { phase: "Running", from: ms(20), until: null },
    ]);
  });
  it("does not take the restart before a suspension for the one after it", () => {
    const events = [
      event(1, "Running", "was Pending"),
      event(5, "Restarting", "was Running; Error: rank 1 ended"),
      event(6, "Running", "was Restarting"),
      event(10, "Suspended", "was Running"),
      event(20, "Running", "was Suspended"),
    ];
    const found = told(aJob({ attempt: 2 }), events, [
      attempt(1, 0, 1, 5, "rank 1 ended"),
      { ...attempt(1, 1, 5, 20), phase: "Suspended" },
      attempt(1, 2, 20, null),
    ]);
    expect(found.map((each) => each.stretches.map((stretch) => stretch.phase))).toEqual([
      ["Pending", "Running"],
      ["Restarting", "Running", "Suspended"],
      ["Running"],
    ]);
  });
  it("knows a second run, suspension, and a failure for good", () => {
    const events = [
      event(1, "Running", "was Pending"),
      event(2, "Suspended", "was Running"),
      event(3, "Running", "was Suspended"),
      event(4, "Failed", "was Running; Error: it broke"),
      event(6, "RunBegins", "run 2 of the same request begins"),
      event(7, "Running", "was Pending"),
    ];
    const found = told(aJob({ run: 2 }), events, [attempt(1, 0, 1, 4, "it broke"), attempt(2, 0, 7, null)]);
    expect(found.map((each) => [each.run, each.failure])).toEqual([
      [1, "Error: it broke"],
      [2, ""],
    ]);
    expect(found[0]?.stretches.map((each) => each.phase)).toEqual([
      ...["Pending", "Running", "Suspended", "Running", "Failed"],
    ]);
    expect(found[1]?.stretches).toEqual([{ phase: "Running", from: ms(7), until: null }]);
  });
});
