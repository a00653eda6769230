import type { Phase } from "@/api/types";
import { useT } from "@/i18n/i18n";
import { cx } from "./cx";
import { Icon, type IconName } from "./Icon";
import styles from "./StateBadge.module.css";

type Tone = "good" | "warn" | "bad" | "info" | "quiet" | "accent";

const LOOKS: Record<Phase, { tone: Tone; icon: IconName }> = {
  Queued: { tone: "quiet", icon: "clock" },
  Pending: { tone: "warn", icon: "clock" },
  Pulling: { tone: "info", icon: "download" },
  Initializing: { tone: "info", icon: "gear" },
  Running: { tone: "accent", icon: "play" },
  Restarting: { tone: "warn", icon: "restart" },
  Suspended: { tone: "quiet", icon: "pause" },
  Complete: { tone: "good", icon: "done" },
  Failed: { tone: "bad", icon: "cross" },
  Deleting: { tone: "quiet", icon: "trash" },
};

/** The phase of a job as icon and word; colour only adds to them. */
export function StateBadge({ phase }: { phase: Phase }) {
  const t = useT();
  const { tone, icon } = LOOKS[phase];
  return (
    <Badge tone={tone} icon={icon} title={t(`phase.${phase}Means`)}>
      {t(`phase.${phase}`)}
    </Badge>
  );
}

interface BadgeProps {
  tone: Tone;
  icon: IconName;
  children: string;
  title?: string;
}

export function Badge({ tone, icon, children, title }: BadgeProps) {
  return (
    <span className={cx(styles.badge, styles[tone])} title={title}>
      <Icon name={icon} size={13} />
      {children}
    </span>
  );
}
