import { useEffect, useRef, useState } from "react";
import { api } from "@/api/client";
import { asProblem, isAbort, type Problem } from "@/api/problem";
import type { components } from "@/api/schema";
import { useFormats, useT } from "@/i18n/i18n";
import { setQuery, usePlace } from "@/router/router";
import { useWho } from "@/session/session";
import { Button } from "@/ui/Button";
import { Field, Select } from "@/ui/Field";
import { EmptyState, Loading } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { type Column, Table } from "@/ui/Table";
import { Ago } from "@/ui/Time";
import { useMedia } from "@/ui/useMedia";
import styles from "./AdminPage.module.css";

type Row = components["schemas"]["AuditBody"];
const PAGE = 100;
const ACTIONS = ["job", "token", "member", "invitation", "tenant", "user"] as const;

/** Who changed what, newest first; what is asked for is in the address. */
export function AuditSection() {
  const t = useT();
  const who = useWho();
  const { query } = usePlace();
  const governed = Object.keys(who.roles)
    .filter((each) => who.roles[each] === "administrator")
    .sort();
  const wanted = query.get("namespace") ?? "";
  // Of one namespace for its administrators; of everything for those of the installation.
  const namespace = who.is_administrator || governed.includes(wanted) ? wanted : (governed[0] ?? "");
  const actor = query.get("actor") ?? "";
  const action = ACTIONS.find((each) => each === query.get("action")) ?? "any";
  const { rows, next, problem, isBusy, more } = useAudit({
    namespace,
    actor,
    action: action === "any" ? "" : action,
  });
  const columns = useColumns();
  return (
    <div className={styles.stack}>
      <p className={styles.quiet}>{t("admin.auditHelp")}</p>
      <search className={styles.filters}>
        {who.is_administrator ? (
          <Field
            label={t("admin.namespace")}
            value={namespace}
            onChange={(value) => setQuery({ namespace: value })}
          />
        ) : (
          <Select
            label={t("admin.namespace")}
            value={namespace}
            options={governed.map((value) => ({ value, label: value }))}
            onChange={(value) => setQuery({ namespace: value })}
          />
        )}
        <Field label={t("admin.actor")} value={actor} onChange={(value) => setQuery({ actor: value })} />
        <Select
          label={t("admin.action")}
          value={action}
          options={[
            { value: "any" as const, label: t("admin.anyAction") },
            ...ACTIONS.map((value) => ({ value, label: t(`admin.about_${value}`) })),
          ]}
          onChange={(value) => setQuery({ action: value === "any" ? null : value })}
        />
      </search>
      {problem && <ProblemNote problem={problem} onRetry={more} />}
      {!rows && !problem && <Loading />}
      {rows?.length === 0 && !problem && <EmptyState icon="search" title={t("admin.nothingDone")} />}
      {rows && rows.length > 0 && (
        <Table label={t("admin.audit")} columns={columns} rows={rows} keyOf={(each) => String(each.number)} />
      )}
      {next !== null && rows && rows.length > 0 && (
        <div className={styles.more}>
          <Button isDisabled={isBusy} onPress={more}>
            {t("admin.older")}
          </Button>
        </div>
      )}
    </div>
  );
}

function useColumns(): Column<Row>[] {
  const t = useT();
  const { dateTime } = useFormats();
  const isNarrow = useMedia("(max-width: 48rem)");
  return [
    {
      id: "time",
      header: t("admin.time"),
      cell: (each) =>
        isNarrow ? (
          <span className={styles.time}>
            <Ago time={each.time} />
          </span>
        ) : (
          <time dateTime={each.time}>{dateTime(each.time)}</time>
        ),
    },
    { id: "actor", header: t("admin.actor"), cell: (each) => each.actor },
    { id: "action", header: t("admin.action"), cell: (each) => <code>{each.action}</code> },
    {
      id: "object",
      header: t("admin.object"),
      cell: (each) => <span className={styles.any}>{each.object}</span>,
    },
    { id: "namespace", header: t("admin.namespace"), isWide: true, cell: (each) => each.namespace || "–" },
    { id: "result", header: t("admin.result"), isWide: true, cell: (each) => each.result },
    {
      id: "detail",
      header: t("admin.detail"),
      isWide: true,
      cell: (each) => <span className={styles.any}>{each.detail || "–"}</span>,
    },
  ];
}

interface Asked {
  namespace: string;
  actor: string;
  action: string;
}

function useAudit(asked: Asked) {
  const [state, setState] = useState<{
    rows?: Row[];
    next: number | null;
    problem?: Problem;
    isBusy: boolean;
  }>({
    next: null,
    isBusy: true,
  });
  const reading = useRef<AbortController>(null);
  const read = async (before: number | null, old: Row[]) => {
    reading.current?.abort();
    const controller = new AbortController();
    reading.current = controller;
    setState((now) => ({ ...now, isBusy: true }));
    try {
      const query = { ...asked, limit: PAGE, ...(before === null ? {} : { before }) };
      const page = await api.get("/api/v1/audit", { query, signal: controller.signal });
      setState({ rows: [...old, ...page.items], next: page.next_before, isBusy: false });
    } catch (error) {
      if (!isAbort(error)) setState((now) => ({ ...now, problem: asProblem(error), isBusy: false }));
    }
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is asked for decides
  useEffect(() => {
    void read(null, []);
    return () => reading.current?.abort();
  }, [asked.namespace, asked.actor, asked.action]);
  return { ...state, more: () => void read(state.next, state.next === null ? [] : (state.rows ?? [])) };
}
