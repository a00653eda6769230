import { describe, expect, it } from "vitest";
import type { Job } from "@/api/types";
import { EMPTY, type Filter, fits, type JobList, withNews, withPage } from "./jobList";

const ALL: Filter = { phases: [], owner: "", framework: "", q: "" };

function aJob(uid: string, fields: Partial<Job> = {}): Job {
  return {
    ...{ name: uid, namespace: "team", uid, owner: "ann", framework: "pytorch", runtime: "r", nodes: 1 },
    ...{ gpus_per_node: 0, engine: "local", phase: "Running", meaning: "", state: "Running", reason: "" },
    cloned_from: null,
    ...{ message: "", run: 1, attempt: 0, restarts: 0, max_restarts: 0, is_suspended: false },
    ...{ is_deleting: false, is_expired: false, ttl_seconds: null, created_at: `2026-01-0${uid}T00:00:00Z` },
    ...{ started_at: null, finished_at: null, version: 1 },
    ...fields,
  };
}
const names = (list: JobList) => list.jobs.map((job) => job.uid);
const two = withPage(EMPTY, [aJob("4"), aJob("2")], "more");

describe("withNews", () => {
  it("replaces a job, and puts a new one where it belongs", () => {
    const after = withNews(two, [{ kind: "changed", job: aJob("2", { phase: "Failed", version: 2 }) }], ALL);
    expect(after.jobs[1]?.phase).toBe("Failed");
    expect(names(withNews(two, [{ kind: "changed", job: aJob("3") }], ALL))).toEqual(["4", "3", "2"]);
  });
  it("leaves out what is older than the last one shown, unless all are shown", () => {
    const news = [{ kind: "changed", job: aJob("1") }] as const;
    expect(names(withNews(two, news, ALL))).toEqual(["4", "2"]);
    expect(names(withNews({ ...two, nextToken: null }, news, ALL))).toEqual(["4", "2", "1"]);
  });
  it("never goes back to an older version", () => {
    const newer = withNews(two, [{ kind: "changed", job: aJob("2", { phase: "Failed", version: 5 }) }], ALL);
    expect(withNews(newer, [{ kind: "changed", job: aJob("2", { version: 4 }) }], ALL).jobs[1]?.phase).toBe(
      "Failed",
    );
  });
  it("drops what is removed, and what does not fit any more", () => {
    const running: Filter = { ...ALL, phases: ["Running"] };
    const failed = aJob("4", { phase: "Failed", version: 2 });
    expect(names(withNews(two, [{ kind: "changed", job: failed }], running))).toEqual(["2"]);
    expect(names(withNews(two, [{ kind: "removed", name: "2", namespace: "team", uid: "2" }], ALL))).toEqual([
      "4",
    ]);
  });
  it("takes a job that comes and goes in one batch", () => {
    const news = [
      { kind: "changed", job: aJob("5") },
      { kind: "removed", name: "5", namespace: "team", uid: "5" },
    ] as const;
    expect(names(withNews(two, news, ALL))).toEqual(["4", "2"]);
  });
});

describe("fits", () => {
  it("searches in name and owner, whatever the case", () => {
    expect(fits(aJob("1", { name: "BERT-large" }), { ...ALL, q: "bert" })).toBe(true);
    expect(fits(aJob("1", { owner: "Bob" }), { ...ALL, q: "bo" })).toBe(true);
    expect(fits(aJob("1"), { ...ALL, q: "zzz" })).toBe(false);
  });
});
