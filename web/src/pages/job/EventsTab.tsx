import type { JobEvent } from "@/api/types";
import { useFormats, useT } from "@/i18n/i18n";
import { setQuery, usePlace } from "@/router/router";
import { SearchField } from "@/ui/Field";
import { EmptyState } from "@/ui/Layout";
import { type Column, Table } from "@/ui/Table";
import styles from "./JobPage.module.css";
import { ShortMessage } from "./logs/AnsiText";

const SHOWN = 500;

/** What happened, newest first. */
export function EventsTab({ events }: { events: readonly JobEvent[] }) {
  const t = useT();
  const { dateTime } = useFormats();
  const { query } = usePlace();
  const q = query.get("event") ?? "";
  const wanted = q.toLowerCase();
  const found = events.filter((each) =>
    [each.actor, each.reason, each.message].some((text) => text.toLowerCase().includes(wanted)),
  );
  const columns: Column<JobEvent>[] = [
    {
      id: "time",
      header: t("job.time"),
      cell: (event) => (
        <time className={styles.when} dateTime={event.time}>
          {dateTime(event.time)}
        </time>
      ),
    },
    { id: "actor", header: t("job.actor"), isWide: true, cell: (event) => event.actor },
    { id: "reason", header: t("job.reason"), cell: (event) => event.reason },
    {
      id: "message",
      header: t("job.message"),
      cell: (event) => <ShortMessage text={event.message} />,
    },
  ];
  return (
    <>
      <div className={styles.filter}>
        <SearchField
          label={t("job.filterEvents")}
          value={q}
          onChange={(value) => setQuery({ event: value })}
        />
      </div>
      {found.length === 0 ? (
        <EmptyState icon="search" title={t("job.noEvents")} />
      ) : (
        <Table
          label={t("job.tabEvents")}
          columns={columns}
          rows={found.slice(-SHOWN).reverse()}
          keyOf={(event) => String(event.number)}
        />
      )}
    </>
  );
}
