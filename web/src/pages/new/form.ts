/**
 * The form and the request, both ways. The form holds what was typed, as text, so that nothing is lost on the way to a
 * message about it; the request is the API's JobSpec. Every field of a JobSpec is in the form: a job that is cloned
 * comes out as it went in.
 */

export type Framework = "pytorch" | "tensorflow" | "horovod";
export type CodeKind = "none" | "inline" | "files" | "git";
export type RunKind = "script" | "command" | "argv";
export type ValueKind = "value" | "secret" | "config_map";
export type VolumeKind = "claim" | "empty_dir" | "config_map" | "secret" | "host_path";

export interface EnvRow {
  name: string;
  kind: ValueKind;
  value: string;
  ref: string;
  key: string;
}

export interface VolumeRow {
  name: string;
  mountPath: string;
  readOnly: boolean;
  subPath: string;
  kind: VolumeKind;
  /** The claim, ConfigMap, Secret or folder. */
  source: string;
  isMemory: boolean;
  size: string;
}

export interface TolerationRow {
  key: string;
  operator: "Exists" | "Equal";
  value: string;
  effect: "" | "NoSchedule" | "PreferNoSchedule" | "NoExecute";
  seconds: string;
}

export interface Pair {
  key: string;
  value: string;
}

export interface FileRow {
  path: string;
  text: string;
}

export interface Form {
  name: string;
  framework: Framework;
  isMultiNode: boolean;
  nodes: string;
  gpus: string;
  gpuResource: string;
  cpuLimit: string;
  cpuRequest: string;
  memoryLimit: string;
  memoryRequest: string;
  hasLauncher: boolean;
  launcherCpuLimit: string;
  launcherCpuRequest: string;
  launcherMemoryLimit: string;
  launcherMemoryRequest: string;
  runtime: string;
  image: string;
  processesPerNode: string;
  sharedMemory: string;
  codeKind: CodeKind;
  inline: string;
  files: FileRow[];
  gitUrl: string;
  gitBranch: string;
  entrypoint: string;
  runKind: RunKind;
  command: string;
  argv: string[];
  args: string[];
  workingDir: string;
  requirements: string;
  env: EnvRow[];
  volumes: VolumeRow[];
  checkpoints: string;
  resumeFrom: string;
  maxRestarts: string;
  ttlSeconds: string;
  deadlineSeconds: string;
  nodeSelector: Pair[];
  tolerations: TolerationRow[];
  labels: Pair[];
  annotations: Pair[];
  suspend: boolean;
}

export type FormKey = keyof Form;

/** A body of the API; the server checks it. */
export type JobBody = Readonly<Record<string, unknown>>;

export const ENTRYPOINT = "train.py";
export const GPU_RESOURCE = "nvidia.com/gpu";

/** Runs as it is, so that a form can be sent before anything is typed. */
const FIRST_CODE = `import os

rank = int(os.environ.get("RANK", "0"))
world_size = int(os.environ.get("WORLD_SIZE", "1"))
print(f"node {rank} of {world_size} is here", flush=True)
`;

/** The form before anything is entered, with the mock-up's values (M83, M141): 2 nodes, 1 GPU, 4 CPU, 32 GB. */
export const EMPTY: Form = {
  name: "",
  framework: "pytorch",
  isMultiNode: true,
  nodes: "2",
  gpus: "1",
  gpuResource: GPU_RESOURCE,
  cpuLimit: "4",
  cpuRequest: "",
  memoryLimit: "32Gi",
  memoryRequest: "",
  hasLauncher: false,
  launcherCpuLimit: "",
  launcherCpuRequest: "",
  launcherMemoryLimit: "",
  launcherMemoryRequest: "",
  runtime: "",
  image: "",
  processesPerNode: "",
  sharedMemory: "",
  codeKind: "inline",
  inline: FIRST_CODE,
  files: [],
  gitUrl: "",
  gitBranch: "",
  entrypoint: ENTRYPOINT,
  runKind: "script",
  command: "",
  argv: [],
  args: [],
  workingDir: "",
  requirements: "",
  env: [],
  volumes: [],
  checkpoints: "",
  resumeFrom: "",
  maxRestarts: "",
  ttlSeconds: "",
  deadlineSeconds: "",
  nodeSelector: [],
  tolerations: [],
  labels: [],
  annotations: [],
  suspend: false,
};

export const NEW_ENV: EnvRow = { name: "", kind: "value", value: "", ref: "", key: "" };
export const NEW_VOLUME: VolumeRow = {
  name: "",
  mountPath: "",
  readOnly: false,
  subPath: "",
  kind: "claim",
  source: "",
  isMemory: false,
  size: "",
};
export const NEW_TOLERATION: TolerationRow = {
  key: "",
  operator: "Exists",
  value: "",
  effect: "",
  seconds: "",
};

