import { describe, expect, it } from "vitest";
import {
  align,
  byAttempt,
  inOrder,
  linesOf,
  type Point,
  rankChoice,
  sample,
  smooth,
  valuesAt,
} from "./series";

const points: Point[] = [
  [1, 100, 3],
  [2, 101, 2],
  [1, 110, 3],
  [2, 111, 0],
  [3, 112, 1],
];
const starts = [
  { attempt: 0, time: 99 },
  { attempt: 1, time: 105 },
];

describe("byAttempt", () => {
  it("cuts where an attempt began", () => {
    expect(byAttempt({ points }, starts).map((part) => [part.attempt, part.points.length])).toEqual([
      [0, 2],
      [1, 3],
    ]);
    expect(byAttempt({ points, rank: 3 }, [])).toEqual([{ rank: 3, attempt: 0, points }]);
    expect(byAttempt({ points: [] }, starts)).toEqual([]);
  });
});

describe("smooth", () => {
  it("keeps a constant, follows a change, and passes over what is no number", () => {
    for (const value of smooth([5, 5, 5], 0.9)) expect(value).toBeCloseTo(5);
    const [, second] = smooth([0, 1], 0.5);
    expect(second).toBeCloseTo(2 / 3);
    expect(smooth([1, Number.NaN, 1], 0.5)).toEqual([1, Number.NaN, 1]);
    expect(smooth([1, 7], 0)).toEqual([1, 7]);
  });
});

describe("align", () => {
  it("puts attempts on one axis of steps, and marks where one began", () => {
    expect(align(byAttempt({ points }, starts), "step")).toEqual({
      xs: [1, 2, 3],
      ys: [
        [3, 2, null],
        [3, 0, 1],
      ],
      parts: [{ attempt: 0 }, { attempt: 1 }],
      marks: [{ attempt: 1, x: 1 }],
    });
  });
  it("puts them one after the other on the axis of time, and leaves out 0 on a log scale", () => {
    const found = align(byAttempt({ points }, starts), "time", { isLog: true });
    expect(found.xs).toEqual([100, 101, 110, 111, 112]);
    expect(found.ys[1]).toEqual([null, null, 3, null, 1]);
    expect(found.marks).toEqual([{ attempt: 1, x: 110 }]);
  });
});

describe("ranks", () => {
  const told = {
    series: { loss: points.slice(0, 2) as [number, number, number][] },
    other_ranks: [{ rank: 5, series: { loss: [[2, 112, 9]] as [number, number, number][], lr: [] } }],
  };
  it("are chosen by the address", () => {
    expect(["each", "12", "mean", "-1", "x", "", null].map(rankChoice)).toEqual([
      ...["each", "12", "mean", "mean", "mean", "mean", "mean"],
    ]);
  });
  it("have lines of their own only where each is shown", () => {
    expect([...linesOf(told, "mean")]).toEqual([["loss", [{ points: told.series.loss }]]]);
    const each = linesOf(told, "each");
    expect(each.get("loss")?.map((line) => [line.rank, line.points.length])).toEqual([
      [0, 2],
      [5, 1],
    ]);
    expect(each.get("lr")).toEqual([{ rank: 5, points: [] }]);
  });
  it("share the mark of an attempt, and tell what each shows at a place", () => {
    const lines = [
      { rank: 0, points },
      { rank: 5, points: [[2, 112, 9]] as Point[] },
    ];
    const data = align(
      lines.flatMap((line) => byAttempt(line, starts)),
      "step",
    );
    expect(data.parts).toEqual([
      { rank: 0, attempt: 0 },
      { rank: 0, attempt: 1 },
      { rank: 5, attempt: 1 },
    ]);
    expect(data.marks).toEqual([{ attempt: 1, x: 1 }]);
    expect([...valuesAt(data)]).toEqual([
      [0, 1],
      [5, 9],
    ]);
    expect([...valuesAt(data, 0)]).toEqual([
      [0, 3],
      [5, null],
    ]);
  });
  it("show an older attempt where the newest has not begun", () => {
    const late: Point[] = [
      [1, 100, 3],
      [2, 101, 2],
      [2, 110, 7],
    ];
    const data = align(byAttempt({ rank: 0, points: late }, starts), "step");
    expect([...valuesAt(data, 0)]).toEqual([[0, 3]]);
    expect([...valuesAt(data, 1)]).toEqual([[0, 7]]);
  });
});

describe("inOrder and sample", () => {
  it("show loss and accuracy first", () => {
    expect(inOrder(["lr", "accuracy", "grad", "loss"])).toEqual(["loss", "accuracy", "grad", "lr"]);
  });
  it("take rows evenly with both ends", () => {
    expect(sample([1, 2, 3, 4, 5], 3)).toEqual([1, 3, 5]);
    expect(sample([1, 2], 3)).toEqual([1, 2]);
  });
});
