import { useCallback, useEffect, useMemo, useReducer, useState } from "react";
import { addressOf, api } from "@/api/client";
import { asProblem, isAbort, type Problem } from "@/api/problem";
import type { LogHits, LogLine } from "@/api/types";
import { openStream, type StreamState } from "@/live/stream";
import { CHUNK, LogBook, MOST_LIVE } from "./logBook";

/** Which lines; "" for all, or the newest run. */
export interface Choice {
  rank: string;
  attempt: string;
  run: string;
  container: string;
}

const LINES = "/api/v1/namespaces/{namespace}/jobs/{name}/logs/lines";
const HITS = "/api/v1/namespaces/{namespace}/jobs/{name}/logs/hits";
/** Windows that are asked for at a time. */
const AT_ONCE = 2;
/** A server that does not answer is asked again after this. */
const AGAIN_MS = 2000;

/** One log, for as long as the same choice is shown. Tells its listeners once a frame that something is new. */
export class LogReader {
  readonly book = new LogBook();
  problem: Problem | undefined;
  isOpen = false;
  stream: StreamState | "over" = "connecting";
  private readonly ending = new AbortController();
  private readonly listeners = new Set<() => void>();
  private readonly asked = new Map<number, AbortController>();
  private wanted: number[] = [];
  /** Windows that came with fewer lines than were counted: the log was cut off, and asking again would not end. */
  private readonly short = new Set<number>();
  private closeStream: () => void = () => {};
  private isRefreshing = false;
  private frame = 0;

  constructor(
    readonly namespace: string,
    readonly name: string,
    readonly choice: Choice,
  ) {}

  start = (): void => {
    void this.open();
  };

  stop = (): void => {
    this.ending.abort();
    this.closeStream();
    cancelAnimationFrame(this.frame);
  };

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Reads what is needed to show these lines; what is not needed any more is not waited for. */
  show(first: number, last: number): void {
    this.wanted = this.problem
      ? []
      : this.book.missing(first, last).filter((start) => !this.short.has(start));
    for (const [start, controller] of this.asked) {
      if (start + CHUNK < first - CHUNK || start > last + CHUNK) controller.abort();
    }
    this.askNext();
  }

  async find(q: string, isRegex: boolean, ignoreCase: boolean, signal: AbortSignal): Promise<LogHits> {
    await this.refresh();
    return await api.get(HITS, {
      path: this.path,
      query: { ...this.query, q, regex: isRegex, ignore_case: ignoreCase, until: this.book.until },
      signal,
    });
  }

  retry = (): void => {
    if (this.ending.signal.aborted) return;
    this.problem = undefined;
    this.tell();
    if (this.isOpen) this.askNext();
    else void this.open();
  };

  private get path() {
    return { namespace: this.namespace, name: this.name };
  }

  private get query() {
    const { rank, attempt, run, container } = this.choice;
    return {
      ...(rank ? { rank } : {}),
      ...(attempt ? { attempt: Number(attempt) } : {}),
      ...(run ? { run: Number(run) } : {}),
      ...(container ? { container } : {}),
    };
  }

  private async open(): Promise<void> {
    if (!(await this.refresh())) return;
    this.isOpen = true;
    if (this.book.isOver) this.stream = "over";
    else this.follow();
    this.tell();
  }

  /** Counts anew; lines that came live since become history. */
  private async refresh(): Promise<boolean> {
    if (this.isRefreshing) return false;
    this.isRefreshing = true;
    try {
      const query = { ...this.query, first: -CHUNK, count: CHUNK };
      this.short.clear();
      this.book.refreshed(await api.get(LINES, { path: this.path, query, signal: this.ending.signal }));
      this.tell();
      return true;
    } catch (error) {
      this.failed(error);
      return false;
    } finally {
      this.isRefreshing = false;
    }
  }

  private follow(): void {
    const { attempt, ...query } = this.query;
    const address = addressOf("/api/v1/namespaces/{namespace}/jobs/{name}/logs", this.path, {
      ...query,
      ...(this.book.until ? { cursor: this.book.until } : { attempt }),
      follow: true,
      format: "sse",
    });
    this.closeStream = openStream(address, {
      endEvent: "end",
      onState: (state) => {
        this.stream = state;
        this.tell();
      },
      onRefused: (problem) => this.failed(problem),
      onEvents: (events) => {
        const lines = events
          .filter((each) => each.event === "message")
          .map((each) => JSON.parse(each.data) as LogLine)
          .filter((line) => attempt === undefined || line.attempt === attempt);
        this.book.heard(lines);
        if (events.some((each) => each.event === "end")) this.stream = "over";
        if (this.book.liveCount > MOST_LIVE) void this.refresh();
        this.tell();
      },
    });
  }

  private askNext(): void {
    for (const start of this.wanted) {
      if (this.asked.size >= AT_ONCE) return;
      if (!this.asked.has(start)) void this.ask(start);
    }
  }

  private async ask(start: number): Promise<void> {
    const controller = new AbortController();
    this.asked.set(start, controller);
    const query = { ...this.query, first: start, count: CHUNK, until: this.book.until };
    const signal = AbortSignal.any([controller.signal, this.ending.signal]);
    try {
      const window = await api.get(LINES, { path: this.path, query, signal });
      this.book.add(window);
      if (window.items.length < Math.min(CHUNK, this.book.total - start)) this.short.add(start);
      this.wanted = this.wanted.filter((each) => each !== start);
      this.problem = undefined;
    } catch (error) {
      this.failed(error);
      this.wanted = this.wanted.filter((each) => each !== start);
    } finally {
      this.asked.delete(start);
      this.askNext();
      this.tell();
    }
  }

  private failed(error: unknown): void {
    if (isAbort(error)) return;
    this.problem = asProblem(error);
    this.tell();
    if (this.problem.isOffline) setTimeout(this.retry, AGAIN_MS);
  }

  private tell(): void {
    if (this.frame || this.ending.signal.aborted) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      for (const listener of [...this.listeners]) listener();
    });
  }
}

/** A reader for this choice, told about at each change. */
export function useLog(namespace: string, name: string, uid: string, choice: Choice): LogReader {
  const { rank, attempt, run, container } = choice;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another job of the same name has another log
  const make = useCallback(
    () => new LogReader(namespace, name, { rank, attempt, run, container }),
    [namespace, name, uid, rank, attempt, run, container],
  );
  const [held, setHeld] = useState<{ make: () => LogReader; reader: LogReader }>();
  const [, draw] = useReducer((turn: number) => turn + 1, 0);
  useEffect(() => {
    const reader = make();
    setHeld({ make, reader });
    const forget = reader.subscribe(draw);
    reader.start();
    return () => {
      forget();
      reader.stop();
    };
  }, [make]);
  const idle = useMemo(() => make(), [make]);
  return held?.make === make ? held.reader : idle;
}