// --- to the request

export function formToBody(form: Form): JobBody {
  const fields = {
    name: text(form.name),
    framework: form.framework,
    runtime: text(form.runtime),
    image: text(form.image),
    nodes: form.isMultiNode ? wholeNumber(form.nodes) : undefined,
    processes_per_node: wholeNumber(form.processesPerNode),
    resources: filled({
      cpu: amount(form.cpuRequest, form.cpuLimit),
      memory: amount(form.memoryRequest, form.memoryLimit),
      gpus: form.gpus.trim() === "0" ? undefined : wholeNumber(form.gpus),
      gpu_resource: form.gpuResource === GPU_RESOURCE ? undefined : form.gpuResource,
    }),
    launcher: form.hasLauncher
      ? filled({
          cpu: amount(form.launcherCpuRequest, form.launcherCpuLimit),
          memory: amount(form.launcherMemoryRequest, form.launcherMemoryLimit),
        })
      : undefined,
    shared_memory: text(form.sharedMemory),
    env: list(form.env.map(envToBody)),
    volumes: list(form.volumes.map(volumeToBody)),
    code: codeToBody(form),
    command: form.runKind === "command" ? form.command : undefined,
    argv: form.runKind === "argv" ? form.argv : undefined,
    args: form.runKind === "script" ? list(form.args) : undefined,
    working_dir: text(form.workingDir),
    requirements: list(lines(form.requirements)),
    checkpoints: text(form.checkpoints),
    resume_from: text(form.resumeFrom),
    max_restarts: wholeNumber(form.maxRestarts),
    ttl_seconds: wholeNumber(form.ttlSeconds),
    active_deadline_seconds: wholeNumber(form.deadlineSeconds),
    node_selector: table(form.nodeSelector),
    tolerations: list(form.tolerations.map(tolerationToBody)),
    labels: table(form.labels),
    annotations: table(form.annotations),
    suspend: form.suspend || undefined,
  };
  return filled(fields, ["launcher"]);
}

