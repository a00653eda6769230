/** The mock-up's part of the form: what, how many, how large, which image. */
import { useState } from "react";
import { api } from "@/api/client";
import { useLoad } from "@/api/useLoad";
import { useT } from "@/i18n/i18n";
import { remembered } from "@/store";
import { Choice } from "@/ui/Choice";
import { Field, Select } from "@/ui/Field";
import { Card } from "@/ui/Layout";
import { SliderField } from "@/ui/SliderField";
import { useSettled } from "@/ui/useSettled";
import { TextInput, Tracked, useForm } from "./context";
import {
  CUSTOM,
  type FormKey,
  type Framework,
  type ImageKind,
  imageKindOf,
  offeredImages,
  presetOf,
  presetToForm,
  withFramework,
} from "./form";
import styles from "./NewJobPage.module.css";
import { fieldId, problemAt } from "./places";
import { fromCores, fromGi, toCores, toGi } from "./quantity";

export const FRAMEWORKS: Record<Framework, string> = {
  pytorch: "PyTorch",
  tensorflow: "TensorFlow",
  horovod: "Horovod",
};
/** Runtimes say their framework in the operator's words. */
const OPERATOR_WORDS: Record<Framework, readonly string[]> = {
  pytorch: ["torch", "pytorch"],
  tensorflow: ["tensorflow"],
  horovod: ["mpi", "horovod"],
};

export function frameworkOf(word: string): Framework {
  const known = Object.keys(FRAMEWORKS) as Framework[];
  return known.find((each) => OPERATOR_WORDS[each].includes(word)) ?? "pytorch";
}

const NODE = "spec.trainer.resourcesPerNode";

interface JobCardProps {
  namespace: string;
  namespaces: readonly string[];
  isNamespaceFree: boolean;
  onNamespace: (value: string) => void;
}

export function JobCard({ namespace, namespaces, isNamespaceFree, onNamespace }: JobCardProps) {
  const t = useT();
  const { form, set, findings, offers } = useForm();
  const isMpi = form.framework === "horovod";
  const words = {
    label: t("newJob.namespace"),
    help: t("newJob.namespaceHelp"),
    sets: "metadata.namespace",
    id: fieldId("namespace"),
    problem: problemAt(findings, "namespace"),
  };
  return (
    <Card title={t("newJob.sectionJob")}>
      <div className={styles.fields}>
        <div className={styles.pair}>
          <TextInput
            of="name"
            path="name"
            label={t("newJob.name")}
            help={t("newJob.nameHelp")}
            sets="metadata.name"
            isMono
          />
          {isNamespaceFree ? (
            <Field {...words} value={namespace} onChange={onNamespace} isMono />
          ) : (
            <Select
              {...words}
              value={namespace}
              options={namespaces.map((each) => ({ value: each, label: each }))}
              onChange={onNamespace}
            />
          )}
        </div>
        <Tracked keys={["framework"]}>
          <Choice
            id={fieldId("framework")}
            label={t("newJob.framework")}
            help={t("newJob.frameworkHelp")}
            sets="spec.runtimeRef.name"
            value={form.framework}
            options={(Object.keys(FRAMEWORKS) as Framework[]).map((value) => ({
              value,
              label: FRAMEWORKS[value],
            }))}
            onChange={(framework) => set(withFramework(form, framework, offers.frameworks))}
            problem={problemAt(findings, "framework")}
          />
        </Tracked>
        <Tracked keys={["isMultiNode", "nodes"]}>
          <div className={styles.pair}>
            <Choice
              label={t("newJob.nodeKind")}
              help={t("newJob.nodeKindHelp")}
              value={form.isMultiNode ? "multi" : "single"}
              options={[
                { value: "single", label: t("newJob.single") },
                { value: "multi", label: t("newJob.multi") },
              ]}
              onChange={(value) => set({ isMultiNode: value === "multi" })}
            />
            {form.isMultiNode && (
              <SliderField
                id={fieldId("nodes")}
                label={isMpi ? t("newJob.workers") : t("newJob.nodes")}
                help={isMpi ? t("newJob.workersHelp") : t("newJob.nodesHelp")}
                sets="spec.trainer.numNodes"
                min={1}
                max={Math.min(16, offers.max_nodes)}
                value={Number(form.nodes) || 0}
                onChange={(value) => set({ nodes: String(value) })}
                problem={problemAt(findings, "nodes")}
              />
            )}
          </div>
        </Tracked>
      </div>
    </Card>
  );
}

