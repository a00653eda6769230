/** Beside the form: what is wrong with it, where it fits, what it becomes, and how else to ask for it. */
import { useEffect, useState } from "react";
import { api } from "@/api/client";
import type { JobSpec } from "@/api/types";
import { useLoad } from "@/api/useLoad";
import { useFormats, useT } from "@/i18n/i18n";
import { useEvery } from "@/live/useEvery";
import { useWho } from "@/session/session";
import { CopyButton } from "@/ui/CopyButton";
import { Select } from "@/ui/Field";
import { Icon } from "@/ui/Icon";
import { Card, Loading } from "@/ui/Layout";
import { ProblemList, ProblemNote } from "@/ui/ProblemList";
import { shortfallText } from "@/ui/shortfall";
import { UrlTabs } from "@/ui/Tabs";
import { toYaml } from "@/yaml/yaml";
import { type Fit, fitOf, podGroups, type Shortage } from "./fits";
import type { JobBody } from "./form";
import styles from "./NewJobPage.module.css";
import { OriginYaml } from "./OriginYaml";
import { jumpTo } from "./places";
import { QuotaCard } from "./QuotaCard";
import type { Plan } from "./usePreview";

interface PlanPanelProps {
  plan: Plan;
  namespace: string;
  body: JobBody;
}

export function PlanPanel({ plan, namespace, body }: PlanPanelProps) {
  const t = useT();
  return (
    <aside className={styles.plan} aria-label={t("newJob.plan")}>
      <Problems plan={plan} />
      {plan.preview && plan.preview.objects.length > 0 && (
        <>
          {!plan.preview.shortfall && <Fits objects={plan.preview.objects} />}
          <QuotaCard namespace={namespace} objects={plan.preview.objects} />
        </>
      )}
      <Card>
        <UrlTabs
          label={t("newJob.plan")}
          parameter="plan"
          items={[
            { id: "pods", label: t("newJob.tabPods"), content: () => <Pods plan={plan} /> },
            {
              id: "copy",
              label: t("newJob.tabCopy"),
              content: () => <Copies plan={plan} namespace={namespace} body={body} />,
            },
          ]}
        />
      </Card>
    </aside>
  );
}

export const PROBLEMS = "problems";
/** The warnings that the preview also carries as numbers. */
const TOO_LARGE = ["job-larger-than-machine", "job-refused-as-too-large"];

function Problems({ plan }: { plan: Plan }) {
  const t = useT();
  const formats = useFormats();
  const { problem, isWaiting } = plan;
  const short = plan.preview?.shortfall;
  const findings = plan.findings.map((each) =>
    short && TOO_LARGE.includes(each.code)
      ? { ...each, message: shortfallText(short, t, formats), remedy: "" }
      : each,
  );
  const errors = findings.filter((each) => each.severity !== "warning").length;
  const warnings = findings.length - errors;
  const words = isWaiting
    ? t("newJob.checking")
    : errors > 0
      ? t.plural("newJob.errors", errors)
      : warnings > 0
        ? t.plural("newJob.warnings", warnings)
        : problem
          ? ""
          : t("newJob.noProblems");
  const tone = errors > 0 ? styles.bad : isWaiting ? styles.quiet : warnings > 0 ? styles.warn : styles.good;
  const icon = errors > 0 ? "cross" : warnings > 0 ? "alert" : "done";
  return (
    <section className={styles.problems} id={PROBLEMS} aria-label={t("newJob.problemsTitle")} tabIndex={-1}>
      <p role="status" className={tone}>
        {!isWaiting && !problem && <Icon name={icon} />}
        {words}
      </p>
      {problem && <ProblemNote problem={problem} />}
      {findings.length > 0 && <ProblemList findings={findings} onJump={jumpTo} />}
    </section>
  );
}

/** Others begin and end jobs meanwhile. */
const NODES_MS = 15_000;
const MOST_PLACES = 12;

