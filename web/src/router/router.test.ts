import { beforeEach, describe, expect, it, vi } from "vitest";
import { match, navigate, setQuery, to } from "./router";

describe("match", () => {
  it("gives the named parts, decoded", () => {
    expect(match("/jobs/:namespace/:name", "/jobs/team/a%2Fb")).toEqual({ namespace: "team", name: "a/b" });
  });
  it("refuses another length, another word and a broken escape", () => {
    expect(match("/jobs/:name", "/jobs")).toBeNull();
    expect(match("/jobs/:name", "/nodes/x")).toBeNull();
    expect(match("/jobs/:name", "/jobs/%E0%A4%A")).toBeNull();
  });
  it("reads what `to` has written", () => {
    const name = "한글 ?&#/%";
    expect(match("/jobs/:namespace/:name", to.job("team", name))).toEqual({ namespace: "team", name });
  });
});

describe("the query", () => {
  beforeEach(() => {
    vi.spyOn(window, "scrollTo").mockReturnValue(undefined); // jsdom has no screen
    navigate("/jobs?q=old&phase=Failed");
  });

  it("changes what is named and keeps the rest", () => {
    setQuery({ q: "new", phase: null, owner: "ann" });
    expect(location.search).toBe("?q=new&owner=ann");
  });
  it("goes nowhere else", () => {
    navigate("https://example.org/jobs");
    expect(location.pathname).toBe("/jobs");
  });
});
