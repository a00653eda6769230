import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { api } from "@/api/client";
import type { Attempt, Job } from "@/api/types";
import { useLoad } from "@/api/useLoad";
import { useFormats, useT } from "@/i18n/i18n";
import { setQuery, usePlace } from "@/router/router";
import { Select } from "@/ui/Field";
import { Card, EmptyState, Loading } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { Table } from "@/ui/Table";
import { Toggle } from "@/ui/Toggle";
import styles from "./MetricsTab.module.css";
import { Plot } from "./Plot";
import { type Axis, align, byAttempt, inOrder, type Point, sample } from "./series";

const EVERY_MS = 2000;
const TABLE_ROWS = 50;
const SMOOTHING = ["0", "0.6", "0.9", "0.97"] as const;

export function MetricsTab({ job, attempts }: { job: Job; attempts: readonly Attempt[] }) {
  const t = useT();
  const { number } = useFormats();
  const { query } = usePlace();
  const run = Number(query.get("run")) || job.run;
  const axis: Axis = query.get("x") === "time" ? "time" : "step";
  const isLog = query.get("scale") === "log";
  const weight = query.get("smooth") ?? "0";
  const loaded = useLoad(JSON.stringify([job.uid, run]), (signal) =>
    api.get("/api/v1/namespaces/{namespace}/jobs/{name}/metrics", {
      path: { namespace: job.namespace, name: job.name },
      query: { run },
      signal,
    }),
  );
  useRefresh(job, loaded.reload);
  const theme = useTheme();
  const starts = useMemo(
    () =>
      attempts
        .filter((each) => each.run === run && each.started_at)
        .map((each) => ({ attempt: each.attempt, time: Date.parse(each.started_at ?? "") / 1000 })),
    [attempts, run],
  );
  const series = loaded.data?.series ?? {};
  const names = inOrder(Object.keys(series));
  if (loaded.problem && !loaded.data) return <ProblemNote problem={loaded.problem} onRetry={loaded.reload} />;
  if (!loaded.data) return <Loading />;
  if (names.length === 0) {
    return (
      <EmptyState icon="chart" title={t("job.noMetrics")}>
        {t("job.noMetricsHelp")}
      </EmptyState>
    );
  }
  return (
    <>
      <div className={styles.bar}>
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
          value={SMOOTHING.find((each) => each === weight) ?? "0"}
          options={SMOOTHING.map((each) => ({
            value: each,
            label:
              each === "0" ? t("job.smoothingOff") : t("job.smoothingBy", { weight: number(Number(each)) }),
          }))}
          onChange={(value) => setQuery({ smooth: value === "0" ? null : value })}
        />
        <Toggle isOn={isLog} onChange={(isOn) => setQuery({ scale: isOn ? "log" : null })}>
          {t("job.logScale")}
        </Toggle>
        <span className={styles.hint}>{t("job.plotHint")}</span>
      </div>
      <div className={styles.grid}>
        {names.map((name) => (
          <Series
            key={name}
            name={name}
            points={series[name] ?? []}
            starts={starts}
            axis={axis}
            isLog={isLog}
            weight={Number(weight) || 0}
            theme={theme}
          />
        ))}
      </div>
    </>
  );
}

interface SeriesProps {
  name: string;
  points: readonly Point[];
  starts: readonly { attempt: number; time: number }[];
  axis: Axis;
  isLog: boolean;
  weight: number;
  theme: string;
}

function Series({ name, points, starts, axis, isLog, weight, theme }: SeriesProps) {
  const t = useT();
  const { number, dateTime } = useFormats();
  const parts = useMemo(() => byAttempt(points, starts), [points, starts]);
  const data = useMemo(() => align(parts, axis, { isLog, weight }), [parts, axis, isLog, weight]);
  const last = points.at(-1);
  const short = (value: number) => number(value, { maximumSignificantDigits: 5 });
  const label = [
    t("job.plotLabel", {
      name,
      count: number(points.length),
      first: short(points[0]?.[2] ?? 0),
      last: short(last?.[2] ?? 0),
    }),
    ...parts
      .slice(1)
      .map((part) =>
        t("job.plotAttempt", { attempt: number(part.attempt + 1), step: number(part.points[0]?.[0] ?? 0) }),
      ),
  ].join(" ");
  const rows = sample(
    parts.flatMap((part) => part.points.map((point) => ({ attempt: part.attempt, point }))),
    TABLE_ROWS,
  );
  const now = last && (
    <span className={styles.last}>
      {t("job.lastValue", { value: short(last[2]), step: number(last[0]) })}
    </span>
  );
  return (
    <Card title={name} actions={now}>
      <Plot data={data} axis={axis} isLog={isLog} label={label} theme={theme} />
      <details className={styles.table}>
        <summary>{t("job.asTable")}</summary>
        <Table
          label={name}
          keyOf={(row) => `${row.attempt} ${row.point.join(" ")}`}
          rows={rows}
          columns={[
            { id: "step", header: t("job.axisStep"), isNumber: true, cell: (row) => number(row.point[0]) },
            { id: "value", header: t("job.value"), isNumber: true, cell: (row) => short(row.point[2]) },
            {
              id: "attempt",
              header: t("job.attempt"),
              isNumber: true,
              cell: (row) => number(row.attempt + 1),
            },
            { id: "time", header: t("job.time"), isWide: true, cell: (row) => dateTime(row.point[1] * 1000) },
          ]}
        />
      </details>
    </Card>
  );
}

/** New numbers come while it runs, and once more when it has changed. */
function useRefresh(job: Job, reload: () => void): void {
  const isLive = job.state === "Running" && !job.is_deleting;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another version has other numbers
  useEffect(() => reload(), [job.version, reload]);
  useEffect(() => {
    if (!isLive) return;
    const timer = setInterval(() => document.visibilityState === "visible" && reload(), EVERY_MS);
    return () => clearInterval(timer);
  }, [isLive, reload]);
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
