import { describe, expect, it } from "vitest";
import { ACTIVE, filterOf, isFiltered } from "./filters";

const read = (text: string) => filterOf(new URLSearchParams(text));

describe("the filter in the address", () => {
  it("takes several states, and drops words that are none", () => {
    expect(read("phase=Failed,nonsense,Running").phases).toEqual(["Running", "Failed"]);
    expect(read(`phase=${ACTIVE}`).phases).not.toContain("Complete");
  });
  it("knows when nothing is asked for", () => {
    expect(isFiltered(read("phase=nonsense&other=1"))).toBe(false);
    for (const text of ["q=a", "owner=ann", "framework=pytorch", "phase=Failed"])
      expect(isFiltered(read(text)), text).toBe(true);
  });
});
