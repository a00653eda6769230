import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { api } from "@/api/client";
import type { Attempt, Job } from "@/api/types";
import { useLoad } from "@/api/useLoad";
import { useFormats, useT } from "@/i18n/i18n";
import { useEvery } from "@/live/useEvery";
import { setQuery, usePlace } from "@/router/router";
import { type Option, Select } from "@/ui/Field";
import { EmptyState, Loading } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { Toggle } from "@/ui/Toggle";
import styles from "./MetricsTab.module.css";
import { SeriesCard } from "./SeriesCard";
import { type Axis, inOrder, linesOf, type RankChoice, rankChoice } from "./series";

const EVERY_MS = 2000;
const SMOOTHING = ["0", "0.6", "0.9", "0.97"] as const;

export function MetricsTab({ job, attempts }: { job: Job; attempts: readonly Attempt[] }) {
  const t = useT();
  const { query } = usePlace();
  const run = Number(query.get("run")) || job.run;
  const axis: Axis = query.get("x") === "time" ? "time" : "step";
  const isLog = query.get("scale") === "log";
  const weight = Number(query.get("smooth")) || 0;
  const choice = rankChoice(query.get("ranks"));
  const loaded = useLoad(JSON.stringify([job.uid, run, choice]), async (signal) => {
    const found = await api.get("/api/v1/namespaces/{namespace}/jobs/{name}/metrics", {
      path: { namespace: job.namespace, name: job.name },
      query: { run, rank: choice === "each" ? "all" : choice },
      signal,
    });
    return { ...found, choice, uid: job.uid };
  });
  useRefresh(job, loaded.reload);
  const theme = useTheme();
  const starts = useMemo(
    () =>
      attempts
        .filter((each) => each.run === run && each.started_at)
        .map((each) => ({ attempt: each.attempt, time: Date.parse(each.started_at ?? "") / 1000 })),
    [attempts, run],
  );
  // What was shown stays until what was chosen is here, and with it the control that has the focus.
  const kept = useRef(loaded.data);
  if (loaded.data) kept.current = loaded.data;
  const data = kept.current?.uid === job.uid && kept.current.run === run ? kept.current : undefined;
  const lines = useMemo(() => (data ? linesOf(data, data.choice) : new Map()), [data]);
  if (loaded.problem && !loaded.data) return <ProblemNote problem={loaded.problem} onRetry={loaded.reload} />;
  if (!data) return <Loading />;
  const hasSeveral = data.ranks.length > 1;
  if (lines.size === 0 && job.run === 1 && !hasSeveral && choice === "mean") return <NoNumbers />;
  return (
    <>
      <div className={styles.bar}>
        <Choices job={job} run={run} ranks={data.ranks} choice={choice} axis={axis} weight={weight} />
        <Toggle isOn={isLog} onChange={(isOn) => setQuery({ scale: isOn ? "log" : null })}>
          {t("job.logScale")}
        </Toggle>
        <span className={styles.hint}>{t("job.plotHint")}</span>
      </div>
      {lines.size === 0 && (isOneRank(choice) ? <NoNumbersOfRank /> : <NoNumbers />)}
      <div className={styles.grid}>
        {inOrder([...lines.keys()]).map((name) => (
          <SeriesCard
            key={name}
            name={name}
            lines={lines.get(name) ?? []}
            starts={starts}
            axis={axis}
            isLog={isLog}
            weight={weight}
            theme={theme}
          />
        ))}
      </div>
    </>
  );
}

function NoNumbers() {
  const t = useT();
  return (
    <EmptyState icon="chart" title={t("job.noMetrics")}>
      {t("job.noMetricsHelp")}
    </EmptyState>
  );
}

function NoNumbersOfRank() {
  const t = useT();
  return (
    <EmptyState icon="chart" title={t("job.noRankMetrics")}>
      {t("job.noRankMetricsHelp")}
    </EmptyState>
  );
}

const isOneRank = (choice: RankChoice) => choice !== "mean" && choice !== "each";

interface ChoicesProps {
  job: Job;
  run: number;
  ranks: readonly number[];
  choice: RankChoice;
  axis: Axis;
  weight: number;
}

function Choices({ job, run, ranks, choice, axis, weight }: ChoicesProps) {
  const t = useT();
  const { number } = useFormats();
  const known = ranks.map(String);
  // A link may name a rank that has no numbers: it is chosen all the same, and can be left.
  if (isOneRank(choice) && !known.includes(choice)) known.push(choice);
  const ofRanks: Option[] = [
    { value: "mean", label: t.plural("job.meanOfRanks", ranks.length) },
    { value: "each", label: t("job.eachRank") },
    ...known.map((rank) => ({ value: rank, label: t("job.rankNumber", { rank: number(Number(rank)) }) })),
  ];
  return (
    <>
      {job.run > 1 && (
        <Select
          label={t("job.run")}
          isLabelHidden
          value={String(run)}
          options={Array.from({ length: job.run }, (_, index) => ({
            value: String(index + 1),
            label: t("job.runNumber", { run: number(index + 1) }),
          }))}
          onChange={(value) => setQuery({ run: value === String(job.run) ? null : value })}
        />
      )}
      {(ranks.length > 1 || choice !== "mean") && (
        <Select
          label={t("job.ranksShown")}
          isLabelHidden
          value={choice}
          options={ofRanks}
          onChange={(value) => setQuery({ ranks: value === "mean" ? null : value })}
        />
      )}
      <Select
        label={t("job.axis")}
        isLabelHidden
        value={axis}
        options={[
          { value: "step", label: t("job.axisStep") },
          { value: "time", label: t("job.axisTime") },
        ]}
        onChange={(value) => setQuery({ x: value === "step" ? null : value })}
      />
      <Select
        label={t("job.smoothing")}
        isLabelHidden
        value={SMOOTHING.find((each) => Number(each) === weight) ?? "0"}
        options={SMOOTHING.map((each) => ({
          value: each,
          label:
            each === "0" ? t("job.smoothingOff") : t("job.smoothingBy", { weight: number(Number(each)) }),
        }))}
        onChange={(value) => setQuery({ smooth: value === "0" ? null : value })}
      />
    </>
  );
}

/** New numbers come while it runs, and once more when it has changed. */
function useRefresh(job: Job, reload: () => void): void {
  const isLive = job.state === "Running" && !job.is_deleting;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another version has other numbers
  useEffect(() => reload(), [job.version, reload]);
  useEvery(EVERY_MS, () => {
    if (isLive) reload();
  });
}

const dark = matchMedia("(prefers-color-scheme: dark)");

function useTheme(): string {
  const [name, setName] = useState(() => document.documentElement.dataset.theme ?? "");
  useEffect(() => {
    const observer = new MutationObserver(() => setName(document.documentElement.dataset.theme ?? ""));
    observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => observer.disconnect();
  }, []);
  const isDark = useSyncExternalStore(
    (listener) => {
      dark.addEventListener("change", listener);
      return () => dark.removeEventListener("change", listener);
    },
    () => dark.matches,
  );
  return `${name} ${isDark}`;
}
