import { useMemo } from "react";
import { useFormats, useT } from "@/i18n/i18n";
import { Card } from "@/ui/Layout";
import { type Column, Table } from "@/ui/Table";
import styles from "./MetricsTab.module.css";
import { Plot } from "./Plot";
import { type Axis, align, byAttempt, type Line, type Part, type Point, sample } from "./series";

const TABLE_ROWS = 50;

interface SeriesProps {
  name: string;
  /** One, or one for each rank. */
  lines: readonly Line[];
  starts: readonly { attempt: number; time: number }[];
  axis: Axis;
  isLog: boolean;
  weight: number;
  theme: string;
}

/** One series as a plot, in words, and as a table. */
export function SeriesCard({ name, lines, starts, axis, isLog, weight, theme }: SeriesProps) {
  const t = useT();
  const { number, dateTime } = useFormats();
  const parts = useMemo(() => lines.flatMap((line) => byAttempt(line, starts)), [lines, starts]);
  const data = useMemo(() => align(parts, axis, { isLog, weight }), [parts, axis, isLog, weight]);
  const isByRank = lines.some((line) => line.rank !== undefined);
  const last = isByRank ? undefined : lines[0]?.points.at(-1);
  const short = (value: number) => number(value, { maximumSignificantDigits: 5 });
  const label = [
    ...(isByRank ? [t("job.plotRanks", { name })] : []),
    ...lines.map(({ rank, points }) => {
      const [count, end] = [number(points.length), short(points.at(-1)?.[2] ?? 0)];
      return rank === undefined
        ? t("job.plotLabel", { name, count, first: short(points[0]?.[2] ?? 0), last: end })
        : t("job.plotRank", { rank: number(rank), count, last: end });
    }),
    ...firsts(parts).map((part) =>
      t("job.plotAttempt", { attempt: number(part.attempt + 1), step: number(part.points[0]?.[0] ?? 0) }),
    ),
  ].join(" ");
  const rows = sample(
    parts.flatMap(({ points, ...of }) => points.map((point) => ({ ...of, point }))),
    TABLE_ROWS,
  );
  const rank: Column<Row> = {
    ...{ id: "rank", header: t("job.rank"), isNumber: true },
    cell: (row) => number(row.rank ?? 0),
  };
  const columns: Column<Row>[] = [
    ...(isByRank ? [rank] : []),
    { id: "step", header: t("job.axisStep"), isNumber: true, cell: (row) => number(row.point[0]) },
    { id: "value", header: t("job.value"), isNumber: true, cell: (row) => short(row.point[2]) },
    { id: "attempt", header: t("job.attempt"), isNumber: true, cell: (row) => number(row.attempt + 1) },
    { id: "time", header: t("job.time"), isWide: true, cell: (row) => dateTime(row.point[1] * 1000) },
  ];
  const now = last && (
    <span className={styles.last}>
      {t("job.lastValue", { value: short(last[2]), step: number(last[0]) })}
    </span>
  );
  return (
    <Card title={name} actions={now}>
      <Plot data={data} axis={axis} isLog={isLog} label={label} theme={theme} />
      <details className={styles.table}>
        <summary>{t("job.asTable")}</summary>
        <Table
          label={name}
          keyOf={(row) => `${row.rank} ${row.attempt} ${row.point.join(" ")}`}
          rows={rows}
          columns={columns}
        />
      </details>
    </Card>
  );
}

interface Row {
  rank?: number;
  attempt: number;
  point: Point;
}

/** Where each attempt after the first begins, once for all ranks. */
function firsts(parts: readonly Part[]): Part[] {
  const found = new Map<number, Part>();
  for (const part of parts) if (!found.has(part.attempt)) found.set(part.attempt, part);
  return [...found.values()].sort((a, b) => a.attempt - b.attempt).slice(1);
}
