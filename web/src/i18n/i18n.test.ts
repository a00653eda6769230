import { describe, expect, it } from "vitest";
import { catalogues, formats, translator } from "./i18n";

function flat(language: "en" | "ko"): Map<string, string> {
  return new Map(
    Object.entries(catalogues[language]).flatMap(([page, texts]) =>
      Object.entries(texts).map(([name, text]) => [`${page}.${name}`, text] as const),
    ),
  );
}

const placeholders = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((found) => found[1]).sort();

describe("the catalogues", () => {
  const en = flat("en");
  const ko = flat("ko");

  it("have the same keys", () => {
    expect([...ko.keys()].sort()).toEqual([...en.keys()].sort());
  });
  it("have no empty text, and the same placeholders", () => {
    for (const [key, text] of en) {
      expect(text.trim(), key).not.toBe("");
      expect(ko.get(key)?.trim(), key).not.toBe("");
      expect(placeholders(ko.get(key) ?? ""), key).toEqual(placeholders(text));
    }
  });
  it("are translated: a Korean text without Hangul is the same word in both languages", () => {
    for (const [key, text] of ko) if (!/\p{Script=Hangul}/u.test(text)) expect(text, key).toBe(en.get(key));
  });
});

describe("formats", () => {
  it("write durations in at most two units", () => {
    const { duration } = formats("en");
    expect([0, 59.6, 3600, 3725, 90061].map(duration)).toEqual(["0s", "1m", "1h", "1h 2m", "1d 1h"]);
  });
  it("speak of the past in the language", () => {
    const now = Date.parse("2026-11-15T12:00:00Z");
    expect(formats("en").ago("2026-11-15T11:57:00Z", now)).toBe("3 min. ago");
    expect(formats("ko").ago("2026-11-15T11:57:00Z", now)).toBe("3분 전");
  });
  it("know one from many", () => {
    expect(translator("en").plural("common.problems", 1)).toBe("1 problem");
    expect(translator("en").plural("common.problems", 1200)).toBe("1,200 problems");
    expect(translator("ko").plural("common.problems", 2)).toBe("문제 2개");
    expect(translator("en").plural("jobs.restarts", 1, { most: 3 })).toBe("1 restart of at most 3");
  });
});
