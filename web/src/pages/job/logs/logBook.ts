/**
 * What the page holds of a log: windows on the lines that are there, by number, and after them the lines that came
 * since. A line that has not ended comes again with the same offset and replaces itself; nothing is ever twice.
 */
import type { LogLine, LogWindow } from "@/api/types";
import type { Beginning } from "./rows";

export const CHUNK = 500;
/** Lines of history that are kept: some megabytes. */
const MOST_KEPT = 20_000;
/** Lines that came live, after which they are counted into the history: see `refreshed`. */
export const MOST_LIVE = 10_000;

const keyOf = (line: { attempt: number; rank: number }) => `${line.attempt}:${line.rank}`;

export class LogBook {
  /** Lines of history. */
  total = 0;
  until = "";
  isOver = false;
  ranks: readonly number[] = [];
  containers: readonly string[] = [];
  private attempts: readonly Beginning[] = [];
  private readonly kept = new Map<number, LogLine>();
  private live: LogLine[] = [];
  /** Of each rank: the place of its line that has not ended, and how far it was heard. */
  private open = new Map<string, number>();
  private heardTo = new Map<string, number>();

  get count(): number {
    return this.total + this.live.length;
  }

  get liveCount(): number {
    return this.live.length;
  }

  line(number: number): LogLine | undefined {
    return number < this.total ? this.kept.get(number) : this.live[number - this.total];
  }

  /** Where attempts begin; none where there is one alone. */
  get headings(): readonly Beginning[] {
    const found = [...this.attempts];
    for (const [index, line] of this.live.entries()) {
      if (line.attempt > (found.at(-1)?.attempt ?? -1)) {
        found.push({ attempt: line.attempt, line: this.total + index });
      }
    }
    return found.length > 1 ? found : [];
  }

  /** The history was counted, for the first time or anew; lines that came live and are in it now move there. */
  refreshed(window: LogWindow): void {
    const stops = new Map<string, number>(
      window.until
        .split(",")
        .filter(Boolean)
        .map((place) => {
          const [attempt, rank, offset] = place.split(":");
          return [`${attempt}:${rank}`, Number(offset)] as const;
        }),
    );
    const newest = Math.max(-1, ...[...stops.keys()].map((key) => Number(key.split(":")[0])));
    this.live = this.live.filter(
      (line) => line.attempt > newest || line.offset >= (stops.get(keyOf(line)) ?? 0),
    );
    if (newest >= 0) this.live = this.live.filter((line) => line.attempt >= newest);
    if (window.total < this.total) this.kept.clear(); // the log was cut off
    this.total = window.total;
    this.until = window.until;
    this.isOver = window.is_over;
    this.ranks = window.ranks;
    this.containers = window.containers;
    this.attempts = window.attempts.map((each) => ({ attempt: each.attempt, line: each.first }));
    for (const [key, offset] of stops) this.heardTo.set(key, Math.max(offset, this.heardTo.get(key) ?? 0));
    this.open = new Map(
      this.live.flatMap((line, index) => (line.ended ? [] : [[keyOf(line), index] as const])),
    );
    this.add(window);
  }

  /** Lines of history that were asked for. */
  add(window: LogWindow): void {
    for (const [index, line] of window.items.entries()) this.kept.set(window.first + index, line);
    if (this.kept.size > MOST_KEPT) this.forget(window.first);
  }

  /** Lines that came. */
  heard(lines: readonly LogLine[]): void {
    for (const line of lines) {
      const key = keyOf(line);
      const place = this.open.get(key);
      const before = place === undefined ? undefined : this.live[place];
      if (place !== undefined && before?.offset === line.offset) this.live[place] = line;
      else if (line.offset < (this.heardTo.get(key) ?? 0)) continue;
      else this.live.push(line);
      if (line.ended) {
        this.open.delete(key);
        this.heardTo.set(key, line.next);
      } else if (before?.offset !== line.offset) this.open.set(key, this.live.length - 1);
    }
  }

  /** Which windows are to be asked for so that these lines can be shown; the nearest to the middle first. */
  missing(first: number, last: number): number[] {
    const middle = (first + last) / 2;
    const found: number[] = [];
    const end = Math.min(last, this.total - 1);
    for (let start = Math.max(0, Math.floor(first / CHUNK) * CHUNK); start <= end; start += CHUNK) {
      const stop = Math.min(start + CHUNK, this.total);
      for (let number = Math.max(start, first); number < stop && number <= end; number++) {
        if (this.kept.has(number)) continue;
        found.push(start);
        break;
      }
    }
    return found.sort((a, b) => Math.abs(a + CHUNK / 2 - middle) - Math.abs(b + CHUNK / 2 - middle));
  }

  /** Those that are furthest from where we are. */
  private forget(around: number): void {
    for (const number of this.kept.keys()) {
      if (Math.abs(number - around) > MOST_KEPT / 2) this.kept.delete(number);
    }
  }
}
