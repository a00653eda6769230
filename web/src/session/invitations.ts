/** Invitations of the person who is here: shown in the shell and where they are answered, so both read one state. */
import { api } from "@/api/client";
import type { components } from "@/api/schema";
import { type Loaded, useLoad } from "@/api/useLoad";
import { createStore, useStore } from "@/store";
import { begin, useWho } from "./session";

export type Invitation = components["schemas"]["InvitationBody"];

/** How many answers were given; each makes the list another one. */
const answers = createStore(0);

export function useInvitations(): Loaded<{ items: readonly Invitation[] }> {
  const who = useWho();
  const turn = useStore(answers);
  // A server without sign-in has no invitations, and a backend's token may not ask for any.
  const hasAny = who.authentication !== "off" && who.backend.length === 0;
  return useLoad(`invitations ${who.name} ${turn}`, async (signal) =>
    hasAny ? await api.get("/api/v1/invitations", { signal }) : { items: [] },
  );
}

export async function answer(tenant: string, isAccepted: boolean): Promise<void> {
  const path = { tenant };
  if (isAccepted) await api.post("/api/v1/invitations/{tenant}:accept", { path });
  else await api.post("/api/v1/invitations/{tenant}:decline", { path });
  answers.set(answers.get() + 1);
  if (isAccepted) await begin(); // what one may is different now
}
