import { describe, expect, it } from "vitest";
import { toYaml, yamlLines } from "./yaml";

describe("YAML", () => {
  it("is written in block style, texts of several lines as they are", () => {
    const value = {
      a: { "b/c": [1, { d: "x", e: [] }, [true]] },
      text: "one\n\ntwo\n",
      empty: {},
      none: null,
    };
    expect(toYaml(value)).toBe(
      "a:\n  b/c:\n  - 1\n  - d: x\n    e: []\n  -\n    - true\ntext: |\n  one\n\n  two\nempty: {}\nnone: null\n",
    );
  });
  it("quotes whatever another reader could take for something else", () => {
    const words = [
      "yes",
      "1",
      "1e3",
      "0x1",
      "12:30",
      "~",
      "a: b",
      "- a",
      "#x",
      "",
      " a",
      "null",
      "*a",
      "a #b",
      "2001-01-01",
    ];
    for (const each of words) expect(toYaml({ v: each })).toBe(`v: ${JSON.stringify(each)}\n`);
    expect(toYaml({ v: "pytorch/pytorch:2.2.2-cuda" })).toBe("v: pytorch/pytorch:2.2.2-cuda\n");
  });
  it("shows characters that hide or turn text by their codes", () => {
    expect(toYaml({ v: "a\u202eb\u001b[31m" })).toBe('v: "a\\u202eb\\u001b[31m"\n');
    expect(toYaml({ v: "a\u0007\nb" })).toBe('v: "a\\u0007\\nb"\n');
  });
  it("knows the place of every leaf", () => {
    const lines = yamlLines({ a: { "b/c": ["x"] }, t: "1\n2" }, "/0");
    expect(lines.map((line) => line.pointer)).toEqual([null, null, "/0/a/b~1c/0", "/0/t", null, null]);
  });
});
