/** Rows of the view: the lines, and a heading before the first line of each attempt where there are several. */

export interface Beginning {
  attempt: number;
  /** The number of its first line. */
  line: number;
}

export type Row = { kind: "line"; line: number } | { kind: "attempt"; attempt: number };

export function rowCount(lines: number, headings: readonly Beginning[]): number {
  return lines + headings.length;
}

export function rowOfLine(line: number, headings: readonly Beginning[]): number {
  return line + headings.filter((each) => each.line <= line).length;
}

export function rowAt(row: number, headings: readonly Beginning[]): Row {
  let before = 0;
  for (const each of headings) {
    const place = each.line + before;
    if (place === row) return { kind: "attempt", attempt: each.attempt };
    if (place > row) break;
    before += 1;
  }
  return { kind: "line", line: row - before };
}
