/** A stream that comes back by itself: where it was, after a pause that grows. */
import { request } from "@/api/client";
import { asProblem, type Problem } from "@/api/problem";
import { EventReader, type ServerEvent } from "./sse";

export type StreamState = "connecting" | "open" | "lost";

export interface StreamOptions {
  /** Whole batches, so that a burst of lines is one render. */
  onEvents: (events: ServerEvent[]) => void;
  onState?: (state: StreamState) => void;
  /** The server refuses for good (401, 403, 404, 422): no further try. */
  onRefused?: (problem: Problem) => void;
  /** An event of this name says that all is told: no further try. */
  endEvent?: string;
}

/** The server sends a comment every 15 s; a connection that is silent for longer is dead. */
export const SILENCE_MS = 40_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

export function pauseMs(failures: number, random: number): number {
  const whole = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.max(0, failures - 1));
  return whole * (0.5 + random / 2); // so that many pages do not come back in one moment
}

/** Returns what ends it. */
export function openStream(address: string, options: StreamOptions): () => void {
  const ending = new AbortController();
  void run(address, options, ending.signal);
  return () => ending.abort();
}

async function run(address: string, options: StreamOptions, ended: AbortSignal): Promise<void> {
  const reader = { lastId: "" };
  let failures = 0;
  options.onState?.("connecting");
  while (!ended.aborted) {
    try {
      const isOver = await once(address, options, ended, reader, () => {
        failures = 0;
        options.onState?.("open");
      });
      if (isOver) return;
    } catch (error) {
      if (ended.aborted) return;
      const problem = asProblem(error);
      if (problem.status >= 400 && problem.status < 500 && problem.status !== 408 && problem.status !== 429) {
        options.onRefused?.(problem);
        return;
      }
    }
    if (ended.aborted) return;
    failures += 1;
    options.onState?.("lost");
    await pause(pauseMs(failures, Math.random()), ended);
  }
}

/** One connection, to its end; true when the server has said that all is told. */
async function once(
  address: string,
  options: StreamOptions,
  ended: AbortSignal,
  place: { lastId: string },
  opened: () => void,
): Promise<boolean> {
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), SILENCE_MS);
  try {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (place.lastId) headers["last-event-id"] = place.lastId;
    const answer = await request(address, { headers, signal: AbortSignal.any([ended, silent.signal]) });
    opened();
    const events = new EventReader();
    events.lastId = place.lastId;
    const body = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const part = await body?.read();
      if (!part || part.done) return false;
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), SILENCE_MS);
      const found = events.read(part.value);
      place.lastId = events.lastId;
      if (found.length > 0 && !ended.aborted) options.onEvents(found);
      if (found.some((each) => each.event === options.endEvent)) return true;
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Ends early when the network is said to be back. */
function pause(ms: number, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      ended.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    addEventListener("online", done);
    ended.addEventListener("abort", done);
  });
}
