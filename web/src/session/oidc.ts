/**
 * Sign-in by OpenID Connect: authorization code with PKCE, as a public client. The page checks that the answer belongs
 * to its own question (state, nonce, issuer); whether the token is genuine is checked by the server, each time.
 */
import { askIssuer } from "@/api/client";

export interface Client {
  issuer: string;
  client_id: string;
}

/** What is asked now and needed when the browser comes back; kept by the tab. */
interface Question {
  issuer: string;
  clientId: string;
  tokenEndpoint: string;
  state: string;
  nonce: string;
  verifier: string;
  /** Where the person was. */
  place: string;
}

export interface Answer {
  token: string;
  expiresAt: number;
  place: string;
}

/** Why it did not work; words for it are in the catalogue. */
export type Failure = "insecure" | "issuer" | "denied" | "stale" | "forged";

export class SignInFailed extends Error {
  readonly why: Failure;
  constructor(why: Failure) {
    super(why);
    this.why = why;
  }
}

const KEY = "astrago.oidc";
export const CALLBACK = "/sign-in";
const here = () => `${location.origin}${CALLBACK}`;

/** Leaves the page for the issuer's. */
export async function goToIssuer(client: Client, place: string): Promise<void> {
  // Browsers have no hashing for pages over plain HTTP from another machine, and PKCE cannot be without.
  if (!crypto.subtle) throw new SignInFailed("insecure");
  const endpoints = await discover(client.issuer);
  const question: Question = {
    issuer: client.issuer,
    clientId: client.client_id,
    tokenEndpoint: endpoints.token,
    state: random(),
    nonce: random(),
    verifier: random(),
    place,
  };
  const address = new URL(endpoints.authorization);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(question.verifier));
  for (const [name, value] of Object.entries({
    response_type: "code",
    client_id: client.client_id,
    redirect_uri: here(),
    scope: "openid profile email",
    state: question.state,
    nonce: question.nonce,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
  }))
    address.searchParams.set(name, value);
  sessionStorage.setItem(KEY, JSON.stringify(question));
  location.assign(address);
}

/** Whether this address is the issuer's answer. */
export function isAnswer(path: string, query: URLSearchParams): boolean {
  return path === CALLBACK && query.has("state") && (query.has("code") || query.has("error"));
}

/** What the answer is worth; a question is answered once. Throws SignInFailed or a Problem. */
export async function readAnswer(query: URLSearchParams, now: number = Date.now()): Promise<Answer> {
  const kept = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  const question = kept ? (JSON.parse(kept) as Question) : null;
  if (!question || query.get("state") !== question.state) throw new SignInFailed("stale");
  const from = query.get("iss");
  if (from !== null && from !== question.issuer) throw new SignInFailed("forged");
  const code = query.get("code");
  if (!code) throw new SignInFailed("denied");
  const said = await askIssuer(question.tokenEndpoint, {
    grant_type: "authorization_code",
    code,
    redirect_uri: here(),
    client_id: question.clientId,
    code_verifier: question.verifier,
  });
  const token = textOf(said, "id_token");
  const claims = claimsOf(token);
  const audience = [claims.aud].flat();
  const expiresAt = Number(claims.exp) * 1000;
  if (claims.nonce !== question.nonce || claims.iss !== question.issuer) throw new SignInFailed("forged");
  if (!audience.includes(question.clientId) || !(expiresAt > now)) throw new SignInFailed("forged");
  return { token, expiresAt, place: question.place };
}

async function discover(issuer: string): Promise<{ authorization: string; token: string }> {
  const about = await askIssuer(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  const authorization = textOf(about, "authorization_endpoint");
  const token = textOf(about, "token_endpoint");
  // The policy of the page allows the issuer's own origin and no other.
  if (textOf(about, "issuer") !== issuer || new URL(token).origin !== new URL(issuer).origin)
    throw new SignInFailed("issuer");
  const isSafe = ["https:", new URL(issuer).protocol].includes(new URL(authorization).protocol);
  if (!isSafe) throw new SignInFailed("issuer");
  return { authorization, token };
}

function textOf(found: unknown, name: string): string {
  const value = (found as Record<string, unknown> | null)?.[name];
  if (typeof value !== "string" || !value) throw new SignInFailed("issuer");
  return value;
}

export function claimsOf(token: string): Record<string, unknown> {
  try {
    const part = (token.split(".")[1] ?? "").replace(/-/g, "+").replace(/_/g, "/");
    const bytes = Uint8Array.from(atob(part), (letter) => letter.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof claims === "object" && claims !== null) return claims as Record<string, unknown>;
  } catch {
    // told below
  }
  throw new SignInFailed("issuer");
}

function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=+$/, "");
}
