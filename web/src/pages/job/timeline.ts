/** A job's story as stretches of one phase each, grouped by attempt; out of its events and attempts. */
import type { Attempt, Job, JobEvent, Phase } from "@/api/types";

export interface Stretch {
  phase: Phase;
  /** Milliseconds since 1970. */
  from: number;
  /** Null: it goes on. */
  until: number | null;
}

export interface Chapter {
  run: number;
  attempt: number;
  stretches: readonly Stretch[];
  /** Why it ended without success; "" where it did not. */
  failure: string;
}

const PHASES: ReadonlySet<string> = new Set<Phase>([
  ...(["Queued", "Pending", "Pulling", "Initializing", "Running"] as const),
  ...(["Restarting", "Suspended", "Complete", "Failed", "Deleting"] as const),
]);
const ENDS: ReadonlySet<string> = new Set<Phase>(["Complete", "Failed"]);
/** Who tells changes of phase; the engine and people tell other things. */
const TELLER = "astrago";

export function told(job: Job, events: readonly JobEvent[], attempts: readonly Attempt[]): Chapter[] {
  const changes = phaseChanges(job, events);
  const begins = beginnings(job, events, attempts);
  return begins.map((begin, index) => {
    const end = begins[index + 1]?.time ?? Number.POSITIVE_INFINITY;
    const own = changes.filter((each) => each.time >= begin.time && each.time < end);
    const stretches = own.map((each, place) => {
      const next = own[place + 1]?.time ?? (Number.isFinite(end) ? end : null);
      return { phase: each.phase, from: each.time, until: ENDS.has(each.phase) ? each.time : next };
    });
    const row = attempts.find((each) => each.run === begin.run && each.attempt === begin.attempt);
    return { run: begin.run, attempt: begin.attempt, stretches, failure: failureOf(row) };
  });
}

interface Change {
  time: number;
  phase: Phase;
}

function phaseChanges(job: Job, events: readonly JobEvent[]): Change[] {
  const found: Change[] = [];
  for (const event of events) {
    if (event.actor !== TELLER || !PHASES.has(event.reason)) continue;
    found.push({ time: Date.parse(event.time), phase: event.reason as Phase });
  }
  // The phase before the first change is in its words: "was Pending".
  const before = /^was (\w+)/.exec(
    events.find((each) => each.actor === TELLER && PHASES.has(each.reason))?.message ?? "",
  )?.[1];
  const first = before && PHASES.has(before) ? (before as Phase) : found.length === 0 ? job.phase : null;
  if (first) found.unshift({ time: Date.parse(job.created_at), phase: first });
  return found;
}

/** When each attempt began: the first with the job, one of a further run when it was asked for, a restart when the one before failed. */
function beginnings(job: Job, events: readonly JobEvent[], attempts: readonly Attempt[]) {
  const restarts = events.filter((each) => each.actor === TELLER && each.reason === "Restarting");
  const runs = events.filter((each) => each.actor === TELLER && each.reason === "RunBegins");
  const found = [{ run: 1, attempt: 0, time: Date.parse(job.created_at) }];
  for (const each of attempts) {
    if (each.run === 1 && each.attempt === 0) continue;
    const started = each.started_at ? Date.parse(each.started_at) : Number.POSITIVE_INFINITY;
    // A restart before the last attempt began is that one's; this one was resumed.
    const last = found.at(-1)?.time ?? 0;
    const own = restarts.filter((restart) => Date.parse(restart.time) > last);
    const teller = each.attempt === 0 ? runs[each.run - 2] : lastBefore(own, started);
    const time = teller ? Math.min(Date.parse(teller.time), started) : started;
    if (Number.isFinite(time)) found.push({ run: each.run, attempt: each.attempt, time });
  }
  return found.sort((a, b) => a.run - b.run || a.attempt - b.attempt);
}

function lastBefore(events: readonly JobEvent[], time: number): JobEvent | undefined {
  return events.findLast((each) => Date.parse(each.time) <= time);
}

/** Why an attempt ended without success, in the words of the first cause. */
function failureOf(attempt: Attempt | undefined): string {
  if (attempt?.phase !== "Failed") return "";
  return [attempt.reason, attempt.message].filter(Boolean).join(": ");
}