function Fits({ objects }: { objects: readonly Record<string, unknown>[] }) {
  const t = useT();
  const { data, problem, reload } = useLoad("nodes", (signal) => api.get("/api/v1/nodes", { signal }));
  useEvery(NODES_MS, reload);
  if (problem) {
    const isUnable = problem.ability === "nodes" || problem.code === "unsupported";
    return (
      <Card title={t("newJob.fits")}>
        {isUnable ? (
          <p className={styles.hint}>{t("newJob.nodesUnknown")}</p>
        ) : (
          <ProblemNote problem={problem} onRetry={reload} />
        )}
      </Card>
    );
  }
  if (!data) return <Loading />;
  const groups = podGroups(objects);
  const fit = fitOf(groups, data.items);
  // Where all fit, the others do not matter; else each says what it lacks.
  const told = fit.placed >= fit.wanted ? fit.places.filter((place) => place.pods > 0) : fit.places;
  const shown = told.slice(0, MOST_PLACES);
  const isTooLarge = groups.some((group) =>
    data.items.every(
      ({ capacity }) =>
        capacity.cpu < group.cpu || capacity.memory < group.memory || capacity.gpus < group.gpus,
    ),
  );
  return (
    <Card title={t("newJob.fits")}>
      <FitWords fit={fit} isTooLarge={isTooLarge} />
      <ul className={styles.places}>
        {shown.map((place) => (
          <li key={place.node}>
            <span className={styles.placeName}>
              <Icon name="node" size={14} /> {place.node}
            </span>
            <span className={place.pods > 0 ? styles.good : styles.quiet}>
              {!place.isReady
                ? t("newJob.notReady")
                : place.pods > 0
                  ? t.plural("newJob.placePods", place.pods)
                  : t("newJob.placeNone")}
            </span>
            {fit.placed < fit.wanted && (
              <span className={styles.reasons}>
                {place.shortages.map((each) => (
                  <Short key={each.kind} short={each} />
                ))}
                {place.remarks.map((each) => (
                  <span key={each}>{each}</span>
                ))}
              </span>
            )}
          </li>
        ))}
      </ul>
      {told.length > shown.length && (
        <p className={styles.hint}>{t.plural("newJob.morePlaces", told.length - shown.length)}</p>
      )}
      <p className={styles.hint}>{t("newJob.fitsNote")}</p>
    </Card>
  );
}

function FitWords({ fit, isTooLarge }: { fit: Fit; isTooLarge: boolean }) {
  const t = useT();
  const { wanted, placed } = fit;
  if (placed >= wanted) {
    return (
      <p className={styles.good}>
        <Icon name="done" /> {t.plural("newJob.fitsAll", wanted)}
      </p>
    );
  }
  return (
    <p className={styles.warn}>
      <Icon name="clock" />{" "}
      {isTooLarge
        ? t("newJob.fitsNever")
        : placed > 0
          ? t("newJob.fitsSome", { placed, wanted })
          : t("newJob.fitsNone")}
    </p>
  );
}

function Short({ short }: { short: Shortage }) {
  const t = useT();
  const { number, bytes } = useFormats();
  const shown = (value: number) =>
    short.kind === "memory"
      ? bytes(Math.max(0, value))
      : number(Math.max(0, value), { maximumFractionDigits: 2 });
  const values = { needed: shown(short.needed), free: shown(short.free), capacity: shown(short.capacity) };
  if (short.kind === "cpu") return <span>{t("newJob.shortCpu", values)}</span>;
  if (short.kind === "memory") return <span>{t("newJob.shortMemory", values)}</span>;
  return <span>{t("newJob.shortGpus", values)}</span>;
}

const ALL_OBJECTS = "all";

