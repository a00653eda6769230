import { describe, expect, it } from "vitest";
import { align, byAttempt, inOrder, type Point, sample, smooth } from "./series";

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
    expect(byAttempt(points, starts).map((part) => [part.attempt, part.points.length])).toEqual([
      [0, 2],
      [1, 3],
    ]);
    expect(byAttempt(points, [])).toEqual([{ attempt: 0, points }]);
    expect(byAttempt([], starts)).toEqual([]);
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
    expect(align(byAttempt(points, starts), "step")).toEqual({
      xs: [1, 2, 3],
      ys: [
        [3, 2, null],
        [3, 0, 1],
      ],
      marks: [{ attempt: 1, x: 1 }],
    });
  });
  it("puts them one after the other on the axis of time, and leaves out 0 on a log scale", () => {
    const found = align(byAttempt(points, starts), "time", { isLog: true });
    expect(found.xs).toEqual([100, 101, 110, 111, 112]);
    expect(found.ys[1]).toEqual([null, null, 3, null, 1]);
    expect(found.marks).toEqual([{ attempt: 1, x: 110 }]);
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
