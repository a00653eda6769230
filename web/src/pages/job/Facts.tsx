import { Link } from "react-aria-components";
import type { Job, Original } from "@/api/types";
import { useFormats, useT } from "@/i18n/i18n";
import { to } from "@/router/router";
import { CopyButton } from "@/ui/CopyButton";
import { Card } from "@/ui/Layout";
import { Ago, Duration } from "@/ui/Time";
import styles from "./JobPage.module.css";
import { useIsThere } from "./useIsThere";

/** What does not change, or slowly. */
export function Facts({ job }: { job: Job }) {
  const t = useT();
  const { number } = useFormats();
  const nodes = number(job.nodes);
  // Made for this job alone: the catalogue does not have it.
  const hasOwnRuntime = job.runtime === `${job.name}-runtime`;
  const size =
    job.gpus_per_node === 0
      ? t("jobs.noGpu", { nodes })
      : t("jobs.size", { nodes, gpus: number(job.gpus_per_node) });
  return (
    <Card title={t("job.facts")}>
      <dl className={styles.facts}>
        <dt>{t("job.attempt")}</dt>
        <dd>
          {t("job.attemptOf", {
            attempt: number(job.attempt + 1),
            used: number(job.restarts),
            allowed: number(job.max_restarts),
          })}
        </dd>
        {job.run > 1 && (
          <>
            <dt>{t("job.run")}</dt>
            <dd>{number(job.run)}</dd>
          </>
        )}
        <dt>{t("jobs.columnSize")}</dt>
        <dd>{size}</dd>
        <dt>{t("job.framework")}</dt>
        <dd>
          {job.framework} ·{" "}
          {hasOwnRuntime ? job.runtime : <Link href={to.runtime(job.runtime)}>{job.runtime}</Link>}
        </dd>
        <dt>{t("common.namespace")}</dt>
        <dd>{job.namespace}</dd>
        <dt>{t("jobs.columnOwner")}</dt>
        <dd>{job.owner}</dd>
        {job.cloned_from && (
          <>
            <dt>{t("job.clonedFrom")}</dt>
            <dd>
              <ClonedFrom job={job} original={job.cloned_from} />
            </dd>
          </>
        )}
        <dt>{t("job.created")}</dt>
        <dd>
          <Ago time={job.created_at} />
        </dd>
        <dt>{t("jobs.columnDuration")}</dt>
        <dd>
          <Duration from={job.started_at} until={job.finished_at} />
        </dd>
        <dt>{t("job.id")}</dt>
        <dd className={styles.id}>
          <code>{job.uid}</code>
          <CopyButton text={job.uid} label={t("job.copyId")} isIconOnly />
        </dd>
      </dl>
    </Card>
  );
}

function ClonedFrom({ job, original }: { job: Job; original: Original }) {
  const t = useT();
  const isThere = useIsThere(job.namespace, original);
  const differences = { tab: "spec", view: "compare" };
  return (
    <>
      {isThere === false ? (
        t("job.originalGone", { name: original.name })
      ) : (
        <Link href={to.job(job.namespace, original.name)}>{original.name}</Link>
      )}
      <div className={styles.under}>
        <Link href={to.job(job.namespace, job.name, differences)}>{t("job.whatDiffers")}</Link>
      </div>
    </>
  );
}
