import { expect, it } from "vitest";
import { formats, translator } from "@/i18n/i18n";
import { type Shortfall, shortfallText } from "./shortfall";

const SHORT: Shortfall = {
  asked: { cpu: 4, memory: 16 * 2 ** 30, gpus: 1 },
  nodes: 2,
  has: { cpu: 2, memory: 23 * 2 ** 30, gpus: 0 },
  is_refused: false,
  message: "",
};
const said = (short: Shortfall, language: "en" | "ko") =>
  shortfallText(short, translator(language), formats(language));

it("says what was asked for, what there is, and what follows", () => {
  expect(said(SHORT, "en")).toBe(
    "Asked for 4 CPU, 16 GiB, 1 GPU per node on 2 nodes; this machine has 2 CPU, 23 GiB, no GPU. The job runs on CPU.",
  );
  expect(said(SHORT, "ko")).toBe(
    "요청: 노드 2대, 노드당 4 CPU, 16 GiB, GPU 1개. 이 머신: 2 CPU, 23 GiB, GPU 없음. CPU로 실행합니다.",
  );
});

it("names only what was asked for, and tells a refusal", () => {
  const one = { ...SHORT, asked: { cpu: 4, memory: 0, gpus: 0 }, nodes: 1 };
  expect(said(one, "en")).toBe(
    "Asked for 4 CPU; this machine has 2 CPU, 23 GiB, no GPU. The job runs with what there is.",
  );
  expect(said({ ...one, is_refused: true }, "en")).toContain("will be refused");
});
