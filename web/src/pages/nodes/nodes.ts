/** What a list of nodes adds up to. */
import type { components } from "@/api/schema";

export type Node = components["schemas"]["NodeBody"];
export type Amounts = components["schemas"]["AmountsBody"];

export function total(nodes: readonly Node[], of: (node: Node) => Amounts): Amounts {
  const sum = { cpu: 0, memory: 0, gpus: 0 };
  for (const node of nodes) {
    const amounts = of(node);
    sum.cpu += amounts.cpu;
    sum.memory += amounts.memory;
    sum.gpus += amounts.gpus;
  }
  return sum;
}

/** How full: 0 where there is nothing to fill. */
export function share(used: number, capacity: number): number {
  return capacity > 0 ? used / capacity : 0;
}

/** Full is no fault: it is what nodes are for. */
export function toneOf(fraction: number): "accent" | "warn" {
  return fraction >= 0.95 ? "warn" : "accent";
}
