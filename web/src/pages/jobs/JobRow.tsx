import { memo } from "react";
import { Link } from "react-aria-components";
import type { Job, Progress } from "@/api/types";
import { useFormats, useT } from "@/i18n/i18n";
import { headline } from "@/pages/job/logs/headline";
import { to } from "@/router/router";
import { cx } from "@/ui/cx";
import { Icon } from "@/ui/Icon";
import { Meter } from "@/ui/Layout";
import { StateBadge } from "@/ui/StateBadge";
import { Ago, Duration } from "@/ui/Time";
import { FRAMEWORKS } from "./filters";
import styles from "./JobTable.module.css";
import { sparkline } from "./sparkline";
import { type Trend, useTrend } from "./trends";

export interface RowProps {
  job: Job;
  /** From the stream. */
  told: Progress | undefined;
  /** From the top of the list, in pixels; its place, counted from 1. */
  top: number;
  place: number;
  isSelected: boolean;
  isCursor: boolean;
  isSelectable: boolean;
  hasNamespace: boolean;
  onSelect: (job: Job, isRange: boolean) => void;
  onFocus: (job: Job) => void;
}

export const linkId = (job: Job) => `job-${job.uid}`;

/**
 * Not a <tr>: rows of a windowed list stand where they are put.
 *
 * Drawn again only when something of its own has changed: scrolling and news of others cost it nothing.
 */
export const JobRow = memo(function JobRow({ job, told, top, place, ...rest }: RowProps) {
  const { isSelected, isCursor, isSelectable, hasNamespace, onSelect, onFocus } = rest;
  const t = useT();
  const trend = useTrend(job);
  // What the phase says itself is said in the reader's language.
  const isPlain = job.phase === "Complete" || job.phase === "Suspended";
  const reason = (!isPlain && headline(job.message)) || t(`phase.${job.phase}Means`);
  return (
    <div
      role="row"
      aria-rowindex={place + 1}
      className={cx(styles.row, isSelected && styles.selected, isCursor && styles.cursor)}
      style={{ transform: `translateY(${top}px)` }}
    >
      <span role="cell" className={styles.pick}>
        {isSelectable && (
          <label className={styles.tick}>
            <input
              type="checkbox"
              aria-label={t("jobs.select", { name: job.name })}
              checked={isSelected}
              onChange={(event) =>
                onSelect(job, event.nativeEvent instanceof MouseEvent && event.nativeEvent.shiftKey)
              }
            />
          </label>
        )}
      </span>
      <span role="cell" className={styles.state}>
        <StateBadge phase={job.phase} />
      </span>
      <span role="cell" className={styles.name}>
        <Link
          id={linkId(job)}
          className={cx(styles.link)}
          href={to.job(job.namespace, job.name)}
          onFocus={() => onFocus(job)}
        >
          {job.name}
        </Link>
        {hasNamespace && <span className={styles.namespace}>{job.namespace}</span>}
      </span>
      <span role="cell" className={styles.reason} title={reason}>
        {reason}
      </span>
      <span role="cell" className={styles.wide}>
        {FRAMEWORKS[job.framework] ?? job.framework}
      </span>
      <span role="cell" className={styles.wide}>
        <Size job={job} />
      </span>
      <span role="cell" className={styles.progress}>
        <ProgressCell job={job} progress={told ?? trend?.progress ?? undefined} />
      </span>
      <span role="cell" className={styles.loss}>
        <Loss values={trend?.loss ?? []} />
      </span>
      <span role="cell" className={styles.wide}>
        <Attempt job={job} />
      </span>
      <span role="cell" className={cx(styles.wide, styles.cut)} title={job.owner}>
        <Link className={cx(styles.owner)} href={to.jobs({ owner: job.owner })}>
          {job.owner}
        </Link>
      </span>
      <span role="cell" className={cx(styles.age, styles.number)}>
        <Ago time={job.created_at} />
      </span>
      <span role="cell" className={cx(styles.wide, styles.number)}>
        <Duration from={job.started_at} until={job.finished_at} />
      </span>
    </div>
  );
});

function Size({ job }: { job: Job }) {
  const t = useT();
  const { number } = useFormats();
  const nodes = number(job.nodes);
  if (job.gpus_per_node === 0) return <>{t("jobs.noGpu", { nodes })}</>;
  return <>{t("jobs.size", { nodes, gpus: number(job.gpus_per_node) })}</>;
}

function ProgressCell({ job, progress }: { job: Job; progress: Partial<Progress> | undefined }) {
  const t = useT();
  const { percent, duration } = useFormats();
  const fraction = job.phase === "Complete" ? 1 : (progress?.fraction ?? null);
  if (fraction === null || !job.started_at) return <span className={styles.nothing}>–</span>;
  const left = job.phase === "Running" ? progress?.remaining_seconds : null;
  const text = left ? t("jobs.remaining", { time: duration(left) }) : percent(fraction);
  const tone = job.phase === "Complete" ? "good" : job.phase === "Failed" ? "bad" : "accent";
  const label = t("jobs.progressOf", { name: job.name });
  return <Meter label={label} fraction={fraction} text={text} tone={tone} />;
}

const [WIDTH, HEIGHT] = [56, 20];

function Loss({ values }: { values: Trend["loss"] }) {
  const t = useT();
  const { number } = useFormats();
  const last = values.at(-1);
  if (last === undefined) return <span className={styles.nothing}>–</span>;
  const line = sparkline(values, WIDTH, HEIGHT);
  return (
    <span className={styles.trend} title={t("jobs.lossTitle")}>
      <span className={styles.value}>{number(last, { maximumSignificantDigits: 4 })}</span>
      {line && (
        <svg width={WIDTH} height={HEIGHT} aria-hidden="true" focusable="false">
          <path d={line} />
        </svg>
      )}
    </span>
  );
}

function Attempt({ job }: { job: Job }) {
  const t = useT();
  const { number } = useFormats();
  const attempt = number(job.attempt + 1);
  if (job.restarts === 0) return <>{attempt}</>;
  return (
    <span
      className={styles.restarted}
      title={t.plural("jobs.restarts", job.restarts, { most: number(job.max_restarts) })}
    >
      <Icon name="restart" size={13} /> {attempt}
    </span>
  );
}
