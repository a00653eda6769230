import { describe, expect, it } from "vitest";
import { fieldId, jumpTo, placesOf, problemAt } from "./places";

describe("the place of a problem", () => {
  it("is the field itself, else what is around it", () => {
    expect(placesOf("env[0].name")).toEqual(["env[0].name", "env[0]", "env"]);
    expect(placesOf("nodes")).toEqual(["nodes"]);
    expect(placesOf("")).toEqual([""]);
  });
  it("is known for what the operator says of the TrainJob", () => {
    expect(placesOf("spec.trainer.numNodes")).toEqual(["nodes"]);
    expect(placesOf("spec.trainer.env[2].name")[0]).toBe("env");
  });
  it("tells a field what is wrong with it, once, and leaves warnings to the list", () => {
    const findings = [
      { path: "nodes", message: "too many" },
      { path: "nodes", message: "too many" },
      { path: "code.inline", message: "empty" },
      { path: "name", message: "odd", severity: "warning" as const },
    ];
    expect(problemAt(findings, "nodes")).toBe("too many");
    expect(problemAt(findings, "code")).toBe("empty");
    expect(problemAt(findings, "name")).toBeUndefined();
  });
  it("is opened and gets the keyboard", () => {
    document.body.innerHTML = `<details><summary>More</summary><div id="${fieldId("labels")}"><input></div></details>`;
    Element.prototype.scrollIntoView = () => {};
    expect(jumpTo("labels.x")).toBe(true);
    expect(document.querySelector("details")?.open).toBe(true);
    expect(document.activeElement?.tagName).toBe("INPUT");
    expect(jumpTo("nothing")).toBe(false);
  });
});
