/** The list of jobs. Only rows in view exist: ten thousand scroll like fifty. */
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Job, Progress } from "@/api/types";
import { useT } from "@/i18n/i18n";
import { may, useWho } from "@/session/session";
import { cx } from "@/ui/cx";
import { useMedia } from "@/ui/useMedia";
import { JobRow, linkId } from "./JobRow";
import styles from "./JobTable.module.css";
import type { Selection } from "./useSelection";

/** As in the style sheet. */
const [ROW, TALL_ROW] = [60, 96];
const NARROW = "(max-width: 56rem)";
const OVERSCAN = 6;
/** Rows before the end at which the next page is asked for: about two screens. */
const AHEAD = 60;

interface Props {
  jobs: readonly Job[];
  progress: ReadonlyMap<string, Progress>;
  selection: Selection;
  cursor: Cursor;
  hasMore: boolean;
  hasNamespaces: boolean;
  onMore: () => void;
}

export interface Cursor {
  /** Of the job whose link has, or had, the focus. */
  uid: string;
  set: (uid: string) => void;
}

export function JobTable({ jobs, progress, selection, cursor, hasMore, hasNamespaces, onMore }: Props) {
  const t = useT();
  const who = useWho();
  const isNarrow = useMedia(NARROW);
  const height = isNarrow ? TALL_ROW : ROW;
  const body = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  // What stands above (a bar, a note) moves the list; where it begins is read after each drawing.
  useLayoutEffect(() => {
    const top = (body.current?.getBoundingClientRect().top ?? 0) + scrollY;
    setMargin((old) => (Math.abs(old - top) < 1 ? old : top));
  });
  const rows = useWindowVirtualizer({
    count: jobs.length,
    estimateSize: useCallback(() => height, [height]),
    overscan: OVERSCAN,
    scrollMargin: margin,
    getItemKey: useCallback((index: number) => jobs[index]?.uid ?? index, [jobs]),
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: another height moves every row
  useEffect(() => rows.measure(), [height]);

  const shown = rows.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && last >= jobs.length - AHEAD) onMore();
  }, [hasMore, last, jobs.length, onMore]);

  useFocusOnCursor(jobs, cursor.uid, (index) => rows.scrollToIndex(index, { align: "auto" }));

  const { toggle } = selection;
  const { set } = cursor;
  const onFocus = useCallback((job: Job) => set(job.uid), [set]);
  const isSelectable = (job: Job) => may(who, "member", job.namespace);
  const selectable = jobs.filter(isSelectable);
  const isAll = selectable.length > 0 && selectable.every((job) => selection.has(job));
  return (
    <div
      role="table"
      aria-label={t("jobs.list")}
      aria-rowcount={hasMore ? -1 : jobs.length + 1}
      className={styles.table}
    >
      <div role="rowgroup">
        <div role="row" aria-rowindex={1} className={styles.head}>
          <span role="columnheader" className={styles.pick}>
            {selectable.length > 0 && (
              <label className={styles.tick}>
                <input
                  type="checkbox"
                  aria-label={t("jobs.selectAll")}
                  checked={isAll}
                  onChange={() => (isAll ? selection.clear() : selection.set(selectable))}
                />
              </label>
            )}
          </span>
          <span role="columnheader">{t("jobs.columnState")}</span>
          <span role="columnheader">{t("jobs.columnName")}</span>
          <span role="columnheader" className="visually-hidden">
            {t("jobs.columnReason")}
          </span>
          <span role="columnheader">{t("jobs.columnFramework")}</span>
          <span role="columnheader">{t("jobs.columnSize")}</span>
          <span role="columnheader">{t("jobs.columnProgress")}</span>
          <span role="columnheader">{t("jobs.columnLoss")}</span>
          <span role="columnheader">{t("jobs.columnAttempt")}</span>
          <span role="columnheader">{t("jobs.columnOwner")}</span>
          <span role="columnheader" className={styles.number}>
            {t("jobs.columnAge")}
          </span>
          <span role="columnheader" className={styles.number}>
            {t("jobs.columnDuration")}
          </span>
        </div>
      </div>
      <div
        role="rowgroup"
        ref={body}
        className={cx(styles.body)}
        style={{ height: `${rows.getTotalSize()}px` }}
      >
        {shown.map((each) => {
          const job = jobs[each.index];
          if (!job) return null;
          return (
            <JobRow
              key={job.uid}
              job={job}
              told={progress.get(job.uid)}
              top={each.start - margin}
              place={each.index + 1}
              isSelected={selection.has(job)}
              isCursor={cursor.uid === job.uid}
              isSelectable={isSelectable(job)}
              hasNamespace={hasNamespaces}
              onSelect={toggle}
              onFocus={onFocus}
            />
          );
        })}
      </div>
    </div>
  );
}

/** Brings the row of the cursor into view and gives it the keyboard, as soon as the row is there. */
function useFocusOnCursor(jobs: readonly Job[], uid: string, scrollTo: (index: number) => void): void {
  const before = useRef(uid);
  const pending = useRef<Job>(undefined);
  useEffect(() => {
    if (uid !== before.current) {
      before.current = uid;
      const index = jobs.findIndex((job) => job.uid === uid);
      pending.current = jobs[index];
      if (index >= 0) scrollTo(index);
    }
    const link = pending.current && document.getElementById(linkId(pending.current));
    if (!link) return;
    pending.current = undefined;
    link.focus({ preventScroll: true });
  });
}
