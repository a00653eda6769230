/**
 * Addresses of the page. The state of a view that is worth a link (filters, tab, page) lives in the query: read it
 * with `useQuery`, change it with `setQuery`.
 */
import { createStore, useStore } from "@/store";

export interface Place {
  path: string;
  query: URLSearchParams;
}

const here = (): Place => ({ path: location.pathname, query: new URLSearchParams(location.search) });
const place = createStore<Place>(here());
addEventListener("popstate", () => place.set(here()));

export function navigate(to: string, options: { replace?: boolean } = {}): void {
  const target = new URL(to, location.href);
  if (target.origin !== location.origin) return; // links to elsewhere are plain links
  const isOtherPage = target.pathname !== location.pathname;
  if (target.href !== location.href) {
    if (options.replace) history.replaceState(null, "", target);
    else history.pushState(null, "", target);
    place.set(here());
  }
  if (isOtherPage) scrollTo(0, 0);
}

export function usePlace(): Place {
  return useStore(place);
}

/** One parameter of the query; "" and null remove it. Replaces the entry of the history unless `push`. */
export function useQuery(
  name: string,
): [string, (value: string | null, options?: { push?: boolean }) => void] {
  const { query } = usePlace();
  return [query.get(name) ?? "", (value, options) => setQuery({ [name]: value }, options)];
}

export function setQuery(changes: Record<string, string | null>, options: { push?: boolean } = {}): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  navigate(location.pathname + (text ? `?${text}` : ""), { replace: !options.push });
}

/** The named parts of a path, or null where it does not fit: `match("/jobs/:namespace/:name", "/jobs/team/hello")`. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split("/").filter(Boolean);
  const given = path.split("/").filter(Boolean);
  if (wanted.length !== given.length) return null;
  const found: Record<string, string> = {};
  for (const [index, word] of wanted.entries()) {
    const value = given[index] ?? "";
    if (word.startsWith(":")) {
      try {
        found[word.slice(1)] = decodeURIComponent(value);
      } catch {
        return null;
      }
    } else if (word !== value) return null;
  }
  return found;
}

/** Every link inside the page is made here, so that a changed address has one place. */
export const to = {
  jobs: (query: Record<string, string> = {}) => withQuery("/jobs", query),
  job: (namespace: string, name: string, query: Record<string, string> = {}) =>
    withQuery(`/jobs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`, query),
  newJob: (query: Record<string, string> = {}) => withQuery("/new", query),
  nodes: () => "/nodes",
  runtimes: () => "/runtimes",
  runtime: (name: string) => `/runtimes/${encodeURIComponent(name)}`,
  admin: (section = "") => (section ? `/admin/${encodeURIComponent(section)}` : "/admin"),
  signIn: () => "/sign-in",
};

function withQuery(path: string, query: Record<string, string>): string {
  const text = new URLSearchParams(query).toString();
  return text ? `${path}?${text}` : path;
}
