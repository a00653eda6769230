import { useEffect } from "react";
import { Link } from "react-aria-components";
import { api } from "@/api/client";
import type { Job, Pod } from "@/api/types";
import { useLoad } from "@/api/useLoad";
import { useFormats, useT } from "@/i18n/i18n";
import { to } from "@/router/router";
import { EmptyState, Loading } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { Badge } from "@/ui/StateBadge";
import { type Column, Table } from "@/ui/Table";
import { exitWords, signalOf } from "./exitCodes";
import styles from "./JobPage.module.css";
import { ShortMessage } from "./logs/AnsiText";

const LOOKS = {
  Pending: { tone: "warn", icon: "clock" },
  Initializing: { tone: "info", icon: "gear" },
  Running: { tone: "accent", icon: "play" },
  Succeeded: { tone: "good", icon: "done" },
  Failed: { tone: "bad", icon: "cross" },
} as const;

/** What runs where; what is known last stays when the pods are gone. */
export function PodsTab({ job }: { job: Job }) {
  const t = useT();
  const { number } = useFormats();
  const loaded = useLoad(job.uid, (signal) =>
    api.get("/api/v1/namespaces/{namespace}/jobs/{name}/pods", {
      path: { namespace: job.namespace, name: job.name },
      signal,
    }),
  );
  const { reload } = loaded;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another version may have other pods
  useEffect(() => reload(), [job.version, reload]);
  if (!loaded.data) {
    return loaded.problem ? <ProblemNote problem={loaded.problem} onRetry={reload} /> : <Loading />;
  }
  if (loaded.data.items.length === 0) {
    return (
      <EmptyState icon="node" title={t("job.noPods")}>
        {t("job.noPodsHelp")}
      </EmptyState>
    );
  }
  const columns: Column<Pod>[] = [
    {
      id: "rank",
      header: t("job.rank"),
      cell: (pod) => (
        <Link href={to.job(job.namespace, job.name, { rank: String(pod.rank) })}>
          {t("job.rankNumber", { rank: number(pod.rank) })}
        </Link>
      ),
    },
    {
      id: "state",
      header: t("jobs.columnState"),
      cell: (pod) => <PodState pod={pod} />,
    },
    { id: "place", header: t("job.place"), cell: (pod) => <Place pod={pod} /> },
    {
      id: "name",
      header: t("job.podName"),
      isWide: true,
      cell: (pod) => (
        <>
          <code>{pod.name}</code>
          <div className={styles.under}>{pod.replicated_job}</div>
        </>
      ),
    },
    { id: "exit", header: t("job.exit"), cell: (pod) => <Exit pod={pod} /> },
    { id: "restarts", header: t("job.restarts"), isNumber: true, cell: (pod) => number(pod.restarts) },
    {
      id: "attempt",
      header: t("job.attempt"),
      isNumber: true,
      isWide: true,
      cell: (pod) => number(pod.attempt + 1),
    },
  ];
  return (
    <Table label={t("job.podsOf")} columns={columns} rows={loaded.data.items} keyOf={(pod) => pod.name} />
  );
}

function PodState({ pod }: { pod: Pod }) {
  const t = useT();
  const known = pod.phase in LOOKS ? (pod.phase as keyof typeof LOOKS) : null;
  const isWorthTelling = pod.reason && pod.reason !== "Completed";
  return (
    <>
      {known ? (
        <Badge tone={LOOKS[known].tone} icon={LOOKS[known].icon}>
          {t(`job.pod${known}`)}
        </Badge>
      ) : (
        pod.phase
      )}
      {isWorthTelling && <ShortMessage text={pod.reason} />}
    </>
  );
}

function Place({ pod }: { pod: Pod }) {
  if (pod.node === null) return <>–</>;
  return (
    <>
      <Link href={to.nodes()}>{pod.node}</Link>
      {pod.address !== null && <div className={styles.under}>{pod.address}</div>}
    </>
  );
}

function Exit({ pod }: { pod: Pod }) {
  const t = useT();
  if (pod.exit_code === null) return <>–</>;
  const signal = signalOf(pod.exit_code);
  return (
    <>
      <strong>{signal ? `${pod.exit_code} (${signal})` : pod.exit_code}</strong>
      <div className={styles.under}>{exitWords(pod.exit_code, t)}</div>
    </>
  );
}
