/** A job to begin with. The server has it (`GET /api/v1/offers`), so that all doors start the same one. */
import { api, newKey } from "@/api/client";
import type { Job, JobSpec, WhoAmI } from "@/api/types";
import { ALL } from "@/session/session";
import { remembered } from "@/store";

/** Starts the sample in this namespace; throws a Problem. */
export async function startSample(namespace: string, key: string = newKey()): Promise<Job> {
  const { sample } = await api.get("/api/v1/offers");
  return api.post("/api/v1/namespaces/{namespace}/jobs", {
    path: { namespace },
    body: sample as unknown as JobSpec,
    idempotencyKey: key,
  });
}

export const LAST_NAMESPACE = "new.namespace";

/** Where a new job of this person goes: what lists are about, else where the last one went, else the server's default. */
export function homeNamespace(who: WhoAmI, chosen: string): string {
  if (chosen && chosen !== ALL) return chosen;
  const own = Object.keys(who.roles).sort();
  const last = remembered(LAST_NAMESPACE) ?? "";
  if (last && (who.is_administrator || own.includes(last))) return last;
  return who.default_namespace ?? own[0] ?? who.name.toLowerCase().replace(/[^a-z0-9]+/g, "-");
}
