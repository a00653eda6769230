import { useState } from "react";
import { Link } from "react-aria-components";
import { api } from "@/api/client";
import type { components } from "@/api/schema";
import { useLoad } from "@/api/useLoad";
import { useT } from "@/i18n/i18n";
import { to } from "@/router/router";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Dialog";
import { Field } from "@/ui/Field";
import { EmptyState, Loading } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { Badge } from "@/ui/StateBadge";
import { type Column, Table } from "@/ui/Table";
import { Tick } from "@/ui/Tick";
import { toast } from "@/ui/toasts";
import styles from "./AdminPage.module.css";
import { FormDialog } from "./FormDialog";
import { useWrite } from "./useWrite";

type User = components["schemas"]["UserWithRoles"];

export function UsersSection() {
  const t = useT();
  const { data, problem, reload } = useLoad("users", (signal) => api.get("/api/v1/users", { signal }));
  const [isAdding, setIsAdding] = useState(false);
  const [asked, setAsked] = useState<{ user: User; change: Change }>();
  const [isAsking, setIsAsking] = useState(false);
  const ask = (user: User, change: Change) => {
    setAsked({ user, change });
    setIsAsking(true);
  };
  const columns: Column<User>[] = [
    { id: "name", header: t("admin.user"), cell: (each) => each.name },
    { id: "state", header: t("admin.state"), isWide: true, cell: (each) => <State user={each} /> },
    { id: "roles", header: t("admin.roles"), cell: (each) => <Roles user={each} /> },
    {
      id: "tokens",
      header: t("admin.tokens"),
      isNumber: true,
      cell: (each) => (
        <Link href={`${to.admin("tokens")}?user=${encodeURIComponent(each.name)}`}>
          {t("admin.tokensOf", { user: each.name })}
        </Link>
      ),
    },
    {
      id: "changes",
      header: "",
      isNumber: true,
      cell: (each) => (
        <div className={styles.changes}>
          {CHANGES.filter((change) => change !== (each.is_disabled ? "disable" : "enable")).map((change) => (
            <Button key={change} isSmall onPress={() => ask(each, change)}>
              {t(`admin.${change}`)}
            </Button>
          ))}
        </div>
      ),
    },
  ];
  return (
    <div className={styles.stack}>
      <div className={styles.above}>
        <p>{t("admin.usersHelp")}</p>
        <Button look="primary" icon="plus" onPress={() => setIsAdding(true)}>
          {t("admin.newUser")}
        </Button>
      </div>
      {problem && <ProblemNote problem={problem} onRetry={reload} />}
      {!data && !problem && <Loading />}
      {data && data.items.length === 0 && (
        <EmptyState icon="user" title={t("admin.noUsers")}>
          {t("admin.noUsersHelp")}
        </EmptyState>
      )}
      {data && data.items.length > 0 && (
        <Table label={t("admin.users")} columns={columns} rows={data.items} keyOf={(each) => each.name} />
      )}
      <NewUser isOpen={isAdding} onClose={() => setIsAdding(false)} onMade={reload} />
      <Confirm
        title={t(`admin.${asked?.change ?? "disable"}Ask`, { user: asked?.user.name ?? "" })}
        action={t(`admin.${asked?.change ?? "disable"}`)}
        isDangerous={asked?.change !== "enable"}
        isOpen={isAsking}
        onClose={() => setIsAsking(false)}
        onConfirm={async () => {
          if (asked) await changeUser(asked.user.name, asked.change);
          reload();
        }}
      >
        {t(`admin.${asked?.change ?? "disable"}Means`)}
      </Confirm>
    </div>
  );
}

const CHANGES = ["disable", "enable", "delete"] as const;
type Change = (typeof CHANGES)[number];

function changeUser(user: string, change: Change) {
  const path = { user };
  if (change === "delete") return api.delete("/api/v1/users/{user}", { path });
  return change === "disable"
    ? api.post("/api/v1/users/{user}:disable", { path })
    : api.post("/api/v1/users/{user}:enable", { path });
}

function State({ user }: { user: User }) {
  const t = useT();
  if (user.is_disabled)
    return (
      <Badge tone="warn" icon="cross">
        {t("admin.disabled")}
      </Badge>
    );
  const signsIn = { "": t("admin.byToken"), "*": t("admin.byAny") }[user.issuer];
  return <span>{signsIn ?? t("admin.byIssuer", { issuer: user.issuer })}</span>;
}

const ROLES = ["viewer", "member", "administrator"] as const;

function Roles({ user }: { user: User }) {
  const t = useT();
  const entries = Object.entries(user.roles);
  return (
    <ul className={styles.plain}>
      {user.is_administrator && <li>{t("admin.ofAll")}</li>}
      {user.backend.length > 0 && <li>{t("admin.backendFor", { namespaces: user.backend.join(", ") })}</li>}
      {entries.map(([namespace, role]) => {
        const known = ROLES.find((each) => each === role);
        return (
          <li key={namespace}>
            <Link href={`${to.admin("tenants")}?namespace=${encodeURIComponent(namespace)}`}>
              {namespace}
            </Link>{" "}
            {known ? t(`admin.role_${known}`) : role}
          </li>
        );
      })}
      {!user.is_administrator && entries.length === 0 && user.backend.length === 0 && (
        <li className={styles.quiet}>{t("admin.noRoles")}</li>
      )}
    </ul>
  );
}

function NewUser({ isOpen, onClose, onMade }: { isOpen: boolean; onClose: () => void; onMade: () => void }) {
  const t = useT();
  const writing = useWrite();
  const [name, setName] = useState("");
  const [isAdministrator, setIsAdministrator] = useState(false);
  const submit = async () => {
    const body = { name: name.trim(), is_administrator: isAdministrator };
    if (!(await writing.write(() => api.post("/api/v1/users", { body })))) return;
    toast({ tone: "good", text: t("admin.userMade", { name: body.name }) });
    setName("");
    setIsAdministrator(false);
    onClose();
    onMade();
  };
  return (
    <FormDialog
      title={t("admin.newUser")}
      action={t("admin.make")}
      isOpen={isOpen}
      isReady={name.trim() !== ""}
      writing={writing}
      onClose={onClose}
      onSubmit={submit}
    >
      <Field
        label={t("admin.user")}
        help={t("admin.userHelp")}
        value={name}
        onChange={setName}
        isRequired
        autoFocus
      />
      <Tick
        label={t("admin.ofAll")}
        help={t("admin.ofAllHelp")}
        isOn={isAdministrator}
        onChange={setIsAdministrator}
      />
    </FormDialog>
  );
}
