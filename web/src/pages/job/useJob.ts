import { useCallback, useEffect, useRef, useState } from "react";
import { api } from "@/api/client";
import { asProblem, isAbort, type Problem } from "@/api/problem";
import type { Explanation, Job, JobEvent, Progress } from "@/api/types";
import { useJobNews } from "@/live/jobFeed";

export interface LiveJob {
  job: Job | undefined;
  /** What its state means and what led to it; of the version that is shown, or a little older. */
  explanation: Explanation | undefined;
  events: readonly JobEvent[];
  progress: Pick<Progress, "fraction" | "remaining_seconds"> | undefined;
  problem: Problem | undefined;
  /** It was deleted while it was shown: what is here is the last that was known. */
  isGone: boolean;
  reload: () => void;
}

const JOB = "/api/v1/namespaces/{namespace}/jobs/{name}";
const MOST_EVENTS = 1000;

interface State {
  key: string;
  job?: Job;
  explanation?: Explanation;
  events: readonly JobEvent[];
  progress?: LiveJob["progress"];
  problem?: Problem;
  isGone: boolean;
}

/** A job, kept up to date by the stream; and what is known about it at each version. */
export function useJob(namespace: string, name: string): LiveJob {
  const key = JSON.stringify([namespace, name]);
  const [state, setState] = useState<State>({ key, events: [], isGone: false });
  const current: State = state.key === key ? state : { key, events: [], isGone: false };
  const latest = useRef(current);
  latest.current = current;
  const reading = useRef<AbortController>(null);
  const wanted = useRef(0);
  /** The uid of the one that was removed: what was read just before that may come after the news. */
  const gone = useRef("");
  /** The newest progress of the stream: an answer that was requested before it is older. */
  const streamed = useRef<Progress>(undefined);

  const change = useCallback(
    (fields: Partial<State>) =>
      setState((old) => ({ ...(old.key === key ? old : { key, events: [], isGone: false }), ...fields })),
    [key],
  );

  /** The job's whole story; a change that comes meanwhile reads it again afterwards. */
  const read = useCallback(async () => {
    wanted.current += 1;
    if (reading.current) return;
    const controller = new AbortController();
    reading.current = controller;
    const options = { path: { namespace, name }, signal: controller.signal };
    try {
      for (let seen = -1; seen !== wanted.current; ) {
        seen = wanted.current;
        streamed.current = undefined;
        const job = await api.get(JOB, options);
        const [explanation, events, metrics] = await Promise.all([
          api.get(`${JOB}/explain`, options),
          allEvents(namespace, name, latest.current.events, controller.signal),
          api.get(`${JOB}/metrics`, { ...options, query: { points: 1 } }), // progress alone is wanted
        ]);
        const progress = progressOf(job, streamed.current) ?? metrics.progress ?? undefined;
        const isSame = latest.current.job?.uid === job.uid;
        change({
          ...{ job, explanation, isGone: job.uid === gone.current },
          events:
            isSame || latest.current.job === undefined
              ? events
              : await allEvents(namespace, name, [], controller.signal),
          ...(progress ? { progress } : {}),
          ...(latest.current.problem ? { problem: undefined as never } : {}),
        });
      }
    } catch (error) {
      if (isAbort(error)) return;
      const problem = asProblem(error);
      if (problem.status === 404 && latest.current.job) change({ isGone: true });
      else if (!problem.isOffline || !latest.current.job) change({ problem });
    } finally {
      if (reading.current === controller) reading.current = null;
    }
  }, [namespace, name, change]);

  useEffect(
    () => () => {
      reading.current?.abort();
      reading.current = null;
    },
    [],
  );

  useJobNews(namespace, (news) => {
    for (const each of news) {
      if (each.kind === "read") void read();
      else if (each.kind === "changed" && each.job.name === name) {
        const known = latest.current.job;
        if (known && known.uid === each.job.uid && known.version > each.job.version) continue;
        change({ job: each.job, isGone: false });
        void read();
      } else if (each.kind === "removed" && each.name === name) {
        gone.current = each.uid;
        if (each.uid === latest.current.job?.uid) change({ isGone: true });
      } else if (each.kind === "progress" && each.progress.name === name) {
        streamed.current = each.progress; // the job itself may not be known yet
        if (progressOf(latest.current.job, each.progress)) change({ progress: each.progress });
      }
    }
  });

  return {
    job: current.job,
    explanation: current.explanation,
    events: current.events,
    progress: current.progress,
    problem: current.problem,
    isGone: current.isGone,
    reload: () => void read(),
  };
}

/** The progress, unless it belongs to another job of the same name. */
function progressOf(job: Job | undefined, progress: Progress | undefined): Progress | undefined {
  return progress && progress.uid === job?.uid ? progress : undefined;
}

/** Those that are known, and those that came after. */
async function allEvents(
  namespace: string,
  name: string,
  known: readonly JobEvent[],
  signal: AbortSignal,
): Promise<readonly JobEvent[]> {
  const found = [...known];
  for (;;) {
    const after = found.at(-1)?.number ?? -1;
    const page = await api.get(`${JOB}/events`, {
      path: { namespace, name },
      query: { after, limit: MOST_EVENTS },
      signal,
    });
    found.push(...page.items);
    if (page.next_after === null) return found;
  }
}
