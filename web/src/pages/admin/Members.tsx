import { useState } from "react";
import { Form } from "react-aria-components";
import { api } from "@/api/client";
import type { components } from "@/api/schema";
import { useLoad } from "@/api/useLoad";
import { useT } from "@/i18n/i18n";
import { useWho } from "@/session/session";
import { Button } from "@/ui/Button";
import { cx } from "@/ui/cx";
import { Confirm } from "@/ui/Dialog";
import { Field, Select } from "@/ui/Field";
import { Card, Loading } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { type Column, Table } from "@/ui/Table";
import { toast } from "@/ui/toasts";
import styles from "./AdminPage.module.css";
import { useWrite } from "./useWrite";

type Member = components["schemas"]["MemberBody"];
type Role = Member["role"];
const ROLES: readonly Role[] = ["viewer", "member", "administrator"];
type Invitation = components["schemas"]["InvitationBody"];
const PATH = "/api/v1/tenants/{namespace}/members";
const INVITATIONS = "/api/v1/tenants/{namespace}/invitations";

export function Members({ namespace }: { namespace: string }) {
  const t = useT();
  const { data, problem, reload } = useLoad(`members ${namespace}`, (signal) =>
    api.get(PATH, { path: { namespace }, signal }),
  );
  const [going, setGoing] = useState<string>();
  const [isAsking, setIsAsking] = useState(false);
  const writing = useWrite();
  const who = useWho();
  const invitations = useLoad(`invitations ${namespace}`, (signal) =>
    api.get(INVITATIONS, { path: { namespace }, signal }),
  );
  const roles = ROLES.map((value) => ({ value, label: t(`admin.role_${value}`) }));
  const put = async (user: string, role: Role) => {
    const isDone = await writing.write(() =>
      api.put(`${PATH}/{user}`, { path: { namespace, user }, body: { role } }),
    );
    if (isDone) toast({ tone: "good", text: t("admin.memberSet", { user, role: t(`admin.role_${role}`) }) });
    reload();
    return isDone;
  };
  const invite = async (user: string, role: Role) => {
    const isDone = await writing.write(() =>
      api.post(INVITATIONS, { path: { namespace }, body: { user, role } }),
    );
    if (isDone) toast({ tone: "good", text: t("admin.invited", { user }) });
    invitations.reload();
    return isDone;
  };
  const withdraw = async (user: string) => {
    await writing.write(() => api.delete(`${INVITATIONS}/{user}`, { path: { namespace, user } }));
    invitations.reload();
  };
  const open = invitations.data?.items ?? [];
  const invitationColumns: Column<Invitation>[] = [
    { id: "user", header: t("admin.user"), cell: (each) => each.user },
    { id: "role", header: t("admin.role"), cell: (each) => t(`admin.role_${each.role}`) },
    { id: "by", header: t("admin.invitedBy"), isWide: true, cell: (each) => each.invited_by },
    {
      id: "withdraw",
      header: "",
      isNumber: true,
      cell: (each) => (
        <Button isSmall isDisabled={writing.isBusy} onPress={() => void withdraw(each.user)}>
          {t("admin.withdraw")}
        </Button>
      ),
    },
  ];
  const columns: Column<Member>[] = [
    { id: "user", header: t("admin.user"), cell: (each) => each.user },
    {
      id: "role",
      header: t("admin.role"),
      cell: (each) => (
        <Select
          isLabelHidden
          label={t("admin.roleOf", { user: each.user })}
          value={each.role}
          options={roles}
          onChange={(role) => role !== each.role && void put(each.user, role)}
        />
      ),
    },
    {
      id: "remove",
      header: "",
      isNumber: true,
      cell: (each) => (
        <Button
          look="quiet"
          icon="trash"
          isIconOnly
          onPress={() => {
            setGoing(each.user);
            setIsAsking(true);
          }}
        >
          {t("admin.removeMember", { user: each.user })}
        </Button>
      ),
    },
  ];
  return (
    <Card title={t("admin.membersOf", { namespace })}>
      <div className={styles.stack}>
        {problem && <ProblemNote problem={problem} onRetry={reload} />}
        {writing.problem && <ProblemNote problem={writing.problem} />}
        {!data && !problem && <Loading />}
        {data && data.items.length === 0 && <p className={styles.quiet}>{t("admin.noMembers")}</p>}
        {data && data.items.length > 0 && (
          <Table
            label={t("admin.membersOf", { namespace })}
            columns={columns}
            rows={data.items}
            keyOf={(each) => each.user}
          />
        )}
        {open.length > 0 && (
          <Table
            label={t("admin.invitationsTo", { namespace })}
            columns={invitationColumns}
            rows={open}
            keyOf={(each) => each.user}
          />
        )}
        {invitations.problem && <ProblemNote problem={invitations.problem} onRetry={invitations.reload} />}
        {/* Administrators of the installation add people; all others ask them. */}
        {who.is_administrator ? (
          <AddMember roles={roles} isBusy={writing.isBusy} action={t("admin.addMember")} onAdd={put} />
        ) : (
          <AddMember
            roles={roles}
            isBusy={writing.isBusy}
            action={t("admin.invite")}
            help={t("admin.inviteHelp")}
            onAdd={invite}
          />
        )}
      </div>
      <Confirm
        title={t("admin.removeAsk", { user: going ?? "", namespace })}
        action={t("admin.remove")}
        isDangerous
        isOpen={isAsking}
        onClose={() => setIsAsking(false)}
        onConfirm={async () => {
          await api.delete(`${PATH}/{user}`, { path: { namespace, user: going ?? "" } });
          reload();
        }}
      >
        {t("admin.removeMeans")}
      </Confirm>
    </Card>
  );
}

interface AddProps {
  roles: readonly { value: Role; label: string }[];
  isBusy: boolean;
  action: string;
  help?: string;
  onAdd: (user: string, role: Role) => Promise<boolean>;
}

function AddMember({ roles, isBusy, action, help, onAdd }: AddProps) {
  const t = useT();
  const [user, setUser] = useState("");
  const [role, setRole] = useState<Role>("member");
  return (
    <Form
      className={cx(styles.add)}
      onSubmit={async (event) => {
        event.preventDefault();
        if (await onAdd(user.trim(), role)) setUser("");
      }}
    >
      <Field label={t("admin.user")} value={user} onChange={setUser} />
      <Select label={t("admin.role")} value={role} options={roles} onChange={setRole} />
      <Button type="submit" icon="plus" isDisabled={isBusy || user.trim() === ""}>
        {action}
      </Button>
      <p className={styles.quiet}>
        {t(`admin.may_${role}`)} {help}
      </p>
    </Form>
  );
}
