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

export function chapters(job: Job, events: readonly JobEvent[], attempts: readonly Attempt[]): Chapter[] {
  const changes = phaseChanges(job, events);
  const begins = beginnings(job, events, attempts);
  return begins.map((begin, index) => {
    const end = begins[index + 1]?.time ?? Number.POSITIVE_INFINITY;
    const own = changes.filter((each) => each.time >= begin.time && each.time < end);
    const stretches = own.map((each, place) => {
      const next = own[place + 1]?.time ?? (Number.isFinite(end) ? end : null);
      return { phase: each.phase, from: each.time, until: ENDS.has(each.phase) ? each.time : next };
    });
    return { run: begin.run, attempt: begin.attempt, stretches, failure: failureOf(own) };
  });
}

interface Change {
  time: number;
  phase: Phase;
  why: string;
}

function phaseChanges(job: Job, events: readonly JobEvent[]): Change[] {
  const found: Change[] = [];
  for (const event of events) {
    if (event.actor !== TELLER || !PHASES.has(event.reason)) continue;
    found.push({ time: Date.parse(event.time), phase: event.reason as Phase, why: whyOf(event.message) });
  }
  // The phase before the first change is in its words: "was Pending".
  const before = /^was (\w+)/.exec(
    events.find((each) => each.actor === TELLER && PHASES.has(each.reason))?.message ?? "",
  )?.[1];
  const first = before && PHASES.has(before) ? (before as Phase) : found.length === 0 ? job.phase : null;
  if (first) found.unshift({ time: Date.parse(job.created_at), phase: first, why: "" });
  return found;
}

/** "was Running; BackoffLimitExceeded: rank 1 …" without what is known already. */
function whyOf(message: string): string {
  return message.replace(/^was \w+(; )?/, "");
}

/** When each attempt began: the first with the job, one of a further run when it was asked for, a restart when the one before failed. */
function beginnings(job: Job, events: readonly JobEvent[], attempts: readonly Attempt[]) {
  const restarts = events.filter((each) => each.actor === TELLER && each.reason === "Restarting");
  const runs = events.filter((each) => each.actor === TELLER && each.reason === "RunBegins");
  const found = [{ run: 1, attempt: 0, time: Date.parse(job.created_at) }];
  for (const each of attempts) {
    if (each.run === 1 && each.attempt === 0) continue;
    const started = each.started_at ? Date.parse(each.started_at) : Number.POSITIVE_INFINITY;
    const teller = each.attempt === 0 ? runs[each.run - 2] : lastBefore(restarts, started);
    const time = teller ? Math.min(Date.parse(teller.time), started) : started;
    if (Number.isFinite(time)) found.push({ run: each.run, attempt: each.attempt, time });
  }
  return found.sort((a, b) => a.run - b.run || a.attempt - b.attempt);
}

function lastBefore(events: readonly JobEvent[], time: number): JobEvent | undefined {
  return events.findLast((each) => Date.parse(each.time) <= time);
}

/** A restart is told at the beginning of the attempt that follows; `chapters` gives it to the one that failed. */
function failureOf(own: readonly Change[]): string {
  return own.findLast((each) => each.phase === "Failed")?.why ?? "";
}

/** The chapters with the reason of each restart at the attempt that ended by it. */
export function told(job: Job, events: readonly JobEvent[], attempts: readonly Attempt[]): Chapter[] {
  const found = chapters(job, events, attempts);
  const restarts = phaseChanges(job, events).filter((each) => each.phase === "Restarting");
  return found.map((chapter, index) => {
    const next = found[index + 1];
    if (chapter.failure || !next || next.run !== chapter.run) return chapter;
    const begin = next.stretches[0]?.from;
    const why = restarts.find((each) => each.time === begin)?.why ?? "";
    // Seen late, when the next attempt had begun already: then the engine has told why.
    return { ...chapter, failure: /^Starting: /.test(why) ? toldBefore(begin, job, events) : why };
  });
}

/** The engine's last word before a restart was seen, other than that it restarts. */
function toldBefore(time: number | undefined, job: Job, events: readonly JobEvent[]): string {
  const seen = events.findIndex(
    (each) => each.actor === TELLER && each.reason === "Restarting" && Date.parse(each.time) === time,
  );
  const before = events.slice(events.slice(0, seen).findLastIndex((each) => each.actor === TELLER) + 1, seen);
  const found = before.findLast((each) => each.actor === job.engine && each.reason !== "Restarted");
  return found ? `${found.reason}: ${found.message}` : "";
}
