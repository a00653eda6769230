import { useFormats, useT } from "@/i18n/i18n";
import styles from "./Legend.module.css";
import { type Aligned, type Axis, valuesAt } from "./series";
import { colourOf, dashesOf } from "./strokes";

/** Which line is of which rank, and its value where the pointer is, else its last one. */
export function Legend({ data, axis, place }: { data: Aligned; axis: Axis; place: number | null }) {
  const t = useT();
  const { number, dateTime } = useFormats();
  const x = place === null ? undefined : data.xs[place];
  const where =
    x === undefined
      ? t("job.legendLast")
      : axis === "step"
        ? t("job.legendStep", { step: number(x) })
        : dateTime(x * 1000);
  return (
    <div className={styles.legend}>
      <span className={styles.where}>{where}</span>
      <ul aria-label={t("job.ranksShown")}>
        {[...valuesAt(data, place ?? undefined)].map(([rank, value]) => (
          <li key={rank}>
            <svg width="30" height="8" aria-hidden="true" style={{ color: `var(${colourOf(rank)})` }}>
              <line
                {...{ x1: 1, x2: 29, y1: 4, y2: 4 }}
                stroke="currentColor"
                strokeWidth="2"
                strokeDasharray={dashesOf(rank).join(" ")}
              />
            </svg>
            <span>{t("job.rankNumber", { rank: number(rank) })}</span>
            <span className={styles.value}>
              {value === null ? "–" : number(value, { maximumSignificantDigits: 5 })}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}
