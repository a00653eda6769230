import { api } from "@/api/client";
import type { Checkpoints, Job } from "@/api/types";
import { useLoad } from "@/api/useLoad";
import { useFormats, useT } from "@/i18n/i18n";
import { useEvery } from "@/live/useEvery";
import { EmptyState, Loading } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { Badge } from "@/ui/StateBadge";
import { type Column, Table } from "@/ui/Table";
import { Ago } from "@/ui/Time";
import styles from "./JobPage.module.css";

type Item = Checkpoints["items"][number];
const EVERY_MS = 10_000;

export function CheckpointsTab({ job }: { job: Job }) {
  const t = useT();
  const { number, bytes } = useFormats();
  const loaded = useLoad(job.uid, (signal) =>
    api.get("/api/v1/namespaces/{namespace}/jobs/{name}/checkpoints", {
      path: { namespace: job.namespace, name: job.name },
      signal,
    }),
  );
  const { reload } = loaded;
  const isLive = job.state === "Running";
  useEvery(EVERY_MS, () => {
    if (isLive) reload();
  });
  if (loaded.problem?.ability) {
    return (
      <EmptyState icon="runtime" title={t("job.noCheckpointsHere")}>
        {loaded.problem.message}
      </EmptyState>
    );
  }
  if (!loaded.data) {
    return loaded.problem ? <ProblemNote problem={loaded.problem} onRetry={reload} /> : <Loading />;
  }
  const { items, note, directory } = loaded.data;
  if (items.length === 0) {
    return (
      <EmptyState icon="runtime" title={t("job.noCheckpoints")}>
        {directory === null ? t("job.noCheckpointsAsked") : note || t("job.noCheckpointsYet", { directory })}
      </EmptyState>
    );
  }
  // The newest complete one: as the library itself chooses.
  const next = items.find((each) => each.state === "complete");
  const columns: Column<Item>[] = [
    { id: "step", header: t("job.axisStep"), isNumber: true, cell: (item) => number(item.step) },
    {
      id: "state",
      header: t("jobs.columnState"),
      cell: (item) =>
        item.state === "complete" ? (
          <>
            <Badge tone="good" icon="done">
              {t("job.checkpointComplete")}
            </Badge>{" "}
            {item === next && (
              <Badge tone="accent" icon="restart">
                {t("job.checkpointNext")}
              </Badge>
            )}
          </>
        ) : (
          <Badge tone="warn" icon="alert">
            {item.state === "incomplete" ? t("job.checkpointIncomplete") : item.state}
          </Badge>
        ),
    },
    {
      id: "size",
      header: t("job.size"),
      isNumber: true,
      cell: (item) => (item.bytes === null ? "–" : bytes(item.bytes)),
    },
    {
      id: "time",
      header: t("job.saved"),
      cell: (item) => (item.created_at ? <Ago time={item.created_at} /> : "–"),
    },
    { id: "path", header: t("job.path"), isWide: true, cell: (item) => <code>{item.path}</code> },
  ];
  return (
    <>
      <p className={styles.note}>{t("job.checkpointsIn", { directory: directory ?? "" })}</p>
      <Table label={t("job.tabCheckpoints")} columns={columns} rows={items} keyOf={(item) => item.path} />
    </>
  );
}
