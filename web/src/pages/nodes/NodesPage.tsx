import { useEffect, useRef } from "react";
import { Link } from "react-aria-components";
import { api } from "@/api/client";
import { useLoad } from "@/api/useLoad";
import { useFormats, useT } from "@/i18n/i18n";
import { useJobNews } from "@/live/jobFeed";
import { useEvery } from "@/live/useEvery";
import { to } from "@/router/router";
import { useNamespace } from "@/session/session";
import { EmptyState, Loading, Meter, PageHeader } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { Badge } from "@/ui/StateBadge";
import { type Column, Table } from "@/ui/Table";
import { useMedia } from "@/ui/useMedia";
import styles from "./NodesPage.module.css";
import { type Amounts, type Node, share, toneOf, total } from "./nodes";

/** Nodes come and go without news of jobs. */
const EVERY_MS = 15_000;
/** Many jobs change at once; one reading serves them all. */
const AFTER_NEWS_MS = 1000;

export default function NodesPage() {
  const t = useT();
  const { data, problem, isLoading, reload } = useLoad("nodes", (signal) =>
    api.get("/api/v1/nodes", { signal }),
  );
  useFresh(reload);
  const isNarrow = useMedia("(max-width: 56rem)");
  const nodes = data?.items;
  return (
    <>
      <PageHeader title={t("nodes.title")} />
      {problem && <ProblemNote problem={problem} onRetry={reload} />}
      {!nodes && isLoading && <Loading />}
      {nodes?.length === 0 && (
        <EmptyState icon="node" title={t("nodes.emptyTitle")}>
          {t("nodes.emptyHelp")}
        </EmptyState>
      )}
      {nodes && nodes.length > 0 && (
        <>
          <Summary nodes={nodes} />
          {isNarrow ? <Cards nodes={nodes} /> : <NodeTable nodes={nodes} />}
        </>
      )}
    </>
  );
}

function useFresh(reload: () => void): void {
  const [namespace] = useNamespace();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useJobNews(namespace, (news) => {
    if (news.every((each) => each.kind === "progress")) return;
    // Not put off by the next news: where something always happens, nothing would be read.
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      reload();
    }, AFTER_NEWS_MS);
  });
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
  useEvery(EVERY_MS, reload);
}

function Summary({ nodes }: { nodes: readonly Node[] }) {
  const t = useT();
  const ready = nodes.filter((node) => node.ready);
  return (
    <section className={styles.summary} aria-label={t("nodes.summary")}>
      <div>
        <h2>{t.plural("nodes.count", nodes.length)}</h2>
        {ready.length < nodes.length && <p>{t.plural("nodes.notReadyCount", nodes.length - ready.length)}</p>}
      </div>
      <Use used={total(ready, (node) => node.used)} capacity={total(ready, (node) => node.capacity)} />
    </section>
  );
}

function NodeTable({ nodes }: { nodes: readonly Node[] }) {
  const t = useT();
  const columns: Column<Node>[] = [
    { id: "name", header: t("nodes.columnName"), cell: (node) => <Name node={node} /> },
    { id: "type", header: t("nodes.columnType"), cell: (node) => <Word text={node.instance_type} /> },
    {
      id: "architecture",
      header: t("nodes.columnArchitecture"),
      cell: (node) => <Word text={node.architecture} />,
    },
    { id: "os", header: t("nodes.columnOs"), cell: (node) => node.os_image || "–" },
    { id: "gpu", header: t("nodes.columnGpu"), cell: (node) => <Gpu node={node} /> },
    { id: "capacity", header: t("nodes.columnCapacity"), cell: (node) => <Word text={node.capacity_type} /> },
    {
      id: "use",
      header: t("nodes.columnUse"),
      cell: (node) => <Use used={node.used} capacity={node.capacity} />,
    },
    { id: "jobs", header: t("nodes.columnJobs"), cell: (node) => <Jobs node={node} /> },
  ];
  return <Table label={t("nodes.title")} columns={columns} rows={nodes} keyOf={(node) => node.name} />;
}

