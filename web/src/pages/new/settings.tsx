/** Variables, volumes, the end of the job, and what is rarely needed. */
import { useState } from "react";
import { useFormats, useT } from "@/i18n/i18n";
import { Field, Select, SetsPath } from "@/ui/Field";
import { Card } from "@/ui/Layout";
import { Tick } from "@/ui/Tick";
import { Rows, TextInput, Tracked, useForm, useRowProblem } from "./context";
import { type EnvRow, NEW_ENV, NEW_TOLERATION, NEW_VOLUME, type VolumeKind, type VolumeRow } from "./form";
import styles from "./NewJobPage.module.css";
import { fieldId } from "./places";

const OVERRIDE = "spec.podTemplateOverrides[].spec";

export function EnvCard() {
  const t = useT();
  const { form, set } = useForm();
  const told = useRowProblem();
  return (
    <Card title={t("newJob.sectionEnv")}>
      <Tracked keys={["env"]}>
        <p className={styles.intro}>
          {t("newJob.envHelp")} <SetsPath path="spec.trainer.env" />
        </p>
        <Rows
          path="env"
          rows={form.env}
          onChange={(env) => set({ env })}
          empty={NEW_ENV}
          add={t("newJob.addEnv")}
          remove={(number) => t("newJob.removeEnv", { number })}
        >
          {(row, change, index) => {
            const at = (name: string) => `env[${index}].${name}`;
            return (
              <>
                <Field
                  id={fieldId(at("name"))}
                  label={t("newJob.envName")}
                  value={row.name}
                  onChange={(name) => change({ name })}
                  problem={told(row.name, at("name"))}
                  isMono
                />
                <Select
                  label={t("newJob.envKind")}
                  value={row.kind}
                  options={[
                    { value: "value", label: t("newJob.kindValue") },
                    { value: "secret", label: t("newJob.kindSecret") },
                    { value: "config_map", label: t("newJob.kindConfigMap") },
                  ]}
                  onChange={(kind) => change({ kind })}
                />
                <EnvSource row={row} change={change} at={at} />
              </>
            );
          }}
        </Rows>
      </Tracked>
    </Card>
  );
}

interface EnvSourceProps {
  row: EnvRow;
  change: (changes: Partial<EnvRow>) => void;
  at: (name: string) => string;
}

function EnvSource({ row, change, at }: EnvSourceProps) {
  const t = useT();
  const told = useRowProblem();
  if (row.kind === "value") {
    return (
      <Field
        id={fieldId(at("value"))}
        label={t("newJob.envValue")}
        value={row.value}
        onChange={(value) => change({ value })}
        problem={told(row.value, at("value"))}
        isMono
        isGrowing
      />
    );
  }
  return (
    <>
      <Field
        id={fieldId(at(`${row.kind}.name`))}
        label={t("newJob.refName")}
        value={row.ref}
        onChange={(ref) => change({ ref })}
        problem={told(row.ref, at(`${row.kind}.name`))}
        isMono
      />
      <Field
        id={fieldId(at(`${row.kind}.key`))}
        label={t("newJob.refKey")}
        value={row.key}
        onChange={(key) => change({ key })}
        problem={told(row.key, at(`${row.kind}.key`))}
        isMono
      />
    </>
  );
}

export function VolumesCard() {
  const t = useT();
  const { form, set } = useForm();
  const told = useRowProblem();
  const kinds: { value: VolumeKind; label: string }[] = [
    { value: "claim", label: t("newJob.kindClaim") },
    { value: "empty_dir", label: t("newJob.kindEmptyDir") },
    { value: "config_map", label: t("newJob.kindConfigMap") },
    { value: "secret", label: t("newJob.kindSecret") },
    { value: "host_path", label: t("newJob.kindHostPath") },
  ];
  return (
    <Card title={t("newJob.sectionVolumes")}>
      <Tracked keys={["volumes"]}>
        <p className={styles.intro}>
          {t("newJob.volumesHelp")} <SetsPath path={`${OVERRIDE}.volumes`} />
        </p>
        <Rows
          path="volumes"
          rows={form.volumes}
          onChange={(volumes) => set({ volumes })}
          empty={NEW_VOLUME}
          add={t("newJob.addVolume")}
          remove={(number) => t("newJob.removeVolume", { number })}
        >
          {(row, change, index) => {
            const at = (name: string) => `volumes[${index}].${name}`;
            return (
              <>
                <Field
                  id={fieldId(at("name"))}
                  label={t("newJob.volumeName")}
                  value={row.name}
                  onChange={(name) => change({ name })}
                  problem={told(row.name, at("name"))}
                  isMono
                />
                <Select
                  label={t("newJob.volumeKind")}
                  value={row.kind}
                  options={kinds}
                  onChange={(kind) => change({ kind })}
                />
                <VolumeSource row={row} change={change} at={at} />
                <Field
                  id={fieldId(at("mount_path"))}
                  label={t("newJob.mountPath")}
                  value={row.mountPath}
                  onChange={(mountPath) => change({ mountPath })}
                  problem={told(row.mountPath, at("mount_path"))}
                  placeholder="/data"
                  isMono
                />
                <Field
                  id={fieldId(at("sub_path"))}
                  label={t("newJob.subPath")}
                  value={row.subPath}
                  onChange={(subPath) => change({ subPath })}
                  problem={told(row.subPath, at("sub_path"))}
                  isMono
                />
                <Tick
                  label={t("newJob.readOnly")}
                  isOn={row.readOnly}
                  onChange={(readOnly) => change({ readOnly })}
                />
              </>
            );
          }}
        </Rows>
      </Tracked>
    </Card>
  );
}