export function ResourcesCard() {
  const t = useT();
  const { form, set, findings, offers } = useForm();
  const isMpi = form.framework === "horovod";
  const preset = presetOf(form, offers.presets);
  const names: Record<string, string> = {
    standard: t("newJob.presetStandard"),
    small: t("newJob.presetSmall"),
    medium: t("newJob.presetMedium"),
    large: t("newJob.presetLarge"),
  };
  return (
    <Card title={t("newJob.sectionResources")}>
      <div className={styles.fields}>
        {isMpi && <LauncherPanel />}
        {isMpi && <h3>{t("newJob.worker")}</h3>}
        <Tracked keys={[]}>
          <Select
            label={t("newJob.preset")}
            help={t("newJob.presetHelp")}
            value={presetKey(preset)}
            options={[
              { value: presetKey(CUSTOM), label: t("newJob.presetCustom") },
              ...offers.presets.map((each) => ({
                value: presetKey(each.name),
                label: t("newJob.presetLabel", {
                  name: names[each.name] ?? each.name,
                  gpus: each.gpus,
                  cpu: each.cpu,
                  memory: each.memory,
                }),
              })),
            ]}
            onChange={(key) => {
              const found = offers.presets.find((each) => presetKey(each.name) === key);
              if (found) set(presetToForm(found));
            }}
          />
        </Tracked>
        <Tracked keys={["gpus"]}>
          <SliderField
            id={fieldId("resources.gpus")}
            label={t("newJob.gpus")}
            help={t("newJob.gpusHelp")}
            sets={`${NODE}.limits["${form.gpuResource}"]`}
            min={0}
            max={Math.max(1, Math.min(8, offers.max_gpus_per_node))}
            value={Number(form.gpus) || 0}
            onChange={(value) => set({ gpus: String(value) })}
            problem={problemAt(findings, "resources.gpus")}
          />
        </Tracked>
        <AmountSlider
          of="cpuLimit"
          path="resources.cpu"
          kind="cpu"
          label={t("newJob.cpuLimit")}
          help={t("newJob.cpuLimitHelp")}
          sets={`${NODE}.limits.cpu`}
        />
        <AmountSlider
          of="memoryLimit"
          path="resources.memory"
          kind="memory"
          label={t("newJob.memoryLimit")}
          help={t("newJob.memoryLimitHelp")}
          sets={`${NODE}.limits.memory`}
        />
        <details
          className={styles.details}
          open={Boolean(form.cpuRequest || form.memoryRequest || form.sharedMemory)}
        >
          <summary>{t("newJob.requests")}</summary>
          <div className={styles.pair}>
            <TextInput
              of="cpuRequest"
              path="resources.cpu.request"
              label={t("newJob.cpuRequest")}
              help={t("newJob.cpuRequestHelp")}
              sets={`${NODE}.requests.cpu`}
              isMono
            />
            <TextInput
              of="memoryRequest"
              path="resources.memory.request"
              label={t("newJob.memoryRequest")}
              help={t("newJob.memoryRequestHelp")}
              sets={`${NODE}.requests.memory`}
              isMono
            />
            <TextInput
              of="sharedMemory"
              path="shared_memory"
              label={t("newJob.sharedMemory")}
              help={t("newJob.sharedMemoryHelp")}
              sets="volumes[dshm].emptyDir.sizeLimit"
              isMono
            />
          </div>
        </details>
      </div>
    </Card>
  );
}

/** Of an entry of the list; none may be empty. */
const presetKey = (name: string) => `preset ${name}`;

