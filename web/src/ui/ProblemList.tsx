import type { FieldError, Problem } from "@/api/problem";
import { useT } from "@/i18n/i18n";
import { Button } from "./Button";
import { cx } from "./cx";
import { Icon } from "./Icon";
import styles from "./ProblemList.module.css";

export interface Finding extends FieldError {
  severity?: "error" | "warning";
}

interface ProblemListProps {
  findings: readonly Finding[];
  /** Brings the field of a path into view; without it paths are plain words. */
  onJump?: (path: string) => void;
}

/** All that is wrong, at once; each with its place and what helps. */
export function ProblemList({ findings, onJump }: ProblemListProps) {
  const t = useT();
  return (
    <ul className={styles.list}>
      {findings.map((each) => {
        const isWarning = each.severity === "warning";
        return (
          <li
            key={`${each.path} ${each.code} ${each.message}`}
            className={cx(isWarning ? styles.warning : styles.error)}
          >
            <Icon name={isWarning ? "alert" : "cross"} />
            <span className="visually-hidden">{isWarning ? t("common.warning") : t("common.error")}</span>
            <div>
              {each.path &&
                (onJump ? (
                  <button type="button" className={styles.path} onClick={() => onJump(each.path)}>
                    {each.path}
                  </button>
                ) : (
                  <code>{each.path}</code>
                ))}{" "}
              {each.message}
              {each.remedy && <div className={styles.remedy}>{each.remedy}</div>}
            </div>
          </li>
        );
      })}
    </ul>
  );
}

/** An answer that is a problem, in the place of what was asked for. */
export function ProblemNote({ problem, onRetry }: { problem: Problem; onRetry?: () => void }) {
  const t = useT();
  const count = problem.errors.length;
  const words = problem.isOffline
    ? t("common.offline")
    : count > 1 // the message has them all in one text
      ? t.plural("common.problems", count)
      : problem.message;
  return (
    <div className={styles.note} role="alert">
      <Icon name="alert" />
      <div>
        <strong>{words}</strong>
        {problem.isOffline && <p className={styles.remedy}>{t("common.offlineHelp")}</p>}
        {count > 1 && <ProblemList findings={problem.errors} />}
        {problem.requestId && (
          <p className={styles.remedy}>{t("common.requestId", { id: problem.requestId })}</p>
        )}
      </div>
      {onRetry && (
        <Button isSmall onPress={onRetry}>
          {t("common.retry")}
        </Button>
      )}
    </div>
  );
}
