/** What a list of jobs becomes when something happens: pure, so that it can be tested without a server. */
import type { Job, Phase, Progress } from "@/api/types";
import type { JobNews } from "./jobFeed";

export interface Filter {
  phases: readonly Phase[];
  owner: string;
  framework: string;
  q: string;
}

export interface JobList {
  /** Newest first. */
  jobs: readonly Job[];
  progress: ReadonlyMap<string, Progress>;
  nextToken: string | null;
}

export const EMPTY: JobList = { jobs: [], progress: new Map(), nextToken: null };

/** As the server does it: see docs/api.md. */
export function fits(job: Job, filter: Filter): boolean {
  const q = filter.q.toLowerCase();
  return (
    (filter.phases.length === 0 || filter.phases.includes(job.phase)) &&
    (!filter.owner || job.owner === filter.owner) &&
    (!filter.framework || job.framework === filter.framework) &&
    (!q || job.name.toLowerCase().includes(q) || job.owner.toLowerCase().includes(q))
  );
}

/** The list after these news. A job older than the last one shown belongs to a page that is not read yet. */
export function withNews(list: JobList, news: readonly JobNews[], filter: Filter): JobList {
  const byId = new Map(list.jobs.map((job) => [job.uid, job]));
  const added: Job[] = [];
  let progress = list.progress;
  for (const each of news) {
    if (each.kind === "changed") {
      const old = byId.get(each.job.uid);
      if (old && old.version > each.job.version) continue;
      if (!fits(each.job, filter)) byId.delete(each.job.uid);
      else {
        if (!old && isBeyond(list, each.job)) continue;
        if (!old && !added.some((job) => job.uid === each.job.uid)) added.push(each.job);
        byId.set(each.job.uid, each.job);
      }
    } else if (each.kind === "removed") byId.delete(each.uid);
    else if (each.kind === "progress") progress = new Map(progress).set(each.progress.uid, each.progress);
  }
  const known = new Set(list.jobs.map((job) => job.uid));
  const kept = list.jobs.map((job) => byId.get(job.uid)).filter((job) => job !== undefined);
  const fresh = added
    .map((job) => byId.get(job.uid))
    .filter((job) => job !== undefined && !known.has(job.uid));
  const jobs = fresh.length === 0 ? kept : newestFirst([...(fresh as Job[]), ...kept]);
  return { ...list, jobs, progress };
}

/** One more page behind what is there. */
export function withPage(list: JobList, items: readonly Job[], nextToken: string | null): JobList {
  const known = new Set(list.jobs.map((job) => job.uid));
  return { ...list, jobs: [...list.jobs, ...items.filter((job) => !known.has(job.uid))], nextToken };
}

function isBeyond(list: JobList, job: Job): boolean {
  const last = list.jobs.at(-1);
  return list.nextToken !== null && last !== undefined && job.created_at < last.created_at;
}

function newestFirst(jobs: Job[]): Job[] {
  return jobs.sort((a, b) => (a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : 0));
}