function Cards({ nodes }: { nodes: readonly Node[] }) {
  const t = useT();
  return (
    <ul className={styles.cards}>
      {nodes.map((node) => (
        <li key={node.name}>
          <Name node={node} />
          <dl>
            <dt>{t("nodes.columnType")}</dt>
            <dd>
              <Word text={node.instance_type} />
            </dd>
            <dt>{t("nodes.columnArchitecture")}</dt>
            <dd>
              <Word text={node.architecture} />
            </dd>
            <dt>{t("nodes.columnOs")}</dt>
            <dd>
              <Word text={node.os_image} />
            </dd>
            <dt>{t("nodes.columnGpu")}</dt>
            <dd>
              <Gpu node={node} />
            </dd>
            <dt>{t("nodes.columnCapacity")}</dt>
            <dd>
              <Word text={node.capacity_type} />
            </dd>
            <dt>{t("nodes.columnJobs")}</dt>
            <dd>
              <Jobs node={node} />
            </dd>
          </dl>
          <Use used={node.used} capacity={node.capacity} />
        </li>
      ))}
    </ul>
  );
}

function Name({ node }: { node: Node }) {
  const t = useT();
  return (
    <div className={styles.name}>
      <strong>{node.name}</strong>
      {node.ready ? (
        <Badge tone="good" icon="done">
          {t("nodes.ready")}
        </Badge>
      ) : (
        <Badge tone="bad" icon="cross">
          {t("nodes.notReady")}
        </Badge>
      )}
      {node.zone && <span className={styles.quiet}>{node.zone}</span>}
      {node.remarks.map((each) => (
        <span key={each} className={styles.remark}>
          {each}
        </span>
      ))}
    </div>
  );
}

function Word({ text }: { text: string }) {
  return text ? <span className={styles.word}>{text}</span> : <span className={styles.quiet}>–</span>;
}

function Gpu({ node }: { node: Node }) {
  const t = useT();
  const { number } = useFormats();
  if (!node.gpus) return <span className={styles.quiet}>{t("nodes.noGpu")}</span>;
  if (!node.gpu_type) return <>{number(node.gpus)}</>;
  return <>{t("nodes.gpus", { count: number(node.gpus), type: node.gpu_type })}</>;
}

function Use({ used, capacity }: { used: Amounts; capacity: Amounts }) {
  const t = useT();
  const { number, bytes } = useFormats();
  const cores = (value: number) => number(value, { maximumFractionDigits: 1 });
  const bars: [string, number, number, (value: number) => string][] = [
    [t("nodes.cpu"), used.cpu, capacity.cpu, cores],
    [t("nodes.memory"), used.memory, capacity.memory, bytes],
    ...(capacity.gpus > 0
      ? [[t("nodes.gpu"), used.gpus, capacity.gpus, cores] as [string, number, number, typeof cores]]
      : []),
  ];
  return (
    <div className={styles.use}>
      {bars.map(([label, taken, all, write]) => {
        const fraction = share(taken, all);
        const free = write(Math.max(0, all - taken));
        return (
          <div key={label} className={styles.bar}>
            <span className={styles.what}>{label}</span>
            <span className={styles.amount}>
              {t("nodes.usedOf", { used: write(taken), all: write(all), free })}
            </span>
            <Meter
              label={t("nodes.used", { what: label })}
              fraction={fraction}
              text=""
              tone={toneOf(fraction)}
            />
          </div>
        );
      })}
    </div>
  );
}

function Jobs({ node }: { node: Node }) {
  const t = useT();
  if (node.jobs.length === 0) return <span className={styles.quiet}>{t("nodes.noJobs")}</span>;
  return (
    <ul className={styles.jobs}>
      {node.jobs.map((job) => (
        <li key={`${job.namespace} ${job.name}`}>
          {job.namespace ? (
            <Link href={to.job(job.namespace, job.name)}>{job.name}</Link>
          ) : (
            <span>{t("nodes.others")}</span>
          )}{" "}
          <span className={styles.quiet}>{t.plural("nodes.pods", job.pods)}</span>
        </li>
      ))}
    </ul>
  );
}
