import { describe, expect, it } from "vitest";
import { chosenFiles, MOST_BYTES, merged, readFiles } from "./uploads";

function aFile(name: string, content: string | Uint8Array<ArrayBuffer>): File {
  const file = new File([content], name);
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  file.arrayBuffer = async () => bytes.buffer; // jsdom has none
  return file;
}

describe("uploads", () => {
  it("are text, as it is; anything else is named", async () => {
    const files = [
      aFile("a.py", "print('한')\r\n"),
      aFile("b.png", new Uint8Array([0x89, 0x50, 0xff])),
      aFile("c", "a\0b"),
      aFile("d", "x".repeat(MOST_BYTES + 1)),
    ];
    expect(await readFiles(chosenFiles(files))).toEqual({
      files: [{ path: "a.py", text: "print('한')\r\n" }],
      refused: ["b.png", "c", "d"],
    });
  });
  it("replace files of the same path", () => {
    const old = [
      { path: "b", text: "1" },
      { path: "a", text: "1" },
    ];
    expect(merged(old, [{ path: "b", text: "2" }])).toEqual([
      { path: "a", text: "1" },
      { path: "b", text: "2" },
    ]);
  });
});
