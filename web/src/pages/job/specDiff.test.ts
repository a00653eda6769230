import { describe, expect, it } from "vitest";
import { differences, flat } from "./specDiff";

describe("flat", () => {
  it("names every value by its path", () => {
    expect(
      flat({ nodes: 2, env: [{ name: "A", value: "1" }], code: { inline: "x\ny" }, tags: [], o: {} }),
    ).toEqual([
      { path: "nodes", text: "2" },
      { path: "env[0].name", text: "A" },
      { path: "env[0].value", text: "1" },
      { path: "code.inline", text: "x\ny" },
      { path: "tags", text: "[]" },
      { path: "o", text: "{}" },
    ]);
  });
});

describe("differences", () => {
  it("are what was changed, added and left out; a name is none", () => {
    expect(differences({ name: "a", nodes: 2, image: "x" }, { name: "b", nodes: 4, user: "ann" })).toEqual([
      { path: "nodes", here: "2", there: "4" },
      { path: "image", here: "x", there: null },
      { path: "user", here: null, there: "ann" },
    ]);
    expect(differences({ nodes: 2 }, { nodes: 2 })).toEqual([]);
  });
});
