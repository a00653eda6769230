import {
  type Ref,
  useCallback,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useReducer,
  useRef,
  useState,
} from "react";
import type { LogLine } from "@/api/types";
import { useFormats, useT } from "@/i18n/i18n";
import { Button } from "@/ui/Button";
import { cx } from "@/ui/cx";
import { AnsiText } from "./AnsiText";
import styles from "./LogView.module.css";
import { rowAt, rowCount, rowOfLine } from "./rows";
import { ScrollMap } from "./scrollMap";
import type { LogReader } from "./useLog";

/** Px of a row that is not wrapped; the same in the style sheet. */
const ROW = 20;
/** Rows above and below the view that are there already when they come into it. */
const OVERSCAN = 10;
/** Lines around the view that are fetched before they are needed. */
const AHEAD = 200;
const SETTLE_MS = 150;
const RANK_COLOURS = 8;

export interface LogViewHandle {
  goToLine: (line: number) => void;
  follow: (isFollowing: boolean) => void;
}

interface LogViewProps {
  reader: LogReader;
  label: string;
  hasTimes: boolean;
  hasRanks: boolean;
  isWrapped: boolean;
  /** The line that is pointed at: by a link, or by the search. */
  current: number | null;
  mark: string;
  begins: "end" | number;
  onFollow: (isFollowing: boolean) => void;
  ref: Ref<LogViewHandle>;
}

/**
 * A window on a log of any length: only the rows that are seen exist. A fraction of the scroll bar is the same fraction
 * of the lines, put at the same fraction of the view; so both ends are reached whatever the heights of wrapped rows.
 */
export function LogView(props: LogViewProps) {
  const { reader, label, hasTimes, hasRanks, isWrapped, current, mark, begins, onFollow, ref } = props;
  const t = useT();
  const { number } = useFormats();
  const scroller = useRef<HTMLDivElement>(null);
  const rowsElement = useRef<HTMLDivElement>(null);
  const map = useRef(new ScrollMap()).current;
  const following = useRef(begins === "end");
  const seen = useRef(0);
  const started = useRef(begins === "end");
  const [height, setHeight] = useState(0);
  const [, draw] = useReducer((turn: number) => turn + 1, 0);

  const { book } = reader;
  const { headings } = book;
  const rows = rowCount(book.count, headings);
  map.resize(rows * ROW, height);
  if (following.current) {
    map.goTo(Number.POSITIVE_INFINITY);
    seen.current = book.count;
  }
  const anchor = map.fraction * rows;
  const anchorY = map.fraction * height;
  const first = Math.max(0, Math.floor(anchor - anchorY / ROW) - OVERSCAN);
  const last = Math.min(rows - 1, Math.ceil(anchor + (height - anchorY) / ROW) + OVERSCAN);

  const place = useCallback(() => {
    const element = scroller.current;
    if (!element) return;
    const wanted = map.settled();
    if (Math.abs(element.scrollTop - wanted) > 1) element.scrollTop = wanted;
    map.placed(element.scrollTop);
  }, [map]);

  const goToRow = useCallback(
    (row: number) => {
      following.current = false;
      onFollow(false);
      map.goTo(row * ROW - height / 2 + ROW / 2);
      place();
      draw();
    },
    [map, height, place, onFollow],
  );
  const follow = useCallback(
    (isFollowing: boolean) => {
      following.current = isFollowing;
      onFollow(isFollowing);
      draw();
    },
    [onFollow],
  );
  useImperativeHandle(ref, () => ({ goToLine: (line) => goToRow(rowOfLine(line, book.headings)), follow }), [
    goToRow,
    follow,
    book,
  ]);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    setHeight(element.clientHeight);
    return () => observer.disconnect();
  }, []);

  // A link to a line goes there once, as soon as there are lines.
  useEffect(() => {
    if (started.current || typeof begins !== "number" || rows === 0 || height === 0) return;
    started.current = true;
    goToRow(rowOfLine(begins, book.headings));
  }, [begins, rows, height, goToRow, book]);

  useLayoutEffect(() => {
    if (following.current) place();
    if (!isWrapped) return;
    // Heights of wrapped rows are known only now.
    const layer = rowsElement.current;
    const row = layer?.children[Math.min(Math.floor(anchor), rows - 1) - first] as HTMLElement | undefined;
    if (!layer || !row) return;
    const inside =
      row.offsetTop + Math.min(1, anchor - Math.floor(Math.min(anchor, rows - 1))) * row.offsetHeight;
    layer.style.transform = `translateY(${anchorY - inside}px)`;
  });

  const settling = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(settling.current), []);
  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    const before = map.top;
    map.moved(element.scrollTop);
    if (map.top === before) return;
    const isAtEnd = map.top >= map.furthest - ROW;
    if (isAtEnd !== following.current) {
      following.current = isAtEnd;
      onFollow(isAtEnd);
    }
    clearTimeout(settling.current);
    settling.current = setTimeout(place, SETTLE_MS);
    draw();
  };

  useEffect(() => {
    const begin = rowAt(first, headings);
    const from = begin.kind === "line" ? begin.line : first - headings.length;
    reader.show(Math.max(0, from - AHEAD), from + (last - first) + AHEAD);
  });

  const fresh = following.current ? 0 : Math.max(0, book.count - seen.current);
  const shown = Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
  const digits = String(book.count).length;
  return (
    <div className={styles.frame}>
      <section
        ref={scroller}
        className={styles.scroller}
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: who scrolls by keyboard must reach it
        tabIndex={0}
        onScroll={onScroll}
      >
        <div style={{ height: map.height }}>
          <div className={cx(styles.layer, isWrapped && styles.wrapped)} style={{ height }}>
            <div
              ref={rowsElement}
              className={styles.rows}
              style={isWrapped ? {} : { transform: `translateY(${first * ROW - map.top}px)` }}
            >
              {shown.map((row) => {
                const what = rowAt(row, headings);
                if (what.kind === "attempt") {
                  return (
                    <div key={`attempt ${what.attempt}`} className={styles.heading}>
                      {t("job.logAttempt", { attempt: number(what.attempt + 1) })}
                    </div>
                  );
                }
                return (
                  <Line
                    key={what.line}
                    number={what.line}
                    line={book.line(what.line)}
                    digits={digits}
                    hasTime={hasTimes}
                    hasRank={hasRanks}
                    isCurrent={what.line === current}
                    mark={mark}
                  />
                );
              })}
            </div>
          </div>
        </div>
      </section>
      {fresh > 0 && (
        <div className={styles.fresh}>
          <Button isSmall look="primary" icon="chevron" onPress={() => follow(true)}>
            {t.plural("job.newLines", fresh)}
          </Button>
        </div>
      )}
    </div>
  );
}

