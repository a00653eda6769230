import { type ReactNode, useState } from "react";
import { api, request } from "@/api/client";
import type { Job, Manifest, Original } from "@/api/types";
import { useLoad } from "@/api/useLoad";
import { useT } from "@/i18n/i18n";
import { OriginYaml } from "@/pages/new/OriginYaml";
import { setQuery, usePlace } from "@/router/router";
import { Button } from "@/ui/Button";
import { CopyButton } from "@/ui/CopyButton";
import { Select } from "@/ui/Field";
import { EmptyState, Loading } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { Table } from "@/ui/Table";
import { UrlTabs } from "@/ui/Tabs";
import { toYaml } from "@/yaml/yaml";
import styles from "./SpecTab.module.css";
import { differences, flat, type Value } from "./specDiff";
import { useIsThere } from "./useIsThere";

const MANIFEST = "/api/v1/namespaces/{namespace}/jobs/{name}/manifest";

type Spec = Manifest["spec"];

/** What was asked for, what was made of it, and what runs. */
export function SpecTab({ job }: { job: Job }) {
  const t = useT();
  const path = { namespace: job.namespace, name: job.name };
  const { data, problem, reload } = useLoad(`manifest ${job.uid}`, (signal) =>
    api.get(MANIFEST, { path, signal }),
  );
  if (!data) return problem ? <ProblemNote problem={problem} onRetry={reload} /> : <Loading />;
  return (
    <UrlTabs
      label={t("job.tabSpec")}
      parameter="view"
      items={[
        { id: "form", label: t("job.specForm"), content: () => <Form job={job} spec={data.spec} /> },
        { id: "manifest", label: t("job.specManifest"), content: () => <ManifestYaml job={job} /> },
        {
          id: "effective",
          label: t("job.specEffective"),
          content: () => <Effective job={job} objects={data.effective} provenance={data.provenance} />,
        },
        { id: "compare", label: t("job.specCompare"), content: () => <Compare job={job} manifest={data} /> },
      ]}
    />
  );
}

function Form({ job, spec }: { job: Job; spec: Spec }) {
  const t = useT();
  const rows = flat(spec);
  const long = rows.filter((each) => each.text.includes("\n"));
  return (
    <>
      <Tools text={() => toYaml(spec)} file={`${job.name}.job.yaml`} note={t("job.specFormHelp")} />
      <Table<Value>
        label={t("job.specForm")}
        keyOf={(row) => row.path}
        rows={rows.filter((each) => !each.text.includes("\n"))}
        columns={[
          { id: "path", header: t("job.field"), cell: (row) => <code>{row.path}</code> },
          {
            id: "value",
            header: t("job.value"),
            cell: (row) => <span className={styles.value}>{row.text}</span>,
          },
        ]}
      />
      {long.map((each) => (
        <figure key={each.path} className={styles.long}>
          <figcaption>
            <code>{each.path}</code>
            <CopyButton text={each.text} />
          </figcaption>
          <Code label={each.path}>{each.text}</Code>
        </figure>
      ))}
    </>
  );
}

function ManifestYaml({ job }: { job: Job }) {
  const t = useT();
  const address = MANIFEST.replace("{namespace}", encodeURIComponent(job.namespace)).replace(
    "{name}",
    encodeURIComponent(job.name),
  );
  const { data, problem, reload } = useLoad(`yaml ${job.uid}`, async (signal) =>
    (await request(`${address}?format=yaml`, { signal })).text(),
  );
  if (data === undefined) return problem ? <ProblemNote problem={problem} onRetry={reload} /> : <Loading />;
  return (
    <>
      <Tools text={() => data} file={`${job.name}.yaml`} note={t("job.specManifestHelp")} />
      <Code label={t("job.specManifest")}>{data}</Code>
    </>
  );
}

interface EffectiveProps {
  job: Job;
  objects: readonly Record<string, unknown>[];
  provenance: Readonly<Record<string, string>>;
}

function Effective({ job, objects, provenance }: EffectiveProps) {
  const t = useT();
  const hasOrigins = Object.keys(provenance).length > 0;
  const text = () => objects.map(toYaml).join("---\n");
  return (
    <>
      <Tools
        text={text}
        file={`${job.name}.effective.yaml`}
        note={hasOrigins ? t("job.specEffectiveHelp") : t("job.noOrigins")}
      />
      {hasOrigins ? (
        objects.map((each, index) => (
          <OriginYaml
            // biome-ignore lint/suspicious/noArrayIndexKey: objects have their order
            key={index}
            value={each}
            pointer={`/${index}`}
            provenance={provenance}
            onJump={() => setQuery({ view: null }, { push: true })}
          />
        ))
      ) : (
        <Code label={t("job.specEffective")}>{text()}</Code>
      )}
    </>
  );
}

