/** What the address says about which jobs are shown. */
import type { Phase } from "@/api/types";
import type { Filter } from "@/live/jobList";

export const PHASES: readonly Phase[] = [
  ...(["Queued", "Pending", "Pulling", "Initializing", "Running"] as const),
  ...(["Restarting", "Suspended", "Complete", "Failed", "Deleting"] as const),
];
const OVER: readonly Phase[] = ["Complete", "Failed", "Deleting"];
/** Everything that still wants something. */
export const ACTIVE = PHASES.filter((phase) => !OVER.includes(phase)).join(",");
export const FRAMEWORKS: Readonly<Record<string, string>> = {
  pytorch: "PyTorch",
  tensorflow: "TensorFlow",
  horovod: "Horovod",
};
/** For `setQuery`: all jobs again. */
export const NO_FILTER = { q: null, phase: null, framework: null, owner: null };

export function filterOf(query: URLSearchParams): Filter {
  const wanted = (query.get("phase") ?? "").split(",");
  return {
    phases: PHASES.filter((phase) => wanted.includes(phase)),
    owner: query.get("owner") ?? "",
    framework: query.get("framework") ?? "",
    q: query.get("q") ?? "",
  };
}

export function isFiltered(filter: Filter): boolean {
  return filter.phases.length > 0 || Boolean(filter.owner || filter.framework || filter.q);
}
