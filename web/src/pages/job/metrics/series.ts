/** Points of a series made ready for a plot: by rank, cut by attempt, smoothed, with one axis for all. */
import type { Metrics } from "@/api/types";

/** Step, seconds since 1970, value. */
export type Point = readonly [step: number, time: number, value: number];
export type Axis = "step" | "time";

/** What one rank told of a series; without a rank where it is the only one that is shown, or a mean. */
export interface Line {
  rank?: number;
  points: readonly Point[];
}

export interface Part extends Line {
  attempt: number;
}

/** What of the ranks is shown: their mean, each, or one by its number. */
export type RankChoice = "mean" | "each" | `${number}`;

export function rankChoice(text: string | null): RankChoice {
  if (text === "each") return text;
  return /^\d{1,9}$/.test(text ?? "") ? (text as RankChoice) : "mean";
}

/** The lines of every series, by its name. */
export function linesOf(
  { series, other_ranks }: Pick<Metrics, "series" | "other_ranks">,
  choice: RankChoice,
): Map<string, Line[]> {
  const found = new Map<string, Line[]>();
  const ranks = choice === "each" ? [{ rank: 0, series }, ...other_ranks] : [{ series }];
  for (const { series: told, ...of } of ranks) {
    for (const [name, points] of Object.entries(told)) {
      found.set(name, [...(found.get(name) ?? []), { ...of, points }]);
    }
  }
  return found;
}

/** Points came in the order of time; an attempt has those from its start on. `starts` are seconds, in order. */
export function byAttempt(
  { points, ...of }: Line,
  starts: readonly { attempt: number; time: number }[],
): Part[] {
  const parts: (Part & { points: Point[] })[] = [];
  let place = 0;
  for (const point of points) {
    while (place + 1 < starts.length && point[1] >= (starts[place + 1]?.time ?? 0)) place += 1;
    const attempt = starts[place]?.attempt ?? 0;
    const part = parts.at(-1);
    if (part?.attempt === attempt) part.points.push(point);
    else parts.push({ ...of, attempt, points: [point] });
  }
  return parts;
}

/** A moving mean that forgets by `weight` (0: nothing is smoothed); without the pull of its first value to 0. */
export function smooth(values: readonly number[], weight: number): number[] {
  if (weight <= 0) return [...values];
  let mean = 0;
  let whole = 1;
  return values.map((value) => {
    if (!Number.isFinite(value)) return value;
    mean = mean * weight + value * (1 - weight);
    whole *= weight;
    return mean / (1 - whole);
  });
}

export interface Aligned {
  xs: number[];
  /** One for each part; null where it has no point. */
  ys: (number | null)[][];
  /** Whose they are, in the same order. */
  parts: { rank?: number; attempt: number }[];
  /** Where an attempt after the first began, in its first rank. */
  marks: { attempt: number; x: number }[];
}

/** All parts on one axis. A log scale has no place for 0 and below. */
export function align(
  parts: readonly Part[],
  axis: Axis,
  { isLog = false, weight = 0 }: { isLog?: boolean; weight?: number } = {},
): Aligned {
  const xOf = (point: Point) => (axis === "step" ? point[0] : point[1]);
  const xs = [...new Set(parts.flatMap((part) => part.points.map(xOf)))].sort((a, b) => a - b);
  const places = new Map(xs.map((x, place) => [x, place]));
  const ys = parts.map((part) => {
    const row = new Array<number | null>(xs.length).fill(null);
    const values = smooth(
      part.points.map((point) => point[2]),
      weight,
    );
    for (const [index, point] of part.points.entries()) {
      const value = values[index] ?? 0;
      row[places.get(xOf(point)) ?? 0] = isLog && value <= 0 ? null : value;
    }
    return row;
  });
  const begins = new Map<number, number>();
  for (const { attempt, points } of parts) {
    const x = points[0] ? xOf(points[0]) : Number.POSITIVE_INFINITY;
    begins.set(attempt, Math.min(x, begins.get(attempt) ?? x));
  }
  const marks = [...begins].sort(([a], [b]) => a - b).slice(1);
  return {
    ...{ xs, ys },
    parts: parts.map(({ points: _, ...of }) => of),
    marks: marks.map(([attempt, x]) => ({ attempt, x })),
  };
}

/** What each rank's newest line shows at a place of `xs`, or at its end: the point there, or the last one before it. */
export function valuesAt({ xs, ys, parts }: Aligned, place = xs.length - 1): Map<number, number | null> {
  const found = new Map<number, number | null>();
  for (const [index, { rank }] of parts.entries()) {
    if (rank === undefined) continue;
    let here = place;
    while (here >= 0 && ys[index]?.[here] == null) here -= 1;
    // Attempts come in their order: a later one counts where it has begun.
    found.set(rank, ys[index]?.[here] ?? found.get(rank) ?? null);
  }
  return found;
}

const FIRST = ["loss", "train_loss", "eval_loss", "val_loss", "accuracy", "eval_accuracy", "val_accuracy"];

/** What people look for first, then by name. */
export function inOrder(names: readonly string[]): string[] {
  const place = (name: string) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return [...names].sort((a, b) => place(a) - place(b) || (a < b ? -1 : a > b ? 1 : 0));
}

/** At most so many rows of a table, evenly, with the first and the last. */
export function sample<T>(rows: readonly T[], most: number): T[] {
  if (rows.length <= most) return [...rows];
  return Array.from(
    { length: most },
    (_, index) => rows[Math.round((index * (rows.length - 1)) / (most - 1))] as T,
  );
}
