import { useState } from "react";
import { Link } from "react-aria-components";
import { api } from "@/api/client";
import type { components } from "@/api/schema";
import { useLoad } from "@/api/useLoad";
import { useT } from "@/i18n/i18n";
import { useQuery } from "@/router/router";
import { begin, may, useWho } from "@/session/session";
import { Button } from "@/ui/Button";
import { cx } from "@/ui/cx";
import { Field } from "@/ui/Field";
import { Card, EmptyState, Loading } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { type Column, Table } from "@/ui/Table";
import { Ago } from "@/ui/Time";
import { toast } from "@/ui/toasts";
import styles from "./AdminPage.module.css";
import { FormDialog } from "./FormDialog";
import { Members } from "./Members";
import { useWrite } from "./useWrite";

type Tenant = components["schemas"]["TenantBody"];

export function TenantsSection() {
  const t = useT();
  const who = useWho();
  const { data, problem, reload } = useLoad("tenants", (signal) => api.get("/api/v1/tenants", { signal }));
  const [chosen] = useQuery("namespace");
  const [isAdding, setIsAdding] = useState(false);
  const governed = data?.items.filter((each) => may(who, "administrator", each.namespace)) ?? [];
  const open = governed.find((each) => each.namespace === chosen) ?? governed[0];
  const columns: Column<Tenant>[] = [
    {
      id: "namespace",
      header: t("admin.namespace"),
      cell: (each) => (
        <Link
          href={`?namespace=${encodeURIComponent(each.namespace)}`}
          className={cx(each === open && styles.chosen)}
          {...(each === open ? { "aria-current": "true" as const } : {})}
        >
          {each.namespace}
        </Link>
      ),
    },
    { id: "title", header: t("admin.tenantTitle"), cell: (each) => each.title || "–" },
    {
      id: "created",
      header: t("admin.created"),
      isNumber: true,
      cell: (each) => <Ago time={each.created_at} />,
    },
  ];
  return (
    <div className={styles.stack}>
      {problem && <ProblemNote problem={problem} onRetry={reload} />}
      {!data && !problem && <Loading />}
      <div className={styles.above}>
        <p>{t("admin.tenantsHelp")}</p>
        {who.is_administrator && (
          <Button look="primary" icon="plus" onPress={() => setIsAdding(true)}>
            {t("admin.newTenant")}
          </Button>
        )}
      </div>
      {data && governed.length === 0 && (
        <EmptyState icon="shield" title={t("admin.noTenants")}>
          {t("admin.noTenantsHelp")}
        </EmptyState>
      )}
      {governed.length > 0 && (
        <div className={styles.columns}>
          <Table
            label={t("admin.tenants")}
            columns={columns}
            rows={governed}
            keyOf={(each) => each.namespace}
          />
          {open && <Members key={open.namespace} namespace={open.namespace} />}
        </div>
      )}
      {data && <Quota quota={data.quota} />}
      <NewTenant isOpen={isAdding} onClose={() => setIsAdding(false)} onMade={reload} />
    </div>
  );
}

function Quota({ quota }: { quota: Readonly<Record<string, string>> }) {
  const t = useT();
  const entries = Object.entries(quota);
  return (
    <Card title={t("admin.quota")}>
      {entries.length === 0 ? (
        <p className={styles.quiet}>{t("admin.noQuota")}</p>
      ) : (
        <dl className={styles.quota}>
          {entries.map(([name, most]) => (
            <div key={name}>
              <dt>
                <code>{name}</code>
              </dt>
              <dd>{most}</dd>
            </div>
          ))}
        </dl>
      )}
    </Card>
  );
}

function NewTenant({
  isOpen,
  onClose,
  onMade,
}: {
  isOpen: boolean;
  onClose: () => void;
  onMade: () => void;
}) {
  const t = useT();
  const writing = useWrite();
  const [namespace, setNamespace] = useState("");
  const [title, setTitle] = useState("");
  const submit = async () => {
    const name = namespace.trim();
    const isDone = await writing.write(() =>
      api.post("/api/v1/tenants", { body: { namespace: name, title } }),
    );
    if (!isDone) return;
    toast({ tone: "good", text: t("admin.tenantMade", { name }) });
    setNamespace("");
    setTitle("");
    onClose();
    onMade();
    void begin(); // what one may is different now
  };
  return (
    <FormDialog
      title={t("admin.newTenant")}
      action={t("admin.make")}
      isOpen={isOpen}
      isReady={namespace.trim() !== ""}
      writing={writing}
      onClose={onClose}
      onSubmit={submit}
    >
      <Field
        label={t("admin.namespace")}
        help={t("admin.namespaceHelp")}
        sets="metadata.namespace"
        value={namespace}
        onChange={setNamespace}
        isRequired
        autoFocus
      />
      <Field
        label={t("admin.tenantTitle")}
        help={t("admin.tenantTitleHelp")}
        value={title}
        onChange={setTitle}
      />
    </FormDialog>
  );
}