/** A requirements file without its comments. */
function lines(content: string): string[] {
  return content
    .split("\n")
    .map((line) => line.replace(/(^|\s)#.*/, "").trim())
    .filter(Boolean);
}

function codeToBody(form: Form): JobBody | undefined {
  const entrypoint = form.entrypoint === ENTRYPOINT ? undefined : form.entrypoint;
  switch (form.codeKind) {
    case "none":
      return undefined;
    case "inline":
      return filled({ inline: form.inline, entrypoint }, ["inline"]);
    case "files":
      return filled(
        { files: Object.fromEntries(form.files.map((each) => [each.path, each.text])), entrypoint },
        ["files"],
      );
    case "git":
      return filled({
        git: filled({ url: form.gitUrl.trim(), branch: text(form.gitBranch) }, ["url"]),
        entrypoint,
      });
  }
}

function envToBody(row: EnvRow): JobBody {
  if (row.kind === "value") return { name: row.name.trim(), value: row.value };
  return { name: row.name.trim(), [row.kind]: { name: row.ref.trim(), key: row.key.trim() } };
}

function volumeToBody(row: VolumeRow): JobBody {
  const kind =
    row.kind === "empty_dir"
      ? { empty_dir: filled({ medium: row.isMemory ? "Memory" : undefined, size: text(row.size) }) }
      : { [row.kind]: row.source.trim() };
  return {
    name: row.name.trim(),
    mount_path: row.mountPath.trim(),
    ...(row.readOnly ? { read_only: true } : {}),
    ...(row.subPath.trim() ? { sub_path: row.subPath.trim() } : {}),
    ...kind,
  };
}

function tolerationToBody(row: TolerationRow): JobBody {
  return filled(
    {
      key: row.key.trim(),
      operator: row.operator === "Exists" ? undefined : row.operator,
      value: row.operator === "Equal" ? row.value : undefined,
      effect: row.effect || undefined,
      seconds: wholeNumber(row.seconds),
    },
    ["key"],
  );
}

function text(value: string): string | undefined {
  return value.trim() === "" ? undefined : value.trim();
}

/** A number where it is one; else what was typed, so that the server can say what is wrong with it. */
function wholeNumber(value: string): number | string | undefined {
  const typed = value.trim();
  if (typed === "") return undefined;
  return /^-?[0-9]{1,15}$/.test(typed) ? Number(typed) : typed;
}

function amount(request: string, limit: string): unknown {
  if (request.trim() === "") return text(limit);
  return filled({ request: text(request), limit: text(limit) });
}

function list<T>(values: readonly T[]): readonly T[] | undefined {
  return values.length > 0 ? values : undefined;
}

/** Two rows with one key would be one entry: the later wins, as in a file. */
function table(pairs: readonly Pair[]): Record<string, string> | undefined {
  if (pairs.length === 0) return undefined;
  return Object.fromEntries(pairs.map((each) => [each.key.trim(), each.value]));
}

/** Without what is undefined, and without what is empty unless it is named in `kept`. */
function filled(fields: Record<string, unknown>, kept: readonly string[] = []): JobBody {
  return Object.fromEntries(
    Object.entries(fields).filter(
      ([name, value]) => value !== undefined && (kept.includes(name) || !isEmpty(value)),
    ),
  );
}

function isEmpty(value: unknown): boolean {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
  );
}

// --- from the request

type Loose = Record<string, unknown>;

/** A request of the API, also one in its short forms; what it does not say is what the API takes. */
export function bodyToForm(body: JobBody): Form {
  const resources = part(body.resources);
  const launcher = body.launcher == null ? null : part(body.launcher);
  const code = body.code == null ? null : part(body.code);
  const nodes = Number(body.nodes ?? 1);
  const argv = words(body.argv);
  return {
    ...EMPTY,
    name: word(body.name),
    framework: body.framework === "tensorflow" || body.framework === "horovod" ? body.framework : "pytorch",
    isMultiNode: nodes !== 1,
    nodes: nodes === 1 ? EMPTY.nodes : String(nodes),
    gpus: String(resources.gpus ?? 0),
    gpuResource: word(resources.gpu_resource) || GPU_RESOURCE,
    ...amountToForm("cpu", resources.cpu),
    ...amountToForm("memory", resources.memory),
    hasLauncher: launcher !== null,
    ...amountToForm("launcherCpu", launcher?.cpu),
    ...amountToForm("launcherMemory", launcher?.memory),
    runtime: word(body.runtime),
    image: word(body.image),
    processesPerNode: word(body.processes_per_node),
    sharedMemory: word(body.shared_memory),
    ...codeToForm(code),
    runKind: body.command != null ? "command" : argv.length > 0 ? "argv" : "script",
    command: word(body.command),
    argv,
    args: words(body.args),
    workingDir: word(body.working_dir),
    requirements: words(body.requirements).join("\n"),
    env: parts(body.env).map(envToForm),
    volumes: parts(body.volumes).map(volumeToForm),
    checkpoints: word(body.checkpoints),
    resumeFrom: word(body.resume_from),
    maxRestarts: word(body.max_restarts),
    ttlSeconds: word(body.ttl_seconds),
    deadlineSeconds: word(body.active_deadline_seconds),
    nodeSelector: pairs(body.node_selector),
    tolerations: parts(body.tolerations).map(tolerationToForm),
    labels: pairs(body.labels),
    annotations: pairs(body.annotations),
    suspend: body.suspend === true,
  };
}

function codeToForm(code: Loose | null): Partial<Form> {
  if (code === null) return { codeKind: "none", inline: "" };
  const entrypoint = word(code.entrypoint) || ENTRYPOINT;
  if (code.files != null) {
    const files = pairs(code.files).map(({ key, value }) => ({ path: key, text: value }));
    return { codeKind: "files", files, entrypoint, inline: "" };
  }
  if (code.git != null) {
    const git = part(code.git);
    return { codeKind: "git", gitUrl: word(git.url), gitBranch: word(git.branch), entrypoint, inline: "" };
  }
  return { codeKind: "inline", inline: word(code.inline), entrypoint };
}

function envToForm(row: Loose): EnvRow {
  const kind: ValueKind = row.secret != null ? "secret" : row.config_map != null ? "config_map" : "value";
  const reference = part(row[kind]);
  return {
    name: word(row.name),
    kind,
    value: word(row.value),
    ref: word(reference.name),
    key: word(reference.key),
  };
}

const VOLUME_KINDS: readonly VolumeKind[] = ["claim", "empty_dir", "config_map", "secret", "host_path"];

function volumeToForm(row: Loose): VolumeRow {
  const kind = VOLUME_KINDS.find((each) => row[each] != null) ?? "claim";
  const scratch = kind === "empty_dir" ? part(row.empty_dir) : {};
  return {
    name: word(row.name),
    mountPath: word(row.mount_path),
    readOnly: row.read_only === true,
    subPath: word(row.sub_path),
    kind,
    source: kind === "empty_dir" ? "" : word(row[kind]),
    isMemory: scratch.medium === "Memory",
    size: word(scratch.size),
  };
}

function tolerationToForm(row: Loose): TolerationRow {
  return {
    key: word(row.key),
    operator: row.operator === "Equal" ? "Equal" : "Exists",
    value: word(row.value),
    effect: word(row.effect) as TolerationRow["effect"],
    seconds: word(row.seconds),
  };
}

type AmountName = "cpu" | "memory" | "launcherCpu" | "launcherMemory";

function amountToForm(name: AmountName, value: unknown): Partial<Form> {
  const given = typeof value === "object" && value !== null ? (value as Loose) : { limit: value };
  return { [`${name}Request`]: word(given.request), [`${name}Limit`]: word(given.limit) };
}

function part(value: unknown): Loose {
  return typeof value === "object" && value !== null ? (value as Loose) : {};
}

function parts(value: unknown): Loose[] {
  return Array.isArray(value) ? value.map(part) : [];
}

function word(value: unknown): string {
  return value === undefined || value === null ? "" : String(value);
}

function words(value: unknown): string[] {
  return Array.isArray(value) ? value.map(word) : [];
}

function pairs(value: unknown): Pair[] {
  return Object.entries(part(value)).map(([key, each]) => ({ key, value: word(each) }));
}

// --- differences

/** Which fields are not as they were. A name is never kept: two jobs cannot share one. A launcher is told by its amounts. */
export function differences(before: Form, now: Form): FormKey[] {
  return (Object.keys(before) as FormKey[]).filter(
    (key) =>
      key !== "name" && key !== "hasLauncher" && JSON.stringify(before[key]) !== JSON.stringify(now[key]),
  );
}

/** What a browser keeps of a form that was not sent, or whose answer was lost. */
export interface Draft {
  namespace: string;
  form: Form;
  /** The key of a submit of exactly this; "" where there was none. */
  key: string;
}

/** Of an older version of the page, what still fits; null for anything else. */
export function readDraft(kept: string | null): Draft | null {
  try {
    const found = part(JSON.parse(kept ?? ""));
    if (typeof found.namespace !== "string") return null;
    const given = part(found.form);
    const known = Object.entries(EMPTY).map(([key, empty]) => {
      const value = given[key];
      const fits = typeof value === typeof empty && Array.isArray(value) === Array.isArray(empty);
      return [key, fits ? value : empty];
    });
    return { namespace: found.namespace, form: Object.fromEntries(known) as Form, key: word(found.key) };
  } catch {
    return null;
  }
}

export type ImageKind = "built-in" | "custom" | "by-name";

/** Where an image comes from: the runtime or the administrator, an earlier job, or a person's keyboard. */
export function imageKindOf(image: string, offered: readonly string[], used: readonly string[]): ImageKind {
  if (image === "" || offered.includes(image)) return "built-in";
  return used.includes(image) ? "custom" : "by-name";
}

interface FrameworkOffer {
  name: string;
  images: readonly string[];
}

export function offeredImages(framework: Framework, offers: readonly FrameworkOffer[]): readonly string[] {
  return offers.find((each) => each.name === framework)?.images ?? [];
}

/** A runtime, a launcher and an offered image belong to one framework: the other has its own. */
export function withFramework(
  form: Form,
  framework: Framework,
  offers: readonly FrameworkOffer[],
): Partial<Form> {
  const isOfBefore = offeredImages(form.framework, offers).includes(form.image);
  const isOfNext = offeredImages(framework, offers).includes(form.image);
  return {
    framework,
    runtime: "",
    hasLauncher: false,
    ...(isOfBefore && !isOfNext ? { image: "" } : {}),
  };
}

export interface Preset {
  name: string;
  gpus: number;
  cpu: string;
  memory: string;
}

/** No preset is called so. */
export const CUSTOM = "";

/** The preset that these numbers are; `CUSTOM` where they are none. */
export function presetOf(form: Form, presets: readonly Preset[]): string {
  const found = presets.find(
    (each) =>
      form.gpus === String(each.gpus) &&
      form.cpuLimit === each.cpu &&
      form.memoryLimit === each.memory &&
      form.cpuRequest === "" &&
      form.memoryRequest === "",
  );
  return found?.name ?? CUSTOM;
}

/** The size that the form begins with on a cluster; on one machine the preset of this name sets it. */
export const STANDARD: Preset = {
  name: "standard",
  gpus: Number(EMPTY.gpus),
  cpu: EMPTY.cpuLimit,
  memory: EMPTY.memoryLimit,
};

/** What is offered, and the standard size first where the platform has none of that name. */
export function withStandard<P extends Preset>(presets: readonly P[]): (P | Preset)[] {
  return presets.some((each) => each.name === STANDARD.name) ? [...presets] : [STANDARD, ...presets];
}

/** Fits nearly every machine, so that the first job starts without a change. */
const ONE_MACHINE: Preset = { name: "", gpus: 0, cpu: "1", memory: "1Gi" };

/** The form as it is when it is opened, and after a reset. */
export function firstForm(engine: string): Form {
  return engine === "local" ? { ...EMPTY, ...presetToForm(ONE_MACHINE) } : EMPTY;
}

export function presetToForm(preset: Preset): Partial<Form> {
  return {
    gpus: String(preset.gpus),
    cpuLimit: preset.cpu,
    memoryLimit: preset.memory,
    cpuRequest: "",
    memoryRequest: "",
  };
}
