import { describe, expect, it } from "vitest";
import { EMPTY, firstForm, formToBody, presetOf, presetToForm, STANDARD, withStandard } from "./form";

describe("the form before anything is entered", () => {
  it("has the mock-up's values on a cluster, and can be sent as it is (M141)", () => {
    expect(formToBody(firstForm("kubernetes"))).toEqual({
      framework: "pytorch",
      nodes: 2,
      resources: { gpus: 1, cpu: "4", memory: "32Gi" },
      code: { inline: EMPTY.inline },
    });
  });
  it("has a size that fits on one machine; the mock-up's is one preset away", () => {
    const first = firstForm("local");
    expect(formToBody(first)).toMatchObject({ nodes: 2, resources: { cpu: "1", memory: "1Gi" } });
    expect({ ...first, ...presetToForm(STANDARD) }).toEqual(firstForm("kubernetes"));
  });
});

describe("the standard size", () => {
  const small = { name: "small", gpus: 1, cpu: "4", memory: "16Gi" };
  it("comes before the presets of the platform, and is recognized", () => {
    const presets = withStandard([small]);
    expect(presets.map((each) => each.name)).toEqual(["standard", "small"]);
    expect(presetOf(firstForm("kubernetes"), presets)).toBe("standard");
  });
  it("is the platform's own where it has one of that name", () => {
    const own = { ...small, name: "standard" };
    expect(withStandard([small, own])).toEqual([small, own]);
  });
});
