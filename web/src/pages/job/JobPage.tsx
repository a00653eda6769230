import { useT } from "@/i18n/i18n";
import { to } from "@/router/router";
import type { PageProps } from "@/routes";
import { ButtonLink } from "@/ui/Button";
import { EmptyState, Loading, PageHeader } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { StateBadge } from "@/ui/StateBadge";
import { UrlTabs } from "@/ui/Tabs";
import { Actions } from "./Actions";
import { CheckpointsTab } from "./CheckpointsTab";
import { EventsTab } from "./EventsTab";
import { Facts } from "./Facts";
import styles from "./JobPage.module.css";
import { LogsTab } from "./logs/LogsTab";
import { MetricsTab } from "./metrics/MetricsTab";
import { PodsTab } from "./PodsTab";
import { SpecTab } from "./SpecTab";
import { StateCard } from "./StateCard";
import { Timeline } from "./Timeline";
import { useJob } from "./useJob";

export default function JobPage({ parameters }: PageProps) {
  const t = useT();
  const { namespace = "", name = "" } = parameters;
  const live = useJob(namespace, name);
  const { job, explanation, events, progress, problem, isGone } = live;
  if (!job) {
    return (
      <>
        <PageHeader title={name} />
        {problem?.status === 404 ? (
          <EmptyState
            icon="search"
            title={t("job.missingTitle")}
            actions={<ButtonLink href={to.jobs()}>{t("common.toJobs")}</ButtonLink>}
          >
            {t("job.missingHelp", { name, namespace })}
          </EmptyState>
        ) : problem ? (
          <ProblemNote problem={problem} onRetry={live.reload} />
        ) : (
          <Loading />
        )}
      </>
    );
  }
  const attempts = explanation?.attempts ?? [];
  return (
    <div className={styles.page}>
      <PageHeader title={job.name} actions={<Actions job={job} isGone={isGone} />}>
        <StateBadge phase={job.phase} />
      </PageHeader>
      {isGone && (
        <div className={styles.gone} role="status">
          {t("job.gone")}
        </div>
      )}
      {job.is_expired && !isGone && <div className={styles.gone}>{t("job.expired")}</div>}
      <div className={styles.top}>
        <StateCard job={job} explanation={explanation} progress={progress} isGone={isGone} />
        <Facts job={job} />
      </div>
      <Timeline job={job} events={events} attempts={attempts} isGone={isGone} />
      <UrlTabs
        label={t("job.tabs")}
        items={[
          { id: "logs", label: t("job.tabLogs"), content: () => <LogsTab job={job} /> },
          {
            id: "metrics",
            label: t("job.tabMetrics"),
            content: () => <MetricsTab job={job} attempts={attempts} />,
          },
          { id: "pods", label: t("job.tabPods"), content: () => <PodsTab job={job} /> },
          { id: "events", label: t("job.tabEvents"), content: () => <EventsTab events={events} /> },
          { id: "spec", label: t("job.tabSpec"), content: () => <SpecTab job={job} /> },
          { id: "checkpoints", label: t("job.tabCheckpoints"), content: () => <CheckpointsTab job={job} /> },
        ]}
      />
    </div>
  );
}
