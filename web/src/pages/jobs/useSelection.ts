import { useCallback, useMemo, useRef, useState } from "react";
import type { Job } from "@/api/types";

export interface Selection {
  jobs: readonly Job[];
  has: (job: Job) => boolean;
  /** With `isRange` everything from the last one that was chosen to this one. */
  toggle: (job: Job, isRange: boolean) => void;
  set: (jobs: readonly Job[]) => void;
  clear: () => void;
}

/** Which of these jobs are chosen. A job that leaves the list is not chosen any more: nobody deletes what they do not see. */
export function useSelection(jobs: readonly Job[]): Selection {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const listed = useRef(jobs);
  listed.current = jobs;
  const anchor = useRef("");
  const toggle = useCallback((job: Job, isRange: boolean) => {
    const from = listed.current.findIndex((each) => each.uid === anchor.current);
    const until = listed.current.findIndex((each) => each.uid === job.uid);
    anchor.current = job.uid;
    setChosen((old) => {
      const next = new Set(old);
      if (isRange && from >= 0 && until >= 0) {
        const [first, last] = [Math.min(from, until), Math.max(from, until)];
        for (const each of listed.current.slice(first, last + 1)) next.add(each.uid);
      } else if (!next.delete(job.uid)) next.add(job.uid);
      return next;
    });
  }, []);
  const set = useCallback((all: readonly Job[]) => setChosen(new Set(all.map((job) => job.uid))), []);
  const clear = useCallback(() => setChosen(new Set()), []);
  return useMemo(
    () => ({
      jobs: chosen.size === 0 ? [] : jobs.filter((job) => chosen.has(job.uid)),
      has: (job) => chosen.has(job.uid),
      toggle,
      set,
      clear,
    }),
    [jobs, chosen, toggle, set, clear],
  );
}
