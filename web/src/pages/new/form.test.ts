import { describe, expect, it } from "vitest";
import {
  bodyToForm,
  CUSTOM,
  differences,
  EMPTY,
  type Form,
  type Framework,
  formToBody,
  imageKindOf,
  offeredImages,
  presetOf,
  presetToForm,
  readDraft,
  withFramework,
} from "./form";

/** Every field of a JobSpec, in the form in which the API tells it. */
const WHOLE = {
  name: "hello",
  framework: "horovod",
  runtime: "horovod-runtime",
  image: "team/image:1",
  nodes: 4,
  processes_per_node: 2,
  resources: { cpu: { request: "2", limit: "4" }, memory: "16Gi", gpus: 2, gpu_resource: "amd.com/gpu" },
  launcher: { cpu: "1", memory: { request: "1Gi", limit: "2Gi" } },
  shared_memory: "8Gi",
  env: [
    { name: "A", value: " spaces and $(x) stay " },
    { name: "B", secret: { name: "s", key: "k" } },
    { name: "C", config_map: { name: "c", key: "k" } },
  ],
  volumes: [
    { name: "data", mount_path: "/data", read_only: true, sub_path: "a/b", claim: "claim-1" },
    { name: "tmp", mount_path: "/scratch", empty_dir: { medium: "Memory", size: "1Gi" } },
    { name: "tmp2", mount_path: "/scratch2", empty_dir: {} },
    { name: "conf", mount_path: "/conf", config_map: "conf" },
    { name: "keys", mount_path: "/keys", secret: "keys" },
    { name: "host", mount_path: "/host", host_path: "/mnt" },
  ],
  code: { files: { "main.py": "print(1)\n", "pkg/a.py": "" }, entrypoint: "main.py" },
  args: ["--epochs", "3", "", "two\nlines"],
  working_dir: "/workspace",
  requirements: ["einops", "numpy>=2"],
  checkpoints: "/data/checkpoints",
  resume_from: "/data/old",
  max_restarts: 3,
  ttl_seconds: 0,
  active_deadline_seconds: 60,
  node_selector: { zone: "a" },
  tolerations: [
    { key: "gpu" },
    { key: "team", operator: "Equal", value: "x", effect: "NoExecute", seconds: 30 },
  ],
  labels: { tier: "x" },
  annotations: { "example.org/x": "a: b" },
  suspend: true,
};

const SPECS: Record<string, Record<string, unknown>> = {
  whole: WHOLE,
  smallest: { framework: "pytorch", command: "echo" },
  inline: { framework: "tensorflow", code: { inline: "  print(1)\n\n" } },
  git: {
    framework: "pytorch",
    code: { git: { url: "https://example.org/x.git", branch: "main" }, entrypoint: "a.py" },
  },
  argv: { framework: "pytorch", argv: ["python", "-c", "print('x')\n"] },
  "empty launcher": { framework: "horovod", launcher: {}, command: "x" },
  auto: { framework: "pytorch", processes_per_node: "auto", command: "x" },
};

describe("form and request", () => {
  for (const [name, spec] of Object.entries(SPECS)) {
    it(`a request comes out as it went in: ${name}`, () => {
      expect(formToBody(bodyToForm(spec))).toEqual(spec);
    });
    it(`a form comes back from its request: ${name}`, () => {
      const form = bodyToForm(spec);
      expect(bodyToForm(formToBody(form))).toEqual(form);
    });
  }
  it("reads amounts as the API tells them: with null for what was left out", () => {
    const told = {
      framework: "pytorch",
      resources: { cpu: { request: null, limit: "2" } },
      code: null,
      launcher: null,
    };
    expect(formToBody(bodyToForm(told))).toEqual({ framework: "pytorch", resources: { cpu: "2" } });
  });
  it("sends what is no number as it is, so that the server says so at the field", () => {
    const body = formToBody({ ...EMPTY, isMultiNode: true, nodes: "two", maxRestarts: "1.5", gpus: "x" });
    expect(body).toMatchObject({ nodes: "two", max_restarts: "1.5", resources: { gpus: "x" } });
  });
  it("keeps a command and code that are empty: the server says what is missing", () => {
    expect(formToBody({ ...EMPTY, runKind: "command", inline: "" })).toMatchObject({
      command: "",
      code: { inline: "" },
    });
  });
});

describe("differences", () => {
  it("name the fields that changed, and never the name", () => {
    const before = bodyToForm(WHOLE);
    const now: Form = { ...before, name: "other", nodes: "8", env: before.env.slice(1) };
    expect(differences(before, now)).toEqual(["nodes", "env"]);
  });
});

describe("drafts", () => {
  it("come back as they were", () => {
    const draft = { namespace: "team", form: bodyToForm(WHOLE), key: "k" };
    expect(readDraft(JSON.stringify(draft))).toEqual(draft);
  });
  it("of an older page or of nobody do no harm", () => {
    for (const kept of [null, "{", "7", "{}", '{"form":{}}']) expect(readDraft(kept)).toBeNull();
    const older = '{"namespace":"team","form":{"name":"x","env":"y","nodes":3,"gone":1}}';
    expect(readDraft(older)).toEqual({ namespace: "team", form: { ...EMPTY, name: "x" }, key: "" });
  });
});

describe("images", () => {
  const offers = [
    { name: "pytorch", images: ["torch:1", "shared:1"] },
    { name: "tensorflow", images: ["shared:1"] },
  ];
  it("are known by where they come from", () => {
    expect(imageKindOf("", [], [])).toBe("built-in");
    expect(imageKindOf("torch:1", ["torch:1"], ["torch:1"])).toBe("built-in");
    expect(imageKindOf("mine:1", ["torch:1"], ["mine:1"])).toBe("custom");
    expect(imageKindOf("other:1", ["torch:1"], ["mine:1"])).toBe("by-name");
  });
  it("are offered for one framework", () => {
    expect(offeredImages("pytorch", offers)).toEqual(["torch:1", "shared:1"]);
    expect(offeredImages("horovod", offers)).toEqual([]);
  });
  it("that were offered go when the framework changes; a person's own stay", () => {
    const of = (image: string, framework: Framework) =>
      ({ ...EMPTY, image, ...withFramework({ ...EMPTY, image }, framework, offers) }).image;
    expect(of("torch:1", "tensorflow")).toBe("");
    expect(of("shared:1", "tensorflow")).toBe("shared:1");
    expect(of("shared:1", "horovod")).toBe("");
    expect(of("mine:1", "tensorflow")).toBe("mine:1");
  });
});

describe("presets", () => {
  const presets = [{ name: "small", gpus: 1, cpu: "4", memory: "16Gi" }];
  it("are recognized by their numbers", () => {
    const form = { ...EMPTY, ...presetToForm(presets[0] as (typeof presets)[0]) };
    expect(presetOf(form, presets)).toBe("small");
    expect(presetOf({ ...form, cpuRequest: "1" }, presets)).toBe(CUSTOM);
    expect(presetOf(EMPTY, presets)).toBe(CUSTOM);
  });
});
