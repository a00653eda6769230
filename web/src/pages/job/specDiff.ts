/** A request as rows of path and value, and two of them side by side. */

export interface Value {
  path: string;
  text: string;
}

export interface Difference {
  path: string;
  /** Null: it has none. */
  here: string | null;
  there: string | null;
}

/** `resources.cpu.limit`, `env[0].name`; texts as they are, the rest as JSON. */
export function flat(value: unknown, path = ""): Value[] {
  if (Array.isArray(value)) {
    return value.length === 0
      ? [{ path, text: "[]" }]
      : value.flatMap((each, index) => flat(each, `${path}[${index}]`));
  }
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value);
    if (entries.length === 0) return path === "" ? [] : [{ path, text: "{}" }];
    return entries.flatMap(([name, each]) => flat(each, path === "" ? name : `${path}.${name}`));
  }
  return [{ path, text: typeof value === "string" ? value : JSON.stringify(value) }];
}

/** What is not the same, in the order of the first. A name always differs, and says nothing. */
export function differences(here: unknown, there: unknown): Difference[] {
  const left = new Map(flat(here).map((each) => [each.path, each.text]));
  const right = new Map(flat(there).map((each) => [each.path, each.text]));
  return [...new Set([...left.keys(), ...right.keys()])]
    .filter((path) => path !== "name" && left.get(path) !== right.get(path))
    .map((path) => ({ path, here: left.get(path) ?? null, there: right.get(path) ?? null }));
}
