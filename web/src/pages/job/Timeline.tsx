import type { Attempt, Job, JobEvent } from "@/api/types";
import { useFormats, useT } from "@/i18n/i18n";
import { useNow } from "@/live/useNow";
import { cx } from "@/ui/cx";
import { Card } from "@/ui/Layout";
import styles from "./JobPage.module.css";
import { Message } from "./logs/AnsiText";
import { headline } from "./logs/headline";
import { type Chapter, type Stretch, told } from "./timeline";

interface TimelineProps {
  job: Job;
  events: readonly JobEvent[];
  attempts: readonly Attempt[];
  isGone: boolean;
}

/** The newest attempts; a job that restarted a thousand times has the others among its events. */
const SHOWN = 5;

/** A list of attempts, each a list of phases; the bars only add to it. */
export function Timeline({ job, events, attempts, isGone }: TimelineProps) {
  const t = useT();
  const { number } = useFormats();
  const chapters = told(job, events, attempts);
  const shown = chapters.slice(-SHOWN);
  return (
    <Card title={t("job.timeline")}>
      {chapters.length > SHOWN && (
        <p className={styles.note}>{t("job.timelineNewest", { count: number(chapters.length) })}</p>
      )}
      <ol className={styles.chapters}>
        {shown.map((chapter) => (
          <ChapterRow
            key={`${chapter.run} ${chapter.attempt}`}
            chapter={chapter}
            hasRuns={job.run > 1}
            isStill={isGone}
          />
        ))}
      </ol>
    </Card>
  );
}

function ChapterRow({ chapter, hasRuns, isStill }: { chapter: Chapter; hasRuns: boolean; isStill: boolean }) {
  const t = useT();
  const { number } = useFormats();
  const attempt = number(chapter.attempt + 1);
  const name = hasRuns
    ? t("job.runAttempt", { run: number(chapter.run), attempt })
    : t("job.attemptNumber", { attempt });
  return (
    <li className={styles.chapter}>
      <span className={styles.chapterName}>{name}</span>
      <ol className={styles.bar}>
        {chapter.stretches.map((stretch) => (
          <StretchBar key={`${stretch.phase} ${stretch.from}`} stretch={stretch} isStill={isStill} />
        ))}
      </ol>
      {chapter.failure && (
        <details className={styles.failure}>
          <summary>{headline(chapter.failure)}</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: who scrolls by keyboard must reach it */}
          <section className={styles.failureText} tabIndex={0} aria-label={t("job.message")}>
            <Message text={chapter.failure} />
          </section>
        </details>
      )}
    </li>
  );
}

function StretchBar({ stretch, isStill }: { stretch: Stretch; isStill: boolean }) {
  const t = useT();
  const { duration, dateTime } = useFormats();
  const now = useNow();
  const end = stretch.until ?? (isStill ? stretch.from : now);
  const seconds = Math.max(0, end - stretch.from) / 1000;
  const isPoint = stretch.until === stretch.from;
  const phase = t(`phase.${stretch.phase}`);
  const words = isPoint || seconds < 1 ? phase : t("job.phaseFor", { phase, time: duration(seconds) });
  return (
    // Roots, so that a minute is still seen beside an hour.
    <li className={styles.stretch} style={{ flexGrow: isPoint ? 0.1 : Math.sqrt(Math.max(0.1, seconds)) }}>
      <div className={cx(styles.stretchBar, styles[stretch.phase])} title={dateTime(stretch.from)} />
      <span className={styles.stretchWords} title={words}>
        {words}
      </span>
    </li>
  );
}
