import { describe, expect, it } from "vitest";
import { rowAt, rowCount, rowOfLine } from "./rows";
import { HIGHEST, ScrollMap } from "./scrollMap";

describe("rows", () => {
  const headings = [
    { attempt: 0, line: 0 },
    { attempt: 1, line: 3 },
    { attempt: 2, line: 3 }, // the second wrote nothing
  ];
  it("have a heading before the first line of each attempt", () => {
    const rows = Array.from({ length: rowCount(5, headings) }, (_, row) => rowAt(row, headings));
    expect(rows.map((row) => (row.kind === "line" ? row.line : `attempt ${row.attempt}`))).toEqual([
      ...["attempt 0", 0, 1, 2, "attempt 1", "attempt 2", 3, 4],
    ]);
  });
  it("are found by line", () => {
    for (const line of [0, 2, 3, 4]) {
      expect(rowAt(rowOfLine(line, headings), headings)).toEqual({ kind: "line", line });
    }
    expect(rowOfLine(7, [])).toBe(7);
  });
});

describe("ScrollMap", () => {
  const made = (content: number, view = 500) => {
    const map = new ScrollMap();
    map.resize(content, view);
    return map;
  };
  it("is the identity where an element can be as high as its content", () => {
    const map = made(10_000);
    map.moved(1234);
    expect([map.top, map.height, map.settled()]).toEqual([1234, 10_000, 1234]);
    map.moved(99_999);
    expect(map.top).toBe(9500);
  });
  it("reaches both ends of any content", () => {
    const map = made(200_000_000);
    expect(map.height).toBe(HIGHEST);
    map.moved(HIGHEST - 500);
    expect([map.top, map.fraction]).toEqual([200_000_000 - 500, 1]);
    map.moved(0);
    expect(map.top).toBe(0);
  });
  it("goes as far as the hand with a wheel, and as far as the bar with a drag", () => {
    const map = made(80_000_000);
    map.moved(4_000_000);
    const middle = map.top;
    expect(middle / 80_000_000).toBeCloseTo(0.5, 3);
    map.moved(4_000_100);
    expect(map.top - middle).toBe(100);
    map.moved(3_999_960);
    expect(map.top - middle).toBe(-40);
  });
  it("does not take its own correction for a move", () => {
    const map = made(80_000_000);
    map.moved(4_000_000);
    map.moved(4_000_900);
    const top = map.top;
    const place = map.settled();
    expect(place).toBeLessThan(4_000_900);
    map.placed(place);
    map.moved(place);
    expect(map.top).toBe(top);
  });
  it("stays where it was when lines are added", () => {
    const map = made(10_000);
    map.goTo(4000);
    map.resize(20_000, 500);
    expect(map.top).toBe(4000);
    map.resize(100, 500);
    expect([map.top, map.fraction]).toEqual([0, 0]);
  });
});
