import { describe, expect, it } from "vitest";
import { sparkline } from "./sparkline";

describe("a sparkline", () => {
  it("goes from the left edge to the right, the largest value on top", () => {
    expect(sparkline([4, 2, 0], 42, 22)).toBe("M1.0 1.0L21.0 11.0L41.0 21.0");
  });
  it("is level in the middle where nothing changes", () => {
    expect(sparkline([3, 3], 42, 22)).toBe("M1.0 11.0L41.0 11.0");
  });
  it("is nothing for one point, and leaves out what is no number", () => {
    expect(sparkline([1], 42, 22)).toBe("");
    expect(sparkline([1, Number.NaN], 42, 22)).toBe("");
  });
});