interface VolumeSourceProps {
  row: VolumeRow;
  change: (changes: Partial<VolumeRow>) => void;
  at: (name: string) => string;
}

function VolumeSource({ row, change, at }: VolumeSourceProps) {
  const t = useT();
  const told = useRowProblem();
  if (row.kind === "empty_dir") {
    return (
      <>
        <Field
          id={fieldId(at("empty_dir.size"))}
          label={t("newJob.scratchSize")}
          value={row.size}
          onChange={(size) => change({ size })}
          problem={told(row.size, at("empty_dir"))}
          placeholder="10Gi"
          isMono
        />
        <Tick
          label={t("newJob.inMemory")}
          isOn={row.isMemory}
          onChange={(isMemory) => change({ isMemory })}
        />
      </>
    );
  }
  const labels = {
    claim: t("newJob.volumeClaim"),
    config_map: t("newJob.kindConfigMap"),
    secret: t("newJob.kindSecret"),
    host_path: t("newJob.volumeHostPath"),
  };
  return (
    <Field
      id={fieldId(at(row.kind))}
      label={labels[row.kind]}
      value={row.source}
      onChange={(source) => change({ source })}
      problem={told(row.source, at(row.kind))}
      isMono
    />
  );
}

export function LifeCard() {
  const t = useT();
  const { duration } = useFormats();
  const { offers } = useForm();
  return (
    <Card title={t("newJob.sectionLife")}>
      <div className={styles.pair}>
        <TextInput
          of="maxRestarts"
          path="max_restarts"
          label={t("newJob.maxRestarts")}
          help={
            offers.default_max_restarts === null
              ? t("newJob.maxRestartsHelp")
              : t("newJob.maxRestartsHelpCount", { count: offers.default_max_restarts })
          }
          sets="failurePolicy.maxRestarts"
        />
        <TextInput
          of="ttlSeconds"
          path="ttl_seconds"
          label={t("newJob.ttlSeconds")}
          help={t("newJob.ttlSecondsHelp", { time: duration(offers.default_ttl_seconds) })}
          sets="metadata.annotations"
        />
        <TextInput
          of="checkpoints"
          path="checkpoints"
          label={t("newJob.checkpoints")}
          help={t("newJob.checkpointsHelp")}
          sets="spec.trainer.env"
          placeholder="/data/checkpoints"
          isMono
        />
      </div>
    </Card>
  );
}

export function MoreCard() {
  const t = useT();
  const { form, set, changed } = useForm();
  // Open at first where it holds something; after that it is the reader's.
  const [isOpen, setIsOpen] = useState(
    () =>
      form.nodeSelector.length + form.tolerations.length + form.labels.length + form.annotations.length > 0 ||
      form.suspend ||
      [form.deadlineSeconds, form.processesPerNode, form.workingDir, form.resumeFrom].some(Boolean),
  );
  return (
    <details
      className={styles.more}
      open={isOpen || changed.has("nodeSelector") || changed.has("tolerations")}
      onToggle={(event) => setIsOpen(event.currentTarget.open)}
    >
      <summary>
        <h2>{t("newJob.sectionMore")}</h2>
        <span className={styles.hint}>{t("newJob.moreHelp")}</span>
      </summary>
      <div className={styles.fields}>
        <div className={styles.pair}>
          <TextInput
            of="processesPerNode"
            path="processes_per_node"
            label={t("newJob.processesPerNode")}
            help={t("newJob.processesPerNodeHelp")}
            sets="spec.trainer.numProcPerNode"
          />
          <TextInput
            of="deadlineSeconds"
            path="active_deadline_seconds"
            label={t("newJob.deadlineSeconds")}
            help={t("newJob.deadlineSecondsHelp")}
            sets="spec.activeDeadlineSeconds"
          />
          <TextInput
            of="workingDir"
            path="working_dir"
            label={t("newJob.workingDir")}
            help={t("newJob.workingDirHelp")}
            sets="spec.trainer.command[2]"
            isMono
          />
          <TextInput
            of="resumeFrom"
            path="resume_from"
            label={t("newJob.resumeFrom")}
            help={t("newJob.resumeFromHelp")}
            sets="spec.trainer.env"
            isMono
          />
          <TextInput
            of="gpuResource"
            path="resources.gpu_resource"
            label={t("newJob.gpuResource")}
            help={t("newJob.gpuResourceHelp")}
            sets="spec.trainer.resourcesPerNode.limits"
            isMono
          />
        </div>
        <Pairs
          of="nodeSelector"
          path="node_selector"
          label={t("newJob.nodeSelector")}
          help={t("newJob.nodeSelectorHelp")}
          sets={`${OVERRIDE}.nodeSelector`}
        />
        <Tolerations />
        <Pairs
          of="labels"
          path="labels"
          label={t("newJob.labels")}
          help={t("newJob.labelsHelp")}
          sets="metadata.labels"
        />
        <Pairs
          of="annotations"
          path="annotations"
          label={t("newJob.annotations")}
          help={t("newJob.annotationsHelp")}
          sets="metadata.annotations"
        />
        <Tracked keys={["suspend"]}>
          <Tick
            id={fieldId("suspend")}
            label={t("newJob.suspend")}
            help={t("newJob.suspendHelp")}
            sets="spec.suspend"
            isOn={form.suspend}
            onChange={(suspend) => set({ suspend })}
          />
        </Tracked>
      </div>
    </details>
  );
}

