import { lastState, plain } from "./ansi";

/**
 * A message in one line: what happened, and the last thing that was said. "pod ended with exit code 1: step 1", a
 * hundred lines, "out of disk" is "pod ended with exit code 1: out of disk".
 */
export function headline(message: string): string {
  const lines = message
    .split(/\r?\n/)
    .map((line) => plain(lastState(line)).trim())
    .filter(Boolean);
  const first = lines[0] ?? "";
  const last = lines.at(-1) ?? "";
  if (lines.length < 2) return first;
  const end = first.lastIndexOf(": ");
  return `${end > 0 ? first.slice(0, end) : first}: ${last}`;
}
