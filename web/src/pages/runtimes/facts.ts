/** What a runtime's manifest decides, in the order in which a person asks. Every part may be missing. */

export interface Pod {
  /** Of the replicated job, as `node` or `launcher`. */
  name: string;
  waitsFor: string[];
  init: Container[];
  containers: Container[];
  volumes: { name: string; kind: string }[];
  /** Seconds after which a finished Job goes. */
  ttlSeconds: number | null;
}

export interface Container {
  name: string;
  image: string;
  command: string;
  env: { name: string; value: string }[];
  mounts: { name: string; path: string; isReadOnly: boolean }[];
}

export interface Facts {
  nodes: number;
  /** `torch`, `mpi`, …; "" for none. */
  policy: string;
  policySettings: { name: string; value: string }[];
  maxRestarts: number;
  restartStrategy: string;
  successOf: string[];
  pods: Pod[];
}

type Json = Record<string, unknown>;

export function factsOf(manifest: unknown): Facts {
  const spec = at(manifest, "spec");
  const policy = record(at(spec, "mlPolicy"));
  const name = Object.keys(policy).find((key) => key !== "numNodes") ?? "";
  const template = at(spec, "template", "spec");
  const failure = at(template, "failurePolicy");
  return {
    nodes: numberOf(policy.numNodes) ?? 1,
    policy: name,
    policySettings: Object.entries(record(policy[name])).map(([key, value]) => ({
      name: key,
      value: shown(value),
    })),
    maxRestarts: numberOf(at(failure, "maxRestarts")) ?? 0,
    restartStrategy: text(at(failure, "restartStrategy")),
    successOf: list(at(template, "successPolicy", "targetReplicatedJobs")).map(text),
    pods: list(at(template, "replicatedJobs")).map(podOf),
  };
}

function podOf(job: unknown): Pod {
  const pod = at(job, "template", "spec", "template", "spec");
  return {
    name: text(at(job, "name")),
    waitsFor: list(at(job, "dependsOn")).map((each) => text(at(each, "name"))),
    init: list(at(pod, "initContainers")).map(containerOf),
    containers: list(at(pod, "containers")).map(containerOf),
    volumes: list(at(pod, "volumes")).map((each) => ({
      name: text(at(each, "name")),
      kind: Object.keys(record(each)).find((key) => key !== "name") ?? "",
    })),
    ttlSeconds: numberOf(at(job, "template", "spec", "ttlSecondsAfterFinished")),
  };
}

function containerOf(found: unknown): Container {
  return {
    name: text(at(found, "name")),
    image: text(at(found, "image")),
    command: [...list(at(found, "command")), ...list(at(found, "args"))].map(text).join(" "),
    env: list(at(found, "env")).map((each) => ({
      name: text(at(each, "name")),
      value: shown(at(each, "value") ?? at(each, "valueFrom")),
    })),
    mounts: list(at(found, "volumeMounts")).map((each) => ({
      name: text(at(each, "name")),
      path: text(at(each, "mountPath")),
      isReadOnly: at(each, "readOnly") === true,
    })),
  };
}

function at(value: unknown, ...path: string[]): unknown {
  return path.reduce<unknown>((found, name) => record(found)[name], value);
}

function record(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
}
