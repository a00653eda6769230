import { describe, expect, it } from "vitest";
import { EventReader } from "./sse";
import { pauseMs } from "./stream";

const TEXT = ': still here\n\nevent: changed\nid: 7\ndata: {"name":"한글"}\n\ndata: a\r\ndata: b\r\n\r\n';
const EVENTS = [
  { event: "changed", data: '{"name":"한글"}', id: "7" },
  { event: "message", data: "a\nb", id: "7" },
];

describe("EventReader", () => {
  it("gives the same events however the text is cut", () => {
    for (let size = 1; size <= TEXT.length; size++) {
      const reader = new EventReader();
      const found = [];
      for (let at = 0; at < TEXT.length; at += size) found.push(...reader.read(TEXT.slice(at, at + size)));
      expect(found).toEqual(EVENTS);
      expect(reader.lastId).toBe("7");
    }
  });
  it("keeps back what has not ended", () => {
    const reader = new EventReader();
    expect(reader.read("data: x\n")).toEqual([]);
    expect(reader.read("\n")).toHaveLength(1);
  });
});

describe("pauseMs", () => {
  it("grows, is spread, and has an end", () => {
    expect([1, 2, 3, 4].map((failures) => pauseMs(failures, 1))).toEqual([500, 1000, 2000, 4000]);
    expect(pauseMs(1, 0)).toBe(250);
    expect(pauseMs(50, 1)).toBe(15_000);
  });
});
