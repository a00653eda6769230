import { describe, expect, it } from "vitest";
import { lastState, pieces, plain } from "./ansi";

describe("pieces", () => {
  it("gives colours and styles names", () => {
    expect(pieces("a \u001b[1;31mred\u001b[0m b")).toEqual([
      { text: "a ", look: "" },
      { text: "red", look: "bold red" },
      { text: " b", look: "" },
    ]);
    expect(pieces("\u001b[92;44mx\u001b[39my\u001b[mz").map((each) => each.look)).toEqual([
      "green on-blue",
      "on-blue",
      "",
    ]);
    expect(pieces("\u001b[7mx")[0]?.look).toBe("inverse");
  });
  it("knows 256 and all colours by the nearest of eight", () => {
    const look = (codes: string) => pieces(`\u001b[${codes}mx`)[0]?.look;
    expect(look("38;5;9")).toBe("red");
    expect(look("38;5;46")).toBe("green");
    expect(look("38;5;240")).toBe("black");
    expect(look("38;2;10;20;250;1")).toBe("bold blue");
    expect(look("48;2;255;255;0")).toBe("on-yellow");
    expect(look("38;5")).toBe("black");
  });
  it("leaves out what would move the cursor, name a window or hide a link", () => {
    const text =
      "\u001b[2Ja\u001b[1;1Hb\u001b]0;title\u0007c\u001b]8;;http://evil\u0007d\u001b]8;;\u001b\\e\u001bcf\u001b7g";
    expect(plain(text)).toBe("abcdefg");
    expect(plain("a\u001b]0;never ends")).toBe("a");
    expect(plain("a\u001bPq\u001b\\b\u001b")).toBe("ab");
    expect(plain("\u009b31mx")).toBe("x");
  });
  it("shows control characters, and leaves markup alone", () => {
    expect(plain("a\u0000b\u0007c\u0008d\u007f\te")).toBe("a␀b␇c␈d␡\te");
    expect(pieces("<script>alert(1)</script>")).toEqual([{ text: "<script>alert(1)</script>", look: "" }]);
  });
  it("is quick on a line of nothing but escapes", () => {
    const began = performance.now();
    plain("\u001b[".repeat(50_000));
    plain("\u001b]".repeat(50_000));
    expect(performance.now() - began).toBeLessThan(2000);
  });
});

describe("lastState", () => {
  it("is what stands after the last carriage return that something followed", () => {
    expect(lastState("1%\r50%\r100%")).toBe("100%");
    expect(lastState("100%\r")).toBe("100%");
    expect(lastState("1%\r2%\r\r")).toBe("2%");
    expect(lastState("plain")).toBe("plain");
  });
});
