import type { components } from "./schema";

export type FieldError = components["schemas"]["FieldError"];
type Body = components["schemas"]["ProblemBody"];

/** What the server said is wrong (RFC 9457), or that it said nothing: then `status` is 0. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly errors: readonly FieldError[];
  readonly ability: string;
  readonly requestId: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(body: Partial<Body> & { status: number; code: string }, retryAfterSeconds?: number) {
    super(body.detail ?? body.title ?? body.code);
    this.name = "Problem";
    this.status = body.status;
    this.code = body.code;
    this.errors = body.errors ?? [];
    this.ability = body.ability ?? "";
    this.requestId = body.request_id ?? "";
    this.retryAfterSeconds = retryAfterSeconds;
  }

  /** Nothing reached the server, or nothing came back. */
  get isOffline(): boolean {
    return this.status === 0;
  }
}

export function offline(cause: unknown): Problem {
  const problem = new Problem({ status: 0, code: "offline", detail: "the server does not answer." });
  problem.cause = cause;
  return problem;
}

/** Of an answer that is no success; a proxy's page of HTML becomes a problem too. */
export async function problemOf(answer: Response): Promise<Problem> {
  const retry = Number(answer.headers.get("retry-after") ?? Number.NaN);
  const after = Number.isFinite(retry) ? retry : undefined;
  const text = await answer.text().catch(() => "");
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === "object" && body !== null && "code" in body) {
      return new Problem({ ...(body as Body), status: answer.status }, after);
    }
  } catch {
    // no JSON: told below
  }
  const detail = `the server answered ${answer.status} ${answer.statusText}`.trim();
  return new Problem({ status: answer.status, code: "unknown", detail }, after);
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Everything that is thrown becomes something that can be shown. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new Problem({ status: -1, code: "page", detail });
}
