import { useState } from "react";
import { api } from "@/api/client";
import { useFormats, useT } from "@/i18n/i18n";
import { answer, type Invitation, useInvitations } from "@/session/invitations";
import { begin, useWho } from "@/session/session";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Dialog";
import { Card, EmptyState, Loading } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { type Column, Table } from "@/ui/Table";
import { toast } from "@/ui/toasts";
import styles from "./AdminPage.module.css";
import { useWrite } from "./useWrite";

/** Namespaces that somebody is invited to, and those that they are a member of. */
export function InvitationsSection() {
  const t = useT();
  const { dateTime } = useFormats();
  const { data, problem, reload } = useInvitations();
  const writing = useWrite();
  const reply = async (each: Invitation, isAccepted: boolean) => {
    const isDone = await writing.write(() => answer(each.namespace, isAccepted));
    const text = isAccepted ? "admin.accepted" : "admin.declined";
    if (isDone) toast({ tone: "good", text: t(text, { namespace: each.namespace }) });
  };
  const columns: Column<Invitation>[] = [
    { id: "namespace", header: t("admin.namespace"), cell: (each) => each.namespace },
    { id: "role", header: t("admin.role"), cell: (each) => t(`admin.role_${each.role}`) },
    { id: "by", header: t("admin.invitedBy"), isWide: true, cell: (each) => each.invited_by },
    { id: "expires", header: t("admin.expires"), isWide: true, cell: (each) => dateTime(each.expires_at) },
    {
      id: "answer",
      header: "",
      isNumber: true,
      cell: (each) => (
        <div className={styles.changes}>
          <Button isSmall isDisabled={writing.isBusy} onPress={() => void reply(each, true)}>
            {t("admin.accept")}
          </Button>
          <Button isSmall look="quiet" isDisabled={writing.isBusy} onPress={() => void reply(each, false)}>
            {t("admin.decline")}
          </Button>
        </div>
      ),
    },
  ];
  return (
    <div className={styles.stack}>
      {problem && <ProblemNote problem={problem} onRetry={reload} />}
      {writing.problem && <ProblemNote problem={writing.problem} />}
      {!data && !problem && <Loading />}
      {data && data.items.length === 0 && (
        <EmptyState icon="user" title={t("admin.noInvitations")}>
          {t("admin.noInvitationsHelp")}
        </EmptyState>
      )}
      {data && data.items.length > 0 && (
        <Table
          label={t("admin.invitations")}
          columns={columns}
          rows={data.items}
          keyOf={(each) => each.namespace}
        />
      )}
      <Memberships />
    </div>
  );
}

interface Membership {
  namespace: string;
  role: "viewer" | "member" | "administrator";
}

function Memberships() {
  const t = useT();
  const who = useWho();
  const [going, setGoing] = useState("");
  const [isAsking, setIsAsking] = useState(false);
  const rows = Object.entries(who.roles)
    .map(([namespace, role]) => ({ namespace, role }) as Membership)
    .sort((a, b) => (a.namespace < b.namespace ? -1 : 1));
  if (rows.length === 0) return null;
  const columns: Column<Membership>[] = [
    { id: "namespace", header: t("admin.namespace"), cell: (each) => each.namespace },
    { id: "role", header: t("admin.role"), cell: (each) => t(`admin.role_${each.role}`) },
    {
      id: "leave",
      header: "",
      isNumber: true,
      cell: (each) => (
        <Button
          isSmall
          look="quiet"
          onPress={() => {
            setGoing(each.namespace);
            setIsAsking(true);
          }}
        >
          {t("admin.leave")}
        </Button>
      ),
    },
  ];
  return (
    <Card title={t("admin.memberships")}>
      <Table label={t("admin.memberships")} columns={columns} rows={rows} keyOf={(each) => each.namespace} />
      <Confirm
        title={t("admin.leaveAsk", { namespace: going })}
        action={t("admin.leave")}
        isDangerous
        isOpen={isAsking}
        onClose={() => setIsAsking(false)}
        onConfirm={async () => {
          await api.post("/api/v1/tenants/{namespace}:leave", { path: { namespace: going } });
          void begin(); // what one may is different now
        }}
      >
        {t("admin.leaveMeans")}
      </Confirm>
    </Card>
  );
}
