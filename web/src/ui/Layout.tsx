import { type ReactNode, useEffect } from "react";
import { useT } from "@/i18n/i18n";
import { cx } from "./cx";
import { Icon, type IconName } from "./Icon";
import styles from "./Layout.module.css";

/** The heading of a page, the title of its tab, and what can be done there. */
export function PageHeader({
  title,
  children,
  actions,
}: {
  title: string;
  children?: ReactNode;
  actions?: ReactNode;
}) {
  const t = useT();
  useEffect(() => {
    document.title = `${title} · ${t("common.product")}`;
  }, [title, t]);
  return (
    <div className={styles.header}>
      <div className={styles.heading}>
        <h1>{title}</h1>
        {children}
      </div>
      {actions && <div className={styles.actions}>{actions}</div>}
    </div>
  );
}

export function Card({
  title,
  children,
  actions,
}: {
  title?: string;
  children: ReactNode;
  actions?: ReactNode;
}) {
  return (
    <section className={styles.card} aria-label={title}>
      {title && (
        <div className={styles.cardHead}>
          <h2>{title}</h2>
          {actions}
        </div>
      )}
      {children}
    </section>
  );
}

interface EmptyProps {
  icon: IconName;
  title: string;
  children?: ReactNode;
  actions?: ReactNode;
}

/** Instead of an empty table: what would be here, and how it comes to be. */
export function EmptyState({ icon, title, children, actions }: EmptyProps) {
  return (
    <div className={styles.empty}>
      <span className={styles.emptyIcon}>
        <Icon name={icon} size={24} />
      </span>
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {actions && <div className={styles.actions}>{actions}</div>}
    </div>
  );
}

export function Loading() {
  const t = useT();
  return (
    <div className={styles.loading} role="status">
      <span className={styles.spinner} />
      {t("common.loading")}
    </div>
  );
}

/** A bar with its number beside it. `label` says what is measured. */
export function Meter({
  label,
  fraction,
  text,
  tone = "accent",
}: {
  label: string;
  fraction: number;
  text: string;
  tone?: "accent" | "good" | "warn" | "bad";
}) {
  const percent = Math.round(Math.min(1, Math.max(0, fraction)) * 100);
  return (
    <span className={styles.meter}>
      <span
        className={styles.meterTrack}
        role="progressbar"
        aria-label={label}
        aria-valuenow={percent}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <span className={cx(styles.meterFill, styles[tone])} style={{ width: `${percent}%` }} />
      </span>
      {text && <span className={styles.meterText}>{text}</span>}
    </span>
  );
}
