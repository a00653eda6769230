import { Link } from "react-aria-components";
import type { Explanation, Job } from "@/api/types";
import { type Translate, useFormats, useT } from "@/i18n/i18n";
import { to } from "@/router/router";
import { ButtonLink } from "@/ui/Button";
import { CopyButton } from "@/ui/CopyButton";
import { Card, Meter } from "@/ui/Layout";
import { shortfallText } from "@/ui/shortfall";
import { exitWords } from "./exitCodes";
import styles from "./JobPage.module.css";
import { Message } from "./logs/AnsiText";
import { headline } from "./logs/headline";
import type { LiveJob } from "./useJob";

interface StateProps {
  job: Job;
  explanation: Explanation | undefined;
  progress: LiveJob["progress"];
  isGone: boolean;
}

/** First of all: what the state is, why, and what to do now. */
export function StateCard({ job, explanation, progress, isGone }: StateProps) {
  const t = useT();
  const formats = useFormats();
  const causes = explanation?.causes ?? [];
  const short = explanation?.shortfall;
  // The others say all that there is to say.
  const hasWords = job.phase !== "Complete" && job.phase !== "Suspended" && (job.reason || job.message);
  return (
    <Card title={t("job.state")}>
      <div className={styles.state}>
        <p className={styles.meaning}>{t("job.stateMeans", stateWords(job, t))}</p>
        {hasWords && (
          <p className={styles.reason}>
            <strong>{job.reason}</strong> {headline(job.message)}
          </p>
        )}
        {hasWords && job.message.trim().includes("\n") && (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: who scrolls by keyboard must reach it
          <section ref={toItsEnd} className={styles.message} tabIndex={0} aria-label={t("job.message")}>
            <Message text={job.message} />
          </section>
        )}
        {short && !short.is_refused && <p className={styles.reason}>{shortfallText(short, t, formats)}</p>}
        {causes.length > 0 && (
          <ul className={styles.causes}>
            {causes.slice(0, 4).map((each) => (
              <li key={each.pod}>
                <Link href={to.job(job.namespace, job.name, { rank: String(each.rank) })}>
                  {t("job.rankNumber", { rank: each.rank })}
                </Link>
                <span>
                  {each.exit_code === null
                    ? each.reason || t("job.stoppedWithOthers")
                    : t("job.endedWith", { code: each.exit_code, words: exitWords(each.exit_code, t) })}
                </span>
              </li>
            ))}
          </ul>
        )}
        <ProgressLine job={job} progress={progress} />
        {!isGone && <NextSteps job={job} explanation={explanation} />}
      </div>
    </Card>
  );
}

/** The last words say most. */
function toItsEnd(element: HTMLElement | null): void {
  if (element) element.scrollTop = element.scrollHeight;
}

function stateWords(job: Job, t: Translate) {
  return { phase: t(`phase.${job.phase}`), meaning: t(`phase.${job.phase}Means`) };
}

function ProgressLine({ job, progress }: { job: Job; progress: LiveJob["progress"] }) {
  const t = useT();
  const { percent, duration } = useFormats();
  const fraction = job.phase === "Complete" ? 1 : progress?.fraction;
  if (fraction === null || fraction === undefined) return null;
  const left = job.phase === "Running" ? progress?.remaining_seconds : null;
  const text = left
    ? t("job.progressLeft", { percent: percent(fraction), time: duration(left) })
    : percent(fraction);
  const tone = job.phase === "Complete" ? "good" : job.phase === "Failed" ? "bad" : "accent";
  return <Meter label={t("jobs.columnProgress")} fraction={fraction} text={text} tone={tone} />;
}

function NextSteps({ job, explanation }: { job: Job; explanation: Explanation | undefined }) {
  const t = useT();
  const rank = explanation?.causes[0]?.rank;
  const here = (query: Record<string, string>) => to.job(job.namespace, job.name, query);
  const logs = (
    <ButtonLink key="logs" isSmall icon="jobs" href={here(rank === undefined ? {} : { rank: String(rank) })}>
      {rank === undefined ? t("job.readLogs") : t("job.readLogsOf", { rank })}
    </ButtonLink>
  );
  const metrics = (
    <ButtonLink key="metrics" isSmall icon="chart" href={here({ tab: "metrics" })}>
      {t("job.seeMetrics")}
    </ButtonLink>
  );
  const events = (
    <ButtonLink key="events" isSmall icon="clock" href={here({ tab: "events" })}>
      {t("job.seeEvents")}
    </ButtonLink>
  );
  const nodes = (
    <ButtonLink key="nodes" isSmall icon="node" href={to.nodes()}>
      {t("job.seeNodes")}
    </ButtonLink>
  );
  const clone = (
    <ButtonLink
      key="clone"
      isSmall
      icon="copy"
      href={to.newJob({ from: job.name, namespace: job.namespace })}
    >
      {t("job.cloneChanged")}
    </ButtonLink>
  );
  const isTooLarge = job.phase === "Failed" && job.reason === "TooLarge";
  const [words, steps] = {
    Queued: [t("job.nextQueued"), [events, nodes]],
    Pending: [t("job.nextPending"), [events, nodes]],
    Pulling: [t("job.nextPulling"), [events]],
    Initializing: [t("job.nextInitializing"), [logs, events]],
    Running: [t("job.nextRunning"), [logs, metrics]],
    Restarting: [t("job.nextRestarting"), [logs, events]],
    Suspended: [t("job.nextSuspended"), [logs, metrics]],
    Complete: [t("job.nextComplete"), [metrics, logs, clone]],
    Failed: isTooLarge
      ? [t("job.nextTooLarge"), [clone, nodes]]
      : [t("job.nextFailed"), [logs, events, clone]],
    Deleting: [t("job.nextDeleting"), []],
  }[job.phase] as [string, React.ReactNode[]];
  return (
    <div className={styles.next}>
      <h3>{words}</h3>
      <div className={styles.steps}>{steps}</div>
      {explanation && explanation.next_steps.length > 0 && (
        <details className={styles.commands}>
          <summary>{t("job.byCommand")}</summary>
          {explanation.next_steps.map((command) => (
            <div key={command} className={styles.command}>
              <code>{command}</code>
              <CopyButton text={command} isIconOnly />
            </div>
          ))}
        </details>
      )}
    </div>
  );
}
