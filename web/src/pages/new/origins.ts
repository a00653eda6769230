/** Who set a line of the effective pod, as the preview's provenance tells it. */

export type Source = "you" | "runtime" | "platform" | "operator";
export interface Origin {
  source: Source;
  /** The field of the form, the path in the TrainJob, or nothing. */
  detail: string;
}

/** Of a leaf, or of the nearest part around it that the table knows. */
export function originOf(pointer: string, provenance: Readonly<Record<string, string>>): Origin | null {
  for (let place = pointer; place; place = place.slice(0, place.lastIndexOf("/"))) {
    const found = provenance[place];
    if (found !== undefined) return read(found);
  }
  return null;
}

function read(text: string): Origin {
  if (text.startsWith("form: ")) return { source: "you", detail: text.slice("form: ".length) };
  if (text === "runtime") return { source: "runtime", detail: "" };
  if (text === "platform") return { source: "platform", detail: "" };
  // In the TrainJob, and by no field of the form: we have written it there.
  if (/^(override |spec\.|metadata)/.test(text)) return { source: "platform", detail: text };
  // Defaults of the API, and what the operator works out itself (`mlPolicy.torch`).
  return { source: "operator", detail: text };
}
