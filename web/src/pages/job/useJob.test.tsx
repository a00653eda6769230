import { act, renderHook, waitFor } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import type { JobNews } from "@/live/jobFeed";
import { useJob } from "./useJob";

let send: (news: JobNews[]) => void = () => {};
vi.mock("@/live/jobFeed", () => ({
  useJobNews: (_: string, onNews: typeof send) => {
    send = onNews;
  },
}));

const job = { name: "story", namespace: "team", uid: "u1", version: 1, phase: "Running" };
const progressOf = (uid: string, fraction: number) =>
  ({ ...{ name: "story", namespace: "team", uid, fraction, remaining_seconds: null }, step: 3 }) as never;

/** A server that answers at once, but for `/explain`: that waits until the test says so. */
function serve(): () => void {
  let answer: () => void = () => {};
  const explained = new Promise<void>((resolve) => {
    answer = resolve;
  });
  vi.stubGlobal("fetch", async (address: string) => {
    if (address.includes("/explain")) await explained;
    const body = address.includes("/metrics")
      ? { progress: null }
      : address.includes("/events")
        ? { items: [], next_after: null }
        : job;
    return new Response(JSON.stringify(body), { headers: { "content-type": "application/json" } });
  });
  return answer;
}

it("keeps progress that arrives while the job is read for the first time", async () => {
  const answer = serve();
  const { result } = renderHook(() => useJob("team", "story"));
  act(() => send([{ kind: "read" }]));
  act(() => send([{ kind: "progress", progress: progressOf("u1", 0.33) }]));
  answer();
  await waitFor(() => expect(result.current.job?.uid).toBe("u1"));
  expect(result.current.progress?.fraction).toBe(0.33);
});

it("shows no progress of another job of that name", async () => {
  const answer = serve();
  const { result } = renderHook(() => useJob("team", "story"));
  act(() => send([{ kind: "read" }, { kind: "progress", progress: progressOf("u0", 0.9) }]));
  answer();
  await waitFor(() => expect(result.current.job?.uid).toBe("u1"));
  expect(result.current.progress).toBeUndefined();
});