interface LineProps {
  number: number;
  line: LogLine | undefined;
  digits: number;
  hasTime: boolean;
  hasRank: boolean;
  isCurrent: boolean;
  mark: string;
}

function Line({ number, line, digits, hasTime, hasRank, isCurrent, mark }: LineProps) {
  const t = useT();
  const { bytes, number: counted } = useFormats();
  return (
    <div className={cx(styles.row, isCurrent && styles.current)} data-line={number + 1}>
      <a className={styles.number} href={`#L${number + 1}`} style={{ width: `${digits + 1}ch` }}>
        {number + 1}
      </a>
      {line === undefined ? (
        <span className={styles.missing}>{t("job.lineLoading")}</span>
      ) : (
        <>
          {hasTime && <span className={styles.time}>{clock(line.time)}</span>}
          {hasRank && (
            <span className={cx(styles.rank, styles[`rank${line.rank % RANK_COLOURS}`])}>
              {t("job.rankShort", { rank: line.rank })}
            </span>
          )}
          <span className={styles.text}>
            {line.dropped ? (
              <span className={styles.cut}>
                {t("job.linesDropped", {
                  size: bytes(line.dropped.bytes),
                  lines: counted(line.dropped.lines),
                })}
              </span>
            ) : (
              <AnsiText text={line.text} mark={mark} />
            )}
            {line.cut && <span className={styles.cut}>{t("job.lineCut")}</span>}
          </span>
        </>
      )}
    </div>
  );
}

/** The time of a line on this person's clock; a log has thousands, so no Intl. */
function clock(seconds: number): string {
  const time = new Date(seconds * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  const thousandth = String(time.getMilliseconds()).padStart(3, "0");
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${thousandth}`;
}
