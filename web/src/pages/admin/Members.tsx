import { useState } from "react";
import { Form } from "react-aria-components";
import { api } from "@/api/client";
import type { components } from "@/api/schema";
import { useLoad } from "@/api/useLoad";
import { useT } from "@/i18n/i18n";
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
const PATH = "/api/v1/tenants/{namespace}/members";

export function Members({ namespace }: { namespace: string }) {
  const t = useT();
  const { data, problem, reload } = useLoad(`members ${namespace}`, (signal) =>
    api.get(PATH, { path: { namespace }, signal }),
  );
  const [going, setGoing] = useState<string>();
  const [isAsking, setIsAsking] = useState(false);
  const writing = useWrite();
  const roles = ROLES.map((value) => ({ value, label: t(`admin.role_${value}`) }));
  const put = async (user: string, role: Role) => {
    const isDone = await writing.write(() =>
      api.put(`${PATH}/{user}`, { path: { namespace, user }, body: { role } }),
    );
    if (isDone) toast({ tone: "good", text: t("admin.memberSet", { user, role: t(`admin.role_${role}`) }) });
    reload();
    return isDone;
  };
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
        <AddMember roles={roles} isBusy={writing.isBusy} onAdd={put} />
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
  onAdd: (user: string, role: Role) => Promise<boolean>;
}

function AddMember({ roles, isBusy, onAdd }: AddProps) {
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
        {t("admin.addMember")}
      </Button>
      <p className={styles.quiet}>{t(`admin.may_${role}`)}</p>
    </Form>
  );
}
