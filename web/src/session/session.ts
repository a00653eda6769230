/**
 * Who is here. A server without authentication names the person at its machine and asks for nothing. A token is kept
 * by the tab, and forgotten at sign-out and as soon as the server refuses it.
 */
import { api, setToken } from "@/api/client";
import { asProblem, type Problem } from "@/api/problem";
import type { WhoAmI } from "@/api/types";
import { navigate } from "@/router/router";
import { createStore, remember, remembered, useStore } from "@/store";
import { CALLBACK, type Failure, isAnswer, readAnswer, SignInFailed } from "./oidc";

/** Why nobody is signed in: said where they sign in again. */
export type Why = "" | "left" | "refused" | "expired" | Failure;

export type Session =
  | { kind: "asking" }
  | { kind: "signed-out"; why: Why }
  | { kind: "unreachable"; problem: Problem }
  | { kind: "signed-in"; who: WhoAmI };

const KEY = "astrago.token";
/** Milliseconds since 1970; kept for tokens that say so. */
const EXPIRY_KEY = "astrago.token.expires";
const session = createStore<Session>({ kind: "asking" });
let expiry: ReturnType<typeof setTimeout> | undefined;

export function useSession(): Session {
  return useStore(session);
}

/** Inside of the shell somebody is always signed in. */
export function useWho(): WhoAmI {
  const now = useSession();
  if (now.kind !== "signed-in") throw new Error("nobody is signed in");
  return now.who;
}

export async function begin(): Promise<void> {
  const query = new URLSearchParams(location.search);
  if (isAnswer(location.pathname, query)) return await arrive(query);
  const kept = sessionStorage.getItem(KEY) ?? "";
  setToken(kept, () => end("refused"));
  try {
    const who = await api.get("/api/v1/whoami");
    endLater(Number(sessionStorage.getItem(EXPIRY_KEY) ?? Number.NaN));
    session.set({ kind: "signed-in", who });
    if (location.pathname === CALLBACK) navigate("/", { replace: true });
  } catch (error) {
    const problem = asProblem(error);
    if (problem.status !== 401) session.set({ kind: "unreachable", problem });
    else {
      forget();
      session.set({ kind: "signed-out", why: kept ? "refused" : "" });
    }
  }
}

/** Back from the issuer. */
async function arrive(query: URLSearchParams): Promise<void> {
  navigate(CALLBACK, { replace: true }); // a code is good once, and belongs in no history
  try {
    const { token, expiresAt, place } = await readAnswer(query);
    await signIn(token, expiresAt);
    navigate(place, { replace: true });
  } catch (error) {
    const why = error instanceof SignInFailed ? error.why : asProblem(error).isOffline ? "issuer" : "refused";
    session.set({ kind: "signed-out", why });
  }
}

/** Throws a Problem with status 401 for a token that the server does not take. */
export async function signIn(token: string, expiresAt: number = Number.NaN): Promise<void> {
  setToken(token, () => {});
  try {
    const who = await api.get("/api/v1/whoami");
    sessionStorage.setItem(KEY, token);
    sessionStorage.setItem(EXPIRY_KEY, String(expiresAt));
    setToken(token, () => end("refused"));
    endLater(expiresAt);
    session.set({ kind: "signed-in", who });
    if (location.pathname === CALLBACK) navigate("/", { replace: true });
  } catch (error) {
    setToken("", () => {});
    throw error;
  }
}

export function signOut(): void {
  forget();
  session.set({ kind: "signed-out", why: "left" });
}

/** What timers can wait for at most: 24 days. */
const LONGEST_MS = 2 ** 31 - 1;

function endLater(at: number): void {
  clearTimeout(expiry);
  if (!Number.isFinite(at)) return;
  const left = at - Date.now();
  if (left <= 0) end("expired");
  else expiry = setTimeout(() => endLater(at), Math.min(left, LONGEST_MS));
}

/** The token is too old, or the server refuses it. The address stays, so that one goes on where one was. */
function end(why: "refused" | "expired"): void {
  const wasIn = session.get().kind === "signed-in";
  forget();
  if (wasIn) session.set({ kind: "signed-out", why });
}

function forget(): void {
  clearTimeout(expiry);
  sessionStorage.removeItem(KEY);
  sessionStorage.removeItem(EXPIRY_KEY);
  setToken("", () => {});
}

export const ALL = "-";
const chosen = createStore(remembered("namespace") ?? "");

/** Namespaces that this person may look into; `-` stands for all, for administrators of the installation. */
export function namespacesOf(who: WhoAmI): string[] {
  const own = Object.keys(who.roles).sort();
  return who.is_administrator ? [ALL, ...own] : own;
}

/** The namespace that lists are about, and the choice of another. "" where somebody has none. */
export function useNamespace(): [string, (value: string) => void] {
  const offered = namespacesOf(useWho());
  const wanted = useStore(chosen);
  const value = offered.includes(wanted) ? wanted : (offered[0] ?? "");
  return [
    value,
    (next) => {
      remember("namespace", next);
      chosen.set(next);
    },
  ];
}

const RANKS = ["viewer", "member", "administrator"];

/** Whether somebody has at least this role there; a button for what is refused is not shown. */
export function may(who: WhoAmI, role: "viewer" | "member" | "administrator", namespace: string): boolean {
  if (who.is_administrator) return true;
  return RANKS.indexOf(who.roles[namespace] ?? "") >= RANKS.indexOf(role);
}

/** Whether the page of administration has anything for them. */
export function mayGovern(who: WhoAmI): boolean {
  return who.is_administrator || Object.values(who.roles).includes("administrator");
}
