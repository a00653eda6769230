/**
 * YAML in block style, one leaf a line, each with its JSON pointer: so that the origin of a line can stand beside it.
 * What is written is read back by every YAML reader as it was: anything but plain words is quoted as JSON.
 */
export interface YamlLine {
  text: string;
  /** Of the leaf whose value begins on this line. */
  pointer: string | null;
}

export function yamlLines(value: unknown, pointer = ""): YamlLine[] {
  const lines: YamlLine[] = [];
  if (isFull(value)) write(value, pointer, "", "", lines);
  else leaf("", value, pointer, "", lines);
  return lines;
}

export function toYaml(value: unknown): string {
  return yamlLines(value)
    .map((line) => `${line.text}\n`)
    .join("");
}

type Full = Record<string, unknown> | readonly unknown[];

function isFull(value: unknown): value is Full {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

/** `first` stands before the first key: the dash of a list's entry, or the indent. */
function write(value: Full, pointer: string, first: string, indent: string, lines: YamlLine[]): void {
  if (Array.isArray(value)) {
    for (const [index, each] of value.entries()) {
      const below = `${pointer}/${index}`;
      if (isFull(each) && !Array.isArray(each)) write(each, below, `${indent}- `, `${indent}  `, lines);
      else if (isFull(each)) {
        lines.push({ text: `${indent}-`, pointer: null });
        write(each, below, `${indent}  `, `${indent}  `, lines);
      } else leaf(`${indent}- `, each, below, indent, lines);
    }
    return;
  }
  let start = first;
  for (const [key, each] of Object.entries(value)) {
    const below = `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const head = `${start}${scalar(key)}:`;
    if (isFull(each)) {
      lines.push({ text: head, pointer: null });
      const deeper = Array.isArray(each) ? indent : `${indent}  `;
      write(each, below, deeper, deeper, lines);
    } else leaf(`${head} `, each, below, indent, lines);
    start = indent;
  }
}

function leaf(head: string, value: unknown, pointer: string, indent: string, lines: YamlLine[]): void {
  const block = typeof value === "string" ? literal(value) : null;
  if (!block) {
    lines.push({ text: `${head}${scalar(value)}`, pointer });
    return;
  }
  lines.push({ text: `${head}${block.header}`, pointer });
  for (const line of block.lines) lines.push({ text: line ? `${indent}  ${line}` : "", pointer: null });
}

/** Texts of several lines as they are, where nothing in them could be misread or hidden. */
function literal(text: string): { header: string; lines: string[] } | null {
  const body = text.replace(/\n+$/, "");
  if (!text.includes("\n") || body === "" || /^[ \t\n]/.test(body)) return null;
  if (UNPRINTABLE.test(text.replaceAll("\n", "").replaceAll("\t", ""))) return null;
  const lines = body.split("\n");
  if (lines.some((line) => line !== "" && line.trim() === "")) return null;
  const trailing = text.length - body.length;
  if (trailing > 1) return null;
  return { header: trailing === 0 ? "|-" : "|", lines };
}

// Control characters, separators of lines, and marks that hide text or turn its direction.
const UNPRINTABLE =
  /[\p{Cc}\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\p{Cs}]|[\u{e0000}-\u{e007f}]/u;
const EVERY_UNPRINTABLE = new RegExp(UNPRINTABLE.source, "gu");
const PLAIN = /^[A-Za-z_/][\w./@-]*(?::[\w./@-]+)*$/;
const WORDS = /^(?:true|false|yes|no|on|off|y|n|null|nan|inf)$/i;

function scalar(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "null";
  if (PLAIN.test(value) && !WORDS.test(value)) return value;
  return JSON.stringify(value).replace(EVERY_UNPRINTABLE, (found) =>
    [...Array(found.length).keys()]
      .map((index) => `\\u${found.charCodeAt(index).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}
