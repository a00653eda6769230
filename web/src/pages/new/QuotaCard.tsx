import { api } from "@/api/client";
import { useLoad } from "@/api/useLoad";
import { type Translate, useFormats, useT } from "@/i18n/i18n";
import { useEvery } from "@/live/useEvery";
import { Icon } from "@/ui/Icon";
import { Card } from "@/ui/Layout";
import { useSettled } from "@/ui/useSettled";
import styles from "./NewJobPage.module.css";
import { type QuotaUse, quotaUses } from "./quota";

/** Others begin and end jobs meanwhile. */
const EVERY_MS = 15_000;

/** How much of the namespace's quota is used now, and what this job would add. Nothing where nothing is rationed. */
export function QuotaCard({
  namespace,
  objects,
}: {
  namespace: string;
  objects: readonly Record<string, unknown>[];
}) {
  const t = useT();
  const asked = useSettled(namespace);
  const { data, reload } = useLoad(`quota ${asked}`, async (signal) =>
    asked === ""
      ? null
      : api.get("/api/v1/namespaces/{namespace}/quota", { path: { namespace: asked }, signal }),
  );
  useEvery(EVERY_MS, reload);
  const uses = quotaUses(objects, data?.items ?? []);
  if (uses.length === 0) return null;
  const isNever = uses.some((each) => each.takes > each.hard);
  const isBeyond = uses.some((each) => each.used + each.takes > each.hard);
  return (
    <Card title={t("newJob.quotaOf", { namespace: asked })}>
      {isBeyond ? (
        <p className={styles.warn}>
          <Icon name="clock" /> {isNever ? t("newJob.quotaNever") : t("newJob.quotaWaits")}
        </p>
      ) : (
        <p className={styles.good}>
          <Icon name="done" /> {t("newJob.quotaFits")}
        </p>
      )}
      <ul className={styles.places}>
        {uses.map((each) => (
          <Line key={each.resource} use={each} />
        ))}
      </ul>
    </Card>
  );
}

function Line({ use }: { use: QuotaUse }) {
  const t = useT();
  const { number, bytes } = useFormats();
  const write = use.resource.endsWith("memory")
    ? bytes
    : (value: number) => number(value, { maximumFractionDigits: 2 });
  const isBeyond = use.used + use.takes > use.hard;
  return (
    <li>
      <span className={styles.placeName}>{wordOf(use.resource, t)}</span>
      <span className={isBeyond ? styles.warn : styles.quiet}>
        {t("newJob.quotaUse", { used: write(use.used), all: write(use.hard), takes: write(use.takes) })}
      </span>
    </li>
  );
}

function wordOf(resource: string, t: Translate): string {
  const known: Record<string, string> = {
    cpu: "CPU",
    memory: t("nodes.memory"),
    pods: t("job.tabPods"),
    "limits.cpu": t("newJob.cpuLimit"),
    "limits.memory": t("newJob.memoryLimit"),
  };
  const name = resource.replace(/^requests\./, "");
  return known[name] ?? (name.endsWith("/gpu") ? "GPU" : name);
}