function LauncherPanel() {
  const t = useT();
  const path = "replicatedJobs[launcher]…containers[node].resources.limits";
  return (
    <div className={styles.panel}>
      <h3>{t("newJob.launcher")}</h3>
      <p className={styles.hint}>{t("newJob.launcherHelp")}</p>
      <AmountSlider
        of="launcherCpuLimit"
        path="launcher.cpu"
        kind="cpu"
        label={t("newJob.launcherCpu")}
        sets={`${path}.cpu`}
      />
      <AmountSlider
        of="launcherMemoryLimit"
        path="launcher.memory"
        kind="memory"
        label={t("newJob.launcherMemory")}
        sets={`${path}.memory`}
      />
    </div>
  );
}

interface AmountSliderProps {
  of: "cpuLimit" | "memoryLimit" | "launcherCpuLimit" | "launcherMemoryLimit";
  path: string;
  kind: "cpu" | "memory";
  label: string;
  help?: string;
  sets: string;
}

/** M83: cores to 100, memory to 610 GB; the number may go beyond, and below one. */
function AmountSlider({ of, path, kind, label, help, sets }: AmountSliderProps) {
  const t = useT();
  const { form, set, findings } = useForm();
  const isCpu = kind === "cpu";
  // A launcher of which something is said is part of the request.
  const isLauncher = of === "launcherCpuLimit" || of === "launcherMemoryLimit";
  const keys: FormKey[] = isLauncher ? [of, "hasLauncher"] : [of];
  return (
    <Tracked keys={keys}>
      <SliderField
        id={fieldId(`${path}.limit`)}
        label={label}
        {...(help ? { help } : {})}
        sets={sets}
        min={0}
        max={isCpu ? 100 : 610}
        step={1}
        unit={isCpu ? t("newJob.cores") : "GiB"}
        value={isCpu ? toCores(form[of]) : toGi(form[of])}
        onChange={(value) =>
          set({
            [of]: isCpu ? fromCores(value) : fromGi(value),
            ...(isLauncher ? { hasLauncher: true } : {}),
          })
        }
        problem={problemAt(
          findings.filter((each) => !each.path.endsWith(".request")),
          path,
        )}
      />
    </Tracked>
  );
}

export const USED_IMAGES = "new.images";

export function usedImages(): string[] {
  try {
    const found: unknown = JSON.parse(remembered(USED_IMAGES) ?? "[]");
    return Array.isArray(found) ? found.filter((each) => typeof each === "string").slice(0, 20) : [];
  } catch {
    return [];
  }
}

/** Those used from this browser, then those of the namespace's earlier jobs. */
function useKnownImages(): string[] {
  const namespace = useSettled(useForm().namespace);
  const [own] = useState(usedImages);
  const { data } = useLoad(`images ${namespace}`, async (signal) =>
    namespace === ""
      ? null
      : api.get("/api/v1/namespaces/{namespace}/images", { path: { namespace }, signal }),
  );
  return [...new Set([...own, ...(data?.items ?? [])])];
}

