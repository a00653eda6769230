/** What a job takes of its namespace's quota, counted as Kubernetes does when it admits the pods. */
import type { components } from "@/api/schema";
import { podSpecs } from "./fits";
import { parseQuantity } from "./quantity";

export type Quota = components["schemas"]["QuotaBody"];
export interface QuotaUse {
  resource: string;
  used: number;
  hard: number;
  takes: number;
}

type Loose = Record<string, unknown>;
type Sums = Record<string, number>;

/** The quotas that this job counts against: what is used, what there is, and what the job adds. */
export function quotaUses(objects: readonly Loose[], quotas: readonly Quota[]): QuotaUse[] {
  const takes = takenBy(objects);
  return quotas
    .map((each) => ({
      resource: each.resource,
      used: parseQuantity(each.used) ?? 0,
      hard: parseQuantity(each.hard) ?? 0,
      takes: takes[each.resource] ?? 0,
    }))
    .filter((each) => each.takes > 0);
}

function takenBy(objects: readonly Loose[]): Sums {
  const total: Sums = { pods: 0 };
  for (const { count, pod } of podSpecs(objects)) {
    add(total, { pods: 1 }, count);
    const requests = most(pod, (container) => ({ ...limitsOf(container), ...requestsOf(container) }));
    const limits = most(pod, limitsOf);
    for (const [name, amount] of Object.entries(requests)) {
      add(total, { [`requests.${name}`]: amount, [name]: amount }, count);
    }
    for (const [name, amount] of Object.entries(limits)) add(total, { [`limits.${name}`]: amount }, count);
  }
  return total;
}

/** All containers together, or one init container where that asks for more. */
function most(pod: Loose | undefined, of: (container: Loose) => Loose): Sums {
  const sums: Sums = {};
  for (const each of list(pod?.containers)) add(sums, numbers(of(each)));
  for (const each of list(pod?.initContainers)) {
    for (const [name, amount] of Object.entries(numbers(of(each)))) {
      sums[name] = Math.max(sums[name] ?? 0, amount);
    }
  }
  return sums;
}

function add(sums: Sums, more: Sums, times = 1): void {
  for (const [name, amount] of Object.entries(more)) sums[name] = (sums[name] ?? 0) + amount * times;
}

function numbers(amounts: Loose): Sums {
  return Object.fromEntries(
    Object.entries(amounts).map(([name, value]) => [name, parseQuantity(String(value)) ?? 0]),
  );
}

const resourcesOf = (container: Loose) => (container.resources ?? {}) as { limits?: Loose; requests?: Loose };
const limitsOf = (container: Loose) => resourcesOf(container).limits ?? {};
const requestsOf = (container: Loose) => resourcesOf(container).requests ?? {};
const list = (value: unknown) => (Array.isArray(value) ? (value as Loose[]) : []);
