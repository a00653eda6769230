/** Amounts as Kubernetes writes them (`500m`, `16Gi`), and as numbers that a slider can show. */

const SUFFIXES: Readonly<Record<string, number>> = {
  "": 1,
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};
const GI = 2 ** 30;

/** The number behind a quantity; null where it is none. */
export function parseQuantity(text: string): number | null {
  const found = /^([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:([eE][-+]?[0-9]+)|([numkMGTPE]i?|Ki))?$/.exec(text.trim());
  if (!found) return null;
  const factor = found[2] ? Number(`1${found[2]}`) : SUFFIXES[found[3] ?? ""];
  return factor === undefined ? null : Number(found[1]) * factor;
}

/** What a slider of cores shows; 0 stands for nothing asked. */
export function toCores(text: string): number {
  return rounded(parseQuantity(text) ?? 0);
}

export function fromCores(cores: number): string {
  return cores > 0 ? String(rounded(cores)) : "";
}

export function toGi(text: string): number {
  return rounded((parseQuantity(text) ?? 0) / GI);
}

export function fromGi(size: number): string {
  if (size <= 0) return "";
  return Number.isInteger(size) ? `${size}Gi` : `${Math.round(size * 1024)}Mi`;
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