interface PairsProps {
  of: "nodeSelector" | "labels" | "annotations";
  path: string;
  label: string;
  help: string;
  sets: string;
}

function Pairs({ of, path, label, help, sets }: PairsProps) {
  const t = useT();
  const { form, set } = useForm();
  const told = useRowProblem();
  return (
    <Tracked keys={[of]}>
      <fieldset className={styles.group}>
        <legend>
          {label} <SetsPath path={sets} />
        </legend>
        <p className={styles.hint}>{help}</p>
        <Rows
          path={path}
          rows={form[of]}
          onChange={(rows) => set({ [of]: rows })}
          empty={{ key: "", value: "" }}
          add={t("newJob.addPair")}
          remove={(number) => t("newJob.removePair", { number })}
        >
          {(row, change) => (
            <>
              <Field
                id={fieldId(`${path}.${row.key}`)}
                label={t("newJob.pairKey")}
                value={row.key}
                onChange={(key) => change({ key })}
                problem={told(row.key, `${path}.${row.key}`)}
                isMono
              />
              <Field
                label={t("newJob.pairValue")}
                value={row.value}
                onChange={(value) => change({ value })}
                isMono
                isGrowing
              />
            </>
          )}
        </Rows>
      </fieldset>
    </Tracked>
  );
}

function Tolerations() {
  const t = useT();
  const { form, set } = useForm();
  const told = useRowProblem();
  return (
    <Tracked keys={["tolerations"]}>
      <fieldset className={styles.group}>
        <legend>
          {t("newJob.tolerations")} <SetsPath path={`${OVERRIDE}.tolerations`} />
        </legend>
        <p className={styles.hint}>{t("newJob.tolerationsHelp")}</p>
        <Rows
          path="tolerations"
          rows={form.tolerations}
          onChange={(tolerations) => set({ tolerations })}
          empty={NEW_TOLERATION}
          add={t("newJob.addToleration")}
          remove={(number) => t("newJob.removePair", { number })}
        >
          {(row, change, index) => {
            const at = (name: string) => `tolerations[${index}].${name}`;
            return (
              <>
                <Field
                  id={fieldId(at("key"))}
                  label={t("newJob.pairKey")}
                  value={row.key}
                  onChange={(key) => change({ key })}
                  problem={told(row.key, at("key"))}
                  isMono
                />
                <Select
                  label={t("newJob.operator")}
                  value={row.operator}
                  options={[
                    { value: "Exists", label: "Exists" },
                    { value: "Equal", label: "Equal" },
                  ]}
                  onChange={(operator) => change({ operator })}
                />
                {row.operator === "Equal" && (
                  <Field
                    id={fieldId(at("value"))}
                    label={t("newJob.pairValue")}
                    value={row.value}
                    onChange={(value) => change({ value })}
                    problem={told(row.value, at("value"))}
                    isMono
                  />
                )}
                <Select
                  label={t("newJob.effect")}
                  value={row.effect || "any"}
                  options={[
                    { value: "any", label: t("newJob.anyEffect") },
                    { value: "NoSchedule", label: "NoSchedule" },
                    { value: "PreferNoSchedule", label: "PreferNoSchedule" },
                    { value: "NoExecute", label: "NoExecute" },
                  ]}
                  onChange={(effect) => change({ effect: effect === "any" ? "" : effect })}
                />
                {row.effect === "NoExecute" && (
                  <Field
                    id={fieldId(at("seconds"))}
                    label={t("newJob.tolerationSeconds")}
                    value={row.seconds}
                    onChange={(seconds) => change({ seconds })}
                    problem={told(row.seconds, at("seconds"))}
                  />
                )}
              </>
            );
          }}
        </Rows>
      </fieldset>
    </Tracked>
  );
}
