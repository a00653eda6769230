/** Short names for what the API sends. */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Job = Schemas["Job"];
export type Phase = Job["phase"];
export type Original = Schemas["OriginalBody"];
export type JobPage = Schemas["JobPage"];
export type JobSpec = Schemas["JobSpec"];
export type WhoAmI = Schemas["WhoAmI"];
export type Preview = Schemas["PreviewBody"];
export type Explanation = Schemas["Explanation"];
export type Metrics = Schemas["Metrics"];

/** Of the stream alone; see docs/api.md. */
export interface Progress {
  name: string;
  namespace: string;
  uid: string;
  fraction: number | null;
  remaining_seconds: number | null;
  step: number | null;
  steps: number | null;
  epoch: number | null;
  epochs: number | null;
}
export type LogWindow = Schemas["LogWindow"];
export type LogLine = Schemas["LogLine"];
export type LogHits = Schemas["LogHits"];
export type JobEvent = Schemas["EventBody"];
export type Attempt = Schemas["AttemptBody"];
export type Pod = Schemas["PodBody"];
export type Checkpoints = Schemas["Checkpoints"];
export type Manifest = Schemas["Manifest"];