function Pods({ plan }: { plan: Plan }) {
  const t = useT();
  const [part, setPart] = useState("0");
  const objects = plan.preview?.objects ?? [];
  if (objects.length === 0) {
    return plan.isWaiting ? <Loading /> : <p className={styles.hint}>{t("newJob.nothingYet")}</p>;
  }
  const jobs = replicatedJobs(objects[0]);
  const chosen = part === ALL_OBJECTS || !jobs[Number(part)] ? (jobs[0] ? part : ALL_OBJECTS) : part;
  const isAll = chosen === ALL_OBJECTS || !jobs[Number(chosen)];
  const shown = isAll
    ? objects.map((value, index) => ({ value: value as unknown, pointer: `/${index}` }))
    : [
        {
          value: jobs[Number(chosen)]?.pod,
          pointer: `/0/spec/replicatedJobs/${chosen}/template/spec/template`,
        },
      ];
  const isStale =
    plan.findings.some((each) => each.severity !== "warning") && plan.preview?.is_refused === false;
  return (
    <div className={styles.fields}>
      <div className={styles.toolbar}>
        <Select
          label={t("newJob.part")}
          isLabelHidden
          value={isAll ? ALL_OBJECTS : chosen}
          options={[
            ...jobs.map((job, index) => ({
              value: String(index),
              label: t("newJob.podOf", { name: job.name }),
            })),
            { value: ALL_OBJECTS, label: t("newJob.allObjects") },
          ]}
          onChange={setPart}
        />
        <CopyButton text={() => shown.map((each) => toYaml(each.value)).join("---\n")} />
      </div>
      {isStale && <p className={styles.hint}>{t("newJob.stale")}</p>}
      {shown.map((each) => (
        <OriginYaml
          key={each.pointer}
          value={each.value}
          pointer={each.pointer}
          provenance={plan.preview?.provenance ?? {}}
          onJump={jumpTo}
        />
      ))}
    </div>
  );
}

function replicatedJobs(jobSet: Record<string, unknown> | undefined): { name: string; pod: unknown }[] {
  const spec = jobSet?.spec as {
    replicatedJobs?: { name: string; template?: { spec?: { template?: unknown } } }[];
  };
  return (spec?.replicatedJobs ?? []).map((each) => ({
    name: each.name,
    pod: each.template?.spec?.template,
  }));
}

type CopyForm = "cli" | "curl" | "python" | "trainjob";

function Copies({ plan, namespace, body }: PlanPanelProps) {
  const t = useT();
  const { authentication } = useWho();
  const forms: { id: CopyForm; label: string; help: string }[] = [
    { id: "cli", label: t("newJob.asCli"), help: t("newJob.asCliHelp") },
    { id: "curl", label: t("newJob.asCurl"), help: t("newJob.asCurlHelp") },
    { id: "python", label: t("newJob.asPython"), help: t("newJob.asPythonHelp") },
    { id: "trainjob", label: t("newJob.asTrainjob"), help: t("newJob.asTrainjobHelp") },
  ];
  const isBroken = plan.preview === undefined || plan.findings.some((each) => each.severity !== "warning");
  if (isBroken) {
    return plan.isWaiting ? <Loading /> : <p className={styles.hint}>{t("newJob.nothingYet")}</p>;
  }
  const needsToken = authentication !== "off";
  return (
    <UrlTabs
      label={t("newJob.tabCopy")}
      parameter="as"
      items={forms.map((each) => ({
        id: each.id,
        label: each.label,
        content: () => (
          <CopyText
            form={each.id}
            help={needsToken && each.id !== "trainjob" ? `${each.help} ${t("newJob.tokenHelp")}` : each.help}
            namespace={namespace}
            body={plan.isWaiting ? null : body}
          />
        ),
      }))}
    />
  );
}

interface CopyTextProps {
  form: CopyForm;
  help: string;
  namespace: string;
  /** null while the form is being checked: what is shown stays. */
  body: JobBody | null;
}

function CopyText({ form, help, namespace, body }: CopyTextProps) {
  const t = useT();
  const [settled, setSettled] = useState(body);
  useEffect(() => {
    if (body !== null) setSettled(body);
  }, [body]);
  const { data, problem, reload } = useLoad(
    `${form} ${namespace} ${JSON.stringify(settled)}`,
    async (signal) =>
      settled === null
        ? null
        : api.post("/api/v1/namespaces/{namespace}/jobs:retell", {
            path: { namespace },
            query: { form, server: location.origin },
            body: settled as unknown as JobSpec,
            signal,
          }),
  );
  if (problem) return <ProblemNote problem={problem} onRetry={reload} />;
  if (!data) return <Loading />;
  return (
    <div className={styles.fields}>
      <div className={styles.toolbar}>
        <span className={styles.hint}>{help}</span>
        <CopyButton text={data.text} />
      </div>
      <section
        className={styles.copy}
        aria-label={t("newJob.copyText")}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
        tabIndex={0}
      >
        <pre>{data.text}</pre>
      </section>
    </div>
  );
}
