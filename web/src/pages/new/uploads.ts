/** Files that were chosen or dropped, as text; a job takes nothing else. */
import type { DirectoryDropItem, DropItem } from "react-aria-components";
import type { FileRow } from "./form";

/** A ConfigMap holds no more. */
export const MOST_BYTES = 1_048_576;
const MOST_FILES = 500;

export interface Upload {
  files: FileRow[];
  /** Names of what is no text of UTF-8, or too large. */
  refused: string[];
}

export async function readFiles(chosen: readonly { path: string; file: File }[]): Promise<Upload> {
  const upload: Upload = { files: [], refused: [] };
  for (const { path, file } of chosen) {
    const text = file.size <= MOST_BYTES ? await textOf(file) : null;
    if (text === null || upload.files.length >= MOST_FILES) upload.refused.push(path);
    else upload.files.push({ path, text });
  }
  return upload;
}

async function textOf(file: File): Promise<string | null> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

export function chosenFiles(list: readonly File[]): { path: string; file: File }[] {
  return list.map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

/** With folders opened; the folder's own name is left out, so that `train.py` in it is `train.py`. */
export async function droppedFiles(items: readonly DropItem[]): Promise<{ path: string; file: File }[]> {
  const found: { path: string; file: File }[] = [];
  for (const item of items) {
    if (item.kind === "file") found.push({ path: item.name, file: await item.getFile() });
    else if (item.kind === "directory") await open(item, "", found);
  }
  return found;
}

async function open(
  folder: DirectoryDropItem,
  before: string,
  found: { path: string; file: File }[],
): Promise<void> {
  for await (const item of folder.getEntries()) {
    if (item.name.startsWith(".") || item.name === "__pycache__") continue;
    if (item.kind === "file") found.push({ path: before + item.name, file: await item.getFile() });
    else if (item.kind === "directory") await open(item, `${before}${item.name}/`, found);
  }
}

/** New ones in place of those of the same path. */
export function merged(old: readonly FileRow[], added: readonly FileRow[]): FileRow[] {
  const byPath = new Map([...old, ...added].map((each) => [each.path, each]));
  return [...byPath.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}
