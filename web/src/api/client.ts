/**
 * The only place that calls `fetch`: paths, parameters, bodies and answers are checked against `schema.ts`.
 *
 *     const page = await api.get("/api/v1/namespaces/{namespace}/jobs", { path: { namespace }, query: { limit: 50 } });
 *     await api.post("/api/v1/namespaces/{namespace}/jobs", { path, body, idempotencyKey: newKey() });
 *
 * It throws a `Problem` for everything but success; a call that was aborted throws an AbortError.
 */
import { isAbort, offline, problemOf } from "./problem";
import type { paths } from "./schema";

type Method = "get" | "post" | "put" | "delete";
type PathsWith<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths];
type Operation<P extends keyof paths, M extends Method> = paths[P] extends Record<M, infer O> ? O : never;

type PathOf<O> = O extends { parameters: { path: infer T } } ? { path: T } : { path?: never };
type QueryOf<O> = O extends { parameters: { query?: infer T } }
  ? { query?: NonNullable<T> }
  : { query?: never };
type BodyOf<O> = O extends { requestBody: { content: { "application/json": infer T } } }
  ? { body: T }
  : O extends { requestBody?: { content: { "application/json": infer T } } }
    ? { body?: T }
    : { body?: never };

interface Common {
  signal?: AbortSignal | undefined;
  /** Makes a repeated create answer what the first one did. */
  idempotencyKey?: string;
}
type Options<O> = PathOf<O> & QueryOf<O> & BodyOf<O> & Common;
type Arguments<O> = Record<never, never> extends Options<O> ? [options?: Options<O>] : [options: Options<O>];

type JsonOf<T> = T extends { content: { "application/json": infer J } } ? J : never;
type AnswerOf<O> = O extends { responses: infer R }
  ? { [S in keyof R]: S extends 200 | 201 | 202 ? JsonOf<R[S]> : S extends 204 ? undefined : never }[keyof R]
  : never;

let token = "";
let onUnauthenticated: () => void = () => {};

/** Set by the session alone. */
export function setToken(value: string, refused: () => void): void {
  token = value;
  onUnauthenticated = refused;
}

export function newKey(): string {
  // crypto.randomUUID is missing where the page came over plain HTTP from another machine.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** `/a/{b}` with its names filled in, and the query behind it; undefined and "" are left out. */
export function addressOf(
  template: string,
  path: Readonly<Record<string, unknown>> = {},
  query: Readonly<Record<string, unknown>> = {},
): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])));
  const given = Object.entries(query).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${filled}?${text}` : filled;
}

/** A request with the caller's token; for downloads and streams. Throws a Problem for everything but success. */
export async function request(address: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const sent = token;
  if (sent) headers.set("authorization", `Bearer ${sent}`);
  let answer: Response;
  try {
    answer = await fetch(address, {
      ...init,
      headers,
      cache: "no-cache",
      credentials: "omit",
      redirect: "error",
    });
  } catch (error) {
    throw isAbort(error) ? error : offline(error);
  }
  if (answer.ok) return answer;
  if (answer.status === 401 && sent === token) onUnauthenticated();
  throw await problemOf(answer);
}

/** JSON of the issuer of OpenID Connect: without our token, and the policy lets the page ask nobody else. */
export async function askIssuer(address: string, form?: Record<string, string>): Promise<unknown> {
  const init: RequestInit = form ? { method: "POST", body: new URLSearchParams(form) } : {};
  try {
    const answer = await fetch(address, {
      ...init,
      headers: { accept: "application/json" },
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
    if (answer.ok) return await answer.json();
    throw await problemOf(answer);
  } catch (error) {
    throw error instanceof Error && error.name === "Problem" ? error : offline(error);
  }
}

interface Loose extends Common {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
}

async function call(method: Method, template: string, options: Loose = {}): Promise<unknown> {
  const headers: Record<string, string> = { accept: "application/json" };
  const init: RequestInit = { method: method.toUpperCase(), headers, signal: options.signal ?? null };
  if (options.idempotencyKey) headers["idempotency-key"] = options.idempotencyKey;
  if (options.body !== undefined) {
    headers["content-type"] = "application/json";
    init.body = JSON.stringify(options.body);
  }
  const answer = await request(addressOf(template, options.path, options.query), init);
  if (answer.status === 204) return undefined;
  try {
    return await answer.json();
  } catch (error) {
    throw isAbort(error) ? error : offline(error);
  }
}

function verb<M extends Method>(method: M) {
  return <P extends PathsWith<M>>(
    path: P,
    ...given: Arguments<Operation<P, M>>
  ): Promise<AnswerOf<Operation<P, M>>> =>
    call(method, path, given[0] as Loose | undefined) as Promise<AnswerOf<Operation<P, M>>>;
}

export const api = { get: verb("get"), post: verb("post"), put: verb("put"), delete: verb("delete") };
