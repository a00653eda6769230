import { expect, it } from "vitest";
import { headline } from "./headline";

it("says what happened and the last words, without what stands between", () => {
  const words =
    "a-node-0/node ended with exit code 137: out of memory (OOMKilled): setup\nstep 1\n\u001b[31mKilled\u001b[0m\n";
  expect(headline(words)).toBe("a-node-0/node ended with exit code 137: out of memory (OOMKilled): Killed");
});

it("leaves a message of one line as it is", () => {
  expect(headline("2 CPU needed: 1.9 of 2 free\n")).toBe("2 CPU needed: 1.9 of 2 free");
  expect(headline("")).toBe("");
  expect(headline("it ended\nno space left")).toBe("it ended: no space left");
});
