import type { ReactNode } from "react";
import { cx } from "./cx";
import styles from "./Table.module.css";

export interface Column<T> {
  id: string;
  header: string;
  cell: (row: T) => ReactNode;
  isNumber?: boolean;
  /** Left out where the window is narrow. */
  isWide?: boolean;
}

interface TableProps<T> {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
}

/** A plain table for tens of rows. Thousands of rows need windowing: see `@tanstack/react-virtual`. */
export function Table<T>({ label, columns, rows, keyOf }: TableProps<T>) {
  return (
    <div className={styles.frame}>
      <table className={styles.table} aria-label={label}>
        <thead>
          <tr>
            {columns.map((each) => (
              <th
                key={each.id}
                scope="col"
                className={cx(each.isNumber && styles.number, each.isWide && styles.wide)}
              >
                {each.header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((each) => (
                <td key={each.id} className={cx(each.isNumber && styles.number, each.isWide && styles.wide)}>
                  {each.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
