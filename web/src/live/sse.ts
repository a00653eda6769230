/** Server-sent events over `fetch`, because an EventSource cannot send a token. */

export interface ServerEvent {
  event: string;
  data: string;
  id: string;
}

/** Reads text in pieces of any size; gives the events that are whole. */
export class EventReader {
  private rest = "";
  private event = "";
  private data: string[] = [];
  /** The id of the last event that had one: where to go on. */
  lastId = "";

  read(piece: string): ServerEvent[] {
    const found: ServerEvent[] = [];
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.line(line.endsWith("\r") ? line.slice(0, -1) : line, found);
    return found;
  }

  private line(line: string, found: ServerEvent[]): void {
    if (line === "") {
      if (this.data.length > 0) {
        found.push({ event: this.event || "message", data: this.data.join("\n"), id: this.lastId });
      }
      this.event = "";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // a sign of life
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.event = value;
    else if (name === "data") this.data.push(value);
    else if (name === "id") this.lastId = value;
  }
}
