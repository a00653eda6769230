import { describe, expect, it } from "vitest";
import type { LogLine, LogWindow } from "@/api/types";
import { CHUNK, LogBook } from "./logBook";

function aLine(rank: number, offset: number, fields: Partial<LogLine> = {}): LogLine {
  return {
    ...{ attempt: 0, rank, offset, next: offset + 10, time: offset, text: `${rank}:${offset}`, ended: true },
    ...{ cut: false, dropped: null, ...fields },
  };
}
function aWindow(fields: Partial<LogWindow> = {}): LogWindow {
  return {
    ...{ run: 1, total: 0, first: 0, at: null, until: "0:0:0,0:1:0", is_over: false, ranks: [0, 1] },
    ...{ containers: ["node"], attempts: [{ attempt: 0, first: 0, total: 0 }], items: [] },
    ...fields,
  };
}
const texts = (book: LogBook) =>
  Array.from({ length: book.count }, (_, number) => book.line(number)?.text ?? "?");

describe("LogBook", () => {
  it("puts what comes behind what is there", () => {
    const book = new LogBook();
    book.refreshed(aWindow({ total: 2, until: "0:0:10,0:1:10", items: [aLine(0, 0), aLine(1, 0)] }));
    book.heard([aLine(1, 10), aLine(0, 10)]);
    expect(texts(book)).toEqual(["0:0", "1:0", "1:10", "0:10"]);
  });
  it("replaces a line that has not ended, and takes nothing twice", () => {
    const book = new LogBook();
    book.refreshed(aWindow());
    book.heard([aLine(0, 0, { ended: false, next: 0, text: "1%" }), aLine(1, 0)]);
    book.heard([aLine(0, 0, { ended: false, next: 0, text: "50%" })]);
    expect(texts(book)).toEqual(["50%", "1:0"]);
    book.heard([aLine(0, 0, { text: "100%", next: 30 })]);
    // The connection was lost and its end comes again.
    book.heard([aLine(0, 0, { text: "100%", next: 30 }), aLine(1, 0), aLine(0, 30)]);
    expect(texts(book)).toEqual(["100%", "1:0", "0:30"]);
  });
  it("counts live lines into the history without losing or doubling one", () => {
    const book = new LogBook();
    book.refreshed(aWindow());
    book.heard([aLine(0, 0), aLine(1, 0), aLine(0, 10), aLine(1, 10, { ended: false, next: 10 })]);
    book.refreshed(
      aWindow({ total: 3, until: "0:0:20,0:1:10", items: [aLine(0, 0), aLine(1, 0), aLine(0, 10)] }),
    );
    expect(texts(book)).toEqual(["0:0", "1:0", "0:10", "1:10"]);
    book.heard([aLine(1, 10), aLine(0, 20)]);
    expect(texts(book)).toEqual(["0:0", "1:0", "0:10", "1:10", "0:20"]);
  });
  it("has a heading for each attempt when there are several, also of one that begins live", () => {
    const book = new LogBook();
    book.refreshed(aWindow({ total: 2, until: "0:0:20", items: [aLine(0, 0), aLine(0, 10)] }));
    expect(book.headings).toEqual([]);
    book.heard([aLine(0, 20), aLine(0, 0, { attempt: 1 }), aLine(0, 10, { attempt: 1 })]);
    expect(book.headings).toEqual([
      { attempt: 0, line: 0 },
      { attempt: 1, line: 3 },
    ]);
    book.refreshed(
      aWindow({
        total: 4,
        until: "1:0:10",
        attempts: [
          { attempt: 0, first: 0, total: 3 },
          { attempt: 1, first: 3, total: 1 },
        ],
      }),
    );
    expect(book.count).toBe(5);
    expect(book.line(4)?.offset).toBe(10);
  });
  it("asks for the windows that are not there, the nearest first", () => {
    const book = new LogBook();
    book.refreshed(aWindow({ total: 10 * CHUNK }));
    expect(book.missing(1.5 * CHUNK, 3.2 * CHUNK)).toEqual([2 * CHUNK, CHUNK, 3 * CHUNK]);
    const items = Array.from({ length: CHUNK }, (_, index) => aLine(0, index * 10));
    book.add(aWindow({ total: 10 * CHUNK, first: 2 * CHUNK, items }));
    expect(book.missing(2 * CHUNK, 2 * CHUNK + 50)).toEqual([]);
    expect(book.missing(9.9 * CHUNK, 12 * CHUNK)).toEqual([9 * CHUNK]);
  });
  it("keeps what is near", () => {
    const book = new LogBook();
    book.refreshed(aWindow({ total: 1_000_000 }));
    for (let first = 0; first < 100 * CHUNK; first += CHUNK) {
      const items = Array.from({ length: CHUNK }, (_, index) => aLine(0, (first + index) * 10));
      book.add(aWindow({ total: 1_000_000, first, items }));
    }
    expect(book.line(100)).toBeUndefined();
    expect(book.line(99 * CHUNK)).toBeDefined();
  });
});
