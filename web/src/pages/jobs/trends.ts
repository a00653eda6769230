/**
 * Loss and progress of the jobs that are seen. A row asks when it has been in view for a moment, a few rows at a time,
 * and again only while its job runs: ten thousand jobs cost as much as a screen of them.
 */
import { useEffect, useRef, useState } from "react";
import { api } from "@/api/client";
import type { Job, Metrics } from "@/api/types";

export interface Trend {
  loss: readonly number[];
  progress: Metrics["progress"];
  readAt: number;
  /** What was read of: an ended job is read once more. */
  version: string;
}

const SERIES = ["loss", "train_loss"] as const;
const POINTS = 48;
const DWELL_MS = 200;
const EVERY_MS = 5000;
const AT_ONCE = 4;
const MOST_KEPT = 500;

const NOTHING: Trend = { loss: [], progress: null, readAt: 0, version: "" };

const kept = new Map<string, Trend>();
const waiting: (() => Promise<void>)[] = [];
let running = 0;

/** The last who ask come first: they are what is seen now. */
function pump(): void {
  while (running < AT_ONCE) {
    const work = waiting.pop();
    if (!work) return;
    running += 1;
    void work().finally(() => {
      running -= 1;
      pump();
    });
  }
}

function keep(uid: string, trend: Trend): void {
  kept.delete(uid);
  kept.set(uid, trend);
  const oldest = kept.keys().next().value;
  if (kept.size > MOST_KEPT && oldest !== undefined) kept.delete(oldest);
}

async function read(job: Job, version: string): Promise<Trend> {
  const { series, progress } = await api.get("/api/v1/namespaces/{namespace}/jobs/{name}/metrics", {
    path: { namespace: job.namespace, name: job.name },
    query: { series: SERIES.join(","), points: POINTS },
  });
  const points = SERIES.map((name) => series[name]).find((found) => found && found.length > 0) ?? [];
  return { loss: points.map(([, , value]) => value), progress, readAt: Date.now(), version };
}

/** What is known of a job's numbers, newest last. */
export function useTrend(job: Job): Trend | undefined {
  const [, setTurn] = useState(0);
  const seenAt = useRef(Date.now());
  const isOver = job.finished_at !== null;
  const version = `${job.run} ${job.attempt} ${isOver}`;
  const known = kept.get(job.uid);
  const isStale = !isOver || known?.version !== version;
  const latest = useRef({ job, known });
  latest.current = { job, known };

  useEffect(() => {
    if (!job.started_at || !isStale) return;
    let isWanted = true;
    const due = Math.max(seenAt.current + DWELL_MS, (known?.readAt ?? 0) + EVERY_MS);
    const timer = setTimeout(() => {
      waiting.push(async () => {
        if (!isWanted) return;
        try {
          keep(job.uid, await read(latest.current.job, version));
        } catch {
          // Gone meanwhile, or the server is away: the list itself tells; whoever is still there asks again.
          keep(job.uid, { ...NOTHING, ...latest.current.known, readAt: Date.now() });
        }
        setTurn((turn) => turn + 1);
      });
      pump();
    }, due - Date.now());
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [job.uid, job.started_at, version, isStale, known?.readAt]);
  return known;
}