export function ImageCard() {
  const t = useT();
  const { form, set, findings, offers } = useForm();
  const used = useKnownImages();
  const offered = offeredImages(form.framework, offers.frameworks);
  const image = offers.frameworks.find((each) => each.name === form.framework)?.image;
  const usual =
    form.runtime === "" && image ? t("newJob.imageDefault", { image }) : t("newJob.imageOfRuntime");
  const isBuiltIn = imageKindOf(form.image, offered, []) === "built-in";
  const [kind, setKind] = useState<ImageKind>(() => imageKindOf(form.image, offered, used));
  const shown: ImageKind = kind === "built-in" && !isBuiltIn ? "by-name" : kind;
  const choose = (next: ImageKind) => {
    setKind(next);
    if (next === "built-in" && !isBuiltIn) set({ image: "" });
    else if (next === "custom" && used[0] && !used.includes(form.image)) set({ image: used[0] });
  };
  return (
    <Card title={t("newJob.sectionImage")}>
      <div className={styles.fields}>
        <Tracked keys={["image", "runtime"]}>
          <div className={styles.fields}>
            <Choice
              label={t("newJob.imageKind")}
              help={t("newJob.imageKindHelp")}
              value={shown}
              options={[
                { value: "built-in", label: t("newJob.imageBuiltIn") },
                { value: "custom", label: t("newJob.imageCustom") },
                { value: "by-name", label: t("newJob.imageByName") },
              ]}
              onChange={choose}
            />
            {shown === "built-in" && offered.length > 0 && (
              <Select
                id={fieldId("image")}
                label={t("newJob.image")}
                help={t("newJob.imageOfferedHelp")}
                sets="spec.trainer.image"
                value={form.image || RUNTIME_IMAGE}
                options={[
                  { value: RUNTIME_IMAGE, label: usual },
                  ...offered.map((each) => ({ value: each, label: each })),
                ]}
                onChange={(image) => set({ image: image === RUNTIME_IMAGE ? "" : image })}
                problem={problemAt(findings, "image")}
              />
            )}
            {shown === "by-name" && (
              <Field
                id={fieldId("image")}
                label={t("newJob.image")}
                help={t("newJob.imageHelp")}
                sets="spec.trainer.image"
                value={form.image}
                onChange={(image) => set({ image })}
                problem={problemAt(findings, "image")}
                isMono
              />
            )}
            {shown === "custom" &&
              (used.length === 0 ? (
                <p className={styles.hint}>{t("newJob.imageNone")}</p>
              ) : (
                <Select
                  id={fieldId("image")}
                  label={t("newJob.image")}
                  help={t("newJob.imageHelp")}
                  sets="spec.trainer.image"
                  value={form.image}
                  options={used.map((each) => ({ value: each, label: each }))}
                  onChange={(image) => set({ image })}
                  problem={problemAt(findings, "image")}
                />
              ))}
            <RuntimeChoice isImageShown={shown === "built-in" && form.image === ""} offers={offers} />
          </div>
        </Tracked>
      </div>
    </Card>
  );
}

function RuntimeChoice({
  isImageShown,
  offers,
}: {
  isImageShown: boolean;
  offers: { frameworks: { name: string; runtime: string; image: string }[] };
}) {
  const t = useT();
  const { form, set, findings } = useForm();
  const { data } = useLoad("runtimes", (signal) => api.get("/api/v1/runtimes", { signal }));
  const usual = offers.frameworks.find((each) => each.name === form.framework);
  const fitting = (data?.items ?? []).filter((each) =>
    OPERATOR_WORDS[form.framework].includes(each.framework),
  );
  const named = fitting.find((each) => each.name === form.runtime);
  const isUnknown = form.runtime !== "" && !named;
  const image = named ? named.image : form.runtime === "" ? usual?.image : undefined;
  const help = [
    named ? named.summary : t("newJob.runtimeHelp"),
    isImageShown && image ? t("newJob.builtInImage", { image }) : "",
  ];
  return (
    <Select
      id={fieldId("runtime")}
      label={t("newJob.runtime")}
      help={help.filter(Boolean).join(" ")}
      sets="spec.runtimeRef.name"
      value={form.runtime || DEFAULT_RUNTIME}
      options={[
        {
          value: DEFAULT_RUNTIME,
          label: t("newJob.runtimeDefault", {
            runtime: usual?.runtime ?? "",
            framework: FRAMEWORKS[form.framework],
          }),
        },
        ...fitting.map((each) => ({ value: each.name, label: each.name })),
        ...(isUnknown ? [{ value: form.runtime, label: form.runtime }] : []),
      ]}
      onChange={(value) => set({ runtime: value === DEFAULT_RUNTIME ? "" : value })}
      problem={problemAt(findings, "runtime")}
    />
  );
}

/** No runtime and no image can be called so. */
const DEFAULT_RUNTIME = "(default)";
const RUNTIME_IMAGE = "(runtime)";
