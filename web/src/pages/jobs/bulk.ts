/** Many jobs at one word: a few requests at a time, and who was refused does not stop the others. */
import { asProblem, type Problem } from "@/api/problem";
import type { Job } from "@/api/types";

export interface Refusal {
  job: Job;
  problem: Problem;
}

const AT_ONCE = 6;

export async function eachOf(
  jobs: readonly Job[],
  act: (job: Job) => Promise<unknown>,
): Promise<{ done: Job[]; refused: Refusal[] }> {
  const left = [...jobs];
  const done: Job[] = [];
  const refused: Refusal[] = [];
  const worker = async () => {
    for (let job = left.shift(); job; job = left.shift()) {
      try {
        await act(job);
        done.push(job);
      } catch (error) {
        refused.push({ job, problem: asProblem(error) });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return { done, refused };
}

/** Suspending means something for these; the others have ended, or are suspended or being deleted already. */
export function canSuspend(job: Job): boolean {
  return !job.is_suspended && !job.is_deleting && job.finished_at === null;
}
