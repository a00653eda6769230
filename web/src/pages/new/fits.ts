/** What fits where: the pods that a preview shows, and the nodes that there are. */
import type { components } from "@/api/schema";
import { parseQuantity } from "./quantity";

export type Node = components["schemas"]["NodeBody"];
export interface Amounts {
  cpu: number;
  memory: number;
  gpus: number;
}
export interface PodGroup extends Amounts {
  /** Of the replicated job: `node`, `launcher`. */
  name: string;
  count: number;
}
export type Shortage = { kind: "cpu" | "memory" | "gpus"; needed: number; free: number; capacity: number };
export interface Place {
  node: string;
  /** How many of the job's pods have room now. */
  pods: number;
  /** Why no more: what is short, or what the node says itself. */
  shortages: Shortage[];
  remarks: string[];
  isReady: boolean;
}
export interface Fit {
  wanted: number;
  placed: number;
  places: Place[];
}

type Loose = Record<string, unknown>;

/** The groups of pods in the JobSet of a preview. */
export function podGroups(objects: readonly Loose[]): PodGroup[] {
  return podSpecs(objects).map(({ name, count, pod }) => ({ name, count, ...needs(pod) }));
}

/** The same with the pod of each as it is. */
export function podSpecs(
  objects: readonly Loose[],
): { name: string; count: number; pod: Loose | undefined }[] {
  return list(at(objects[0], "spec", "replicatedJobs")).map((job) => {
    const template = at(job, "template", "spec") as Loose | undefined;
    const replicas = Number(job.replicas ?? 1);
    const parallel = Number(template?.parallelism ?? template?.completions ?? 1);
    return {
      name: String(job.name ?? ""),
      count: replicas * parallel,
      pod: at(template, "template", "spec") as Loose | undefined,
    };
  });
}

/** What the scheduler counts: containers together, or one init container where that needs more. */
function needs(pod: Loose | undefined): Amounts {
  const total = add(list(pod?.containers).map(requests));
  const first = list(pod?.initContainers).map(requests);
  return {
    cpu: Math.max(total.cpu, ...first.map((each) => each.cpu)),
    memory: Math.max(total.memory, ...first.map((each) => each.memory)),
    gpus: Math.max(total.gpus, ...first.map((each) => each.gpus)),
  };
}

function requests(container: Loose): Amounts {
  const limits = (at(container, "resources", "limits") ?? {}) as Loose;
  const asked = { ...limits, ...((at(container, "resources", "requests") ?? {}) as Loose) };
  const gpus = Object.entries(asked).filter(([name]) => name.endsWith("/gpu"));
  return {
    cpu: parseQuantity(String(asked.cpu ?? "0")) ?? 0,
    memory: parseQuantity(String(asked.memory ?? "0")) ?? 0,
    gpus: gpus.reduce((sum, [, value]) => sum + (parseQuantity(String(value)) ?? 0), 0),
  };
}

function add(values: Amounts[]): Amounts {
  return values.reduce(
    (sum, each) => ({
      cpu: sum.cpu + each.cpu,
      memory: sum.memory + each.memory,
      gpus: sum.gpus + each.gpus,
    }),
    { cpu: 0, memory: 0, gpus: 0 },
  );
}

/** The pods one after the other onto the nodes as they are now: largest groups first, fullest use last. */
export function fitOf(groups: readonly PodGroup[], nodes: readonly Node[]): Fit {
  const places = nodes.map((node) => ({
    node,
    free: { ...node.free },
    place: {
      node: node.name,
      pods: 0,
      shortages: [] as Shortage[],
      remarks: node.remarks,
      isReady: node.ready,
    },
  }));
  const wanted = groups.reduce((sum, each) => sum + each.count, 0);
  let placed = 0;
  const order = [...groups].sort((a, b) => b.gpus - a.gpus || b.cpu - a.cpu || b.memory - a.memory);
  for (const group of order) {
    for (let left = group.count; left > 0; left--) {
      const target = places.find(
        ({ node, free }) => isOpen(node) && shortages(group, free, node).length === 0,
      );
      if (!target) break;
      target.free = {
        cpu: target.free.cpu - group.cpu,
        memory: target.free.memory - group.memory,
        gpus: target.free.gpus - group.gpus,
      };
      target.place.pods++;
      placed++;
    }
  }
  const largest = order[0];
  for (const each of places) {
    if (largest) each.place.shortages = shortages(largest, each.free, each.node);
  }
  return { wanted, placed, places: places.map((each) => each.place) };
}

/** A node that is cordoned is ready, and takes nothing. */
function isOpen(node: Node): boolean {
  return node.ready && !node.remarks.includes("unschedulable");
}

const SLACK = 1e-9; // sums of fractions of cores

function shortages(need: Amounts, free: Amounts, node: Node): Shortage[] {
  return (["cpu", "memory", "gpus"] as const)
    .filter((kind) => need[kind] > free[kind] + SLACK)
    .map((kind) => ({ kind, needed: need[kind], free: free[kind], capacity: node.capacity[kind] }));
}

function at(value: unknown, ...keys: string[]): unknown {
  return keys.reduce<unknown>(
    (found, key) => (typeof found === "object" && found !== null ? (found as Loose)[key] : undefined),
    value,
  );
}

function list(value: unknown): Loose[] {
  return Array.isArray(value) ? (value as Loose[]) : [];
}