/** Side by side with the job it was cloned from, else with one that is chosen. */
function Compare({ job, manifest }: { job: Job; manifest: Manifest }) {
  const t = useT();
  const { query } = usePlace();
  const chosen = query.get("with") ?? "";
  const list = useLoad(`jobs ${job.namespace}`, (signal) =>
    api.get("/api/v1/namespaces/{namespace}/jobs", {
      path: { namespace: job.namespace },
      query: { limit: 200 },
      signal,
    }),
  );
  if (list.problem) return <ProblemNote problem={list.problem} onRetry={list.reload} />;
  if (!list.data) return <Loading />;
  const original = manifest.original && job.cloned_from;
  const others = list.data.items.filter((each) => each.uid !== job.uid && each.uid !== original?.uid);
  const names = [...new Set([...(chosen ? [chosen] : []), ...others.map((each) => each.name)])];
  const first = original
    ? [{ value: "", label: t("job.theOriginal", { name: original.name }) }]
    : chosen
      ? []
      : [{ value: "", label: t("job.chooseJob") }];
  if (!original && names.length === 0) return <EmptyState icon="copy" title={t("job.noOthers")} />;
  return (
    <>
      <div className={styles.choose}>
        <Select
          label={t("job.compareWith")}
          help={t("job.compareHelp")}
          value={chosen}
          options={[...first, ...names.map((name) => ({ value: name, label: name }))]}
          onChange={(value) => setQuery({ with: value })}
        />
      </div>
      {chosen ? (
        <WithOther job={job} spec={manifest.spec} other={chosen} />
      ) : (
        original &&
        manifest.original && (
          <>
            <GoneNote job={job} original={original} />
            <Differences job={job} spec={manifest.spec} other={original.name} there={manifest.original} />
          </>
        )
      )}
    </>
  );
}

function GoneNote({ job, original }: { job: Job; original: Original }) {
  const t = useT();
  const isThere = useIsThere(job.namespace, original);
  return isThere === false ? (
    <p className={styles.note}>{t("job.originalKept", { name: original.name })}</p>
  ) : null;
}

function WithOther({ job, spec, other }: { job: Job; spec: Spec; other: string }) {
  const { data, problem, reload } = useLoad(`manifest ${job.namespace}/${other}`, (signal) =>
    api.get(MANIFEST, { path: { namespace: job.namespace, name: other }, signal }),
  );
  if (!data) return problem ? <ProblemNote problem={problem} onRetry={reload} /> : <Loading />;
  return <Differences job={job} spec={spec} other={other} there={data.spec} />;
}

interface DifferencesProps {
  job: Job;
  spec: Spec;
  other: string;
  there: Spec;
}

function Differences({ job, spec, other, there }: DifferencesProps) {
  const t = useT();
  const found = differences(spec, there);
  if (found.length === 0) return <EmptyState icon="done" title={t("job.noDifference", { other })} />;
  const cell = (text: string | null, className: string | undefined): ReactNode =>
    text === null ? (
      <span className={styles.none}>{t("job.notSet")}</span>
    ) : (
      <span className={`${styles.value} ${className ?? ""}`}>{text}</span>
    );
  return (
    <Table
      label={t("job.specCompare")}
      keyOf={(row) => row.path}
      rows={found}
      columns={[
        { id: "path", header: t("job.field"), cell: (row) => <code>{row.path}</code> },
        { id: "here", header: job.name, cell: (row) => cell(row.here, styles.here) },
        { id: "there", header: other, cell: (row) => cell(row.there, styles.there) },
      ]}
    />
  );
}

function Tools({ text, file, note }: { text: () => string; file: string; note: string }) {
  const t = useT();
  const [address, setAddress] = useState("");
  const download = () => {
    URL.revokeObjectURL(address);
    const made = URL.createObjectURL(new Blob([text()], { type: "text/plain" }));
    setAddress(made);
    const link = document.createElement("a");
    link.href = made;
    link.download = file;
    link.click();
  };
  return (
    <div className={styles.tools}>
      <span>{note}</span>
      <CopyButton text={text} />
      <Button isSmall icon="download" onPress={download}>
        {t("job.download")}
      </Button>
    </div>
  );
}

function Code({ label, children }: { label: string; children: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: who scrolls by keyboard must reach it
    <section className={styles.code} tabIndex={0} aria-label={label}>
      <pre>{children}</pre>
    </section>
  );
}
