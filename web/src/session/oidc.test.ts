import { beforeEach, describe, expect, it, vi } from "vitest";
import { claimsOf, isAnswer, readAnswer } from "./oidc";

const QUESTION = {
  issuer: "https://login.example.com",
  clientId: "astrago",
  tokenEndpoint: "https://login.example.com/token",
  state: "s1",
  nonce: "n1",
  verifier: "v1",
  place: "/jobs?q=a",
};
const NOW = 1_800_000_000_000;
const CLAIMS = { iss: QUESTION.issuer, aud: "astrago", nonce: "n1", exp: NOW / 1000 + 600, sub: "안녕" };

function tokenOf(claims: object): string {
  const bytes = new TextEncoder().encode(JSON.stringify(claims));
  const part = btoa(String.fromCharCode(...bytes))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=+$/, "");
  return `e30.${part}.sig`;
}

function answers(claims: object) {
  const fetched = vi.fn(async () => Response.json({ id_token: tokenOf(claims) }));
  vi.stubGlobal("fetch", fetched);
  return fetched;
}

const read = (text: string) => readAnswer(new URLSearchParams(text), NOW);

describe("the issuer's answer", () => {
  beforeEach(() => sessionStorage.setItem("astrago.oidc", JSON.stringify(QUESTION)));

  it("gives the token and where the person was, once", async () => {
    const fetched = answers(CLAIMS);
    const found = await read("state=s1&code=c1&iss=https://login.example.com");
    expect(found).toEqual({ token: tokenOf(CLAIMS), expiresAt: NOW + 600_000, place: "/jobs?q=a" });
    const [, init] = fetched.mock.calls[0] as unknown as [string, RequestInit];
    expect(String(init.body)).toContain("code_verifier=v1");
    expect(init.credentials).toBe("omit");
    await expect(read("state=s1&code=c1")).rejects.toMatchObject({ why: "stale" });
  });
  it.each([
    ["a state that is not ours", "state=s2&code=c1", CLAIMS, "stale"],
    ["another issuer", "state=s1&code=c1&iss=https://evil.example", CLAIMS, "forged"],
    ["a refusal", "state=s1&error=access_denied", CLAIMS, "denied"],
    ["a nonce that is not ours", "state=s1&code=c1", { ...CLAIMS, nonce: "n2" }, "forged"],
    ["a token of another issuer", "state=s1&code=c1", { ...CLAIMS, iss: "https://evil.example" }, "forged"],
    ["a token for another client", "state=s1&code=c1", { ...CLAIMS, aud: ["other"] }, "forged"],
    ["a token that is too old", "state=s1&code=c1", { ...CLAIMS, exp: NOW / 1000 - 1 }, "forged"],
  ])("is refused for %s", async (_, query, claims, why) => {
    answers(claims);
    await expect(read(query)).rejects.toMatchObject({ why });
  });
  it("is known by its address", () => {
    expect(isAnswer("/sign-in", new URLSearchParams("state=a&code=b"))).toBe(true);
    expect(isAnswer("/sign-in", new URLSearchParams("code=b"))).toBe(false);
    expect(isAnswer("/jobs", new URLSearchParams("state=a&code=b"))).toBe(false);
  });
  it("is no token when it cannot be read", () => {
    expect(() => claimsOf("x")).toThrow();
    expect(claimsOf(tokenOf(CLAIMS)).sub).toBe("안녕");
  });
});
