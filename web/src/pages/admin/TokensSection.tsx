import { useState } from "react";
import { Link } from "react-aria-components";
import { api } from "@/api/client";
import type { components } from "@/api/schema";
import { useLoad } from "@/api/useLoad";
import { useFormats, useT } from "@/i18n/i18n";
import { useNow } from "@/live/useNow";
import { to, useQuery } from "@/router/router";
import { useWho } from "@/session/session";
import { Button } from "@/ui/Button";
import { CopyButton } from "@/ui/CopyButton";
import { Confirm, Dialog } from "@/ui/Dialog";
import { Field, Select } from "@/ui/Field";
import { EmptyState, Loading } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { Badge } from "@/ui/StateBadge";
import { type Column, Table } from "@/ui/Table";
import { Ago } from "@/ui/Time";
import styles from "./AdminPage.module.css";
import { FormDialog } from "./FormDialog";
import { useWrite } from "./useWrite";

type Token = components["schemas"]["TokenBody"];

export function TokensSection() {
  const t = useT();
  const who = useWho();
  const [asked] = useQuery("user");
  const user = who.is_administrator && asked ? asked : who.name;
  const { data, problem, reload } = useLoad(`tokens ${user}`, (signal) =>
    api.get("/api/v1/tokens", { query: { user }, signal }),
  );
  const [isAdding, setIsAdding] = useState(false);
  const [secret, setSecret] = useState("");
  const [going, setGoing] = useState<Token>();
  const [isAsking, setIsAsking] = useState(false);
  if (who.authentication === "off")
    return (
      <EmptyState icon="shield" title={t("admin.noSignIn")}>
        {t("admin.noSignInHelp")}
      </EmptyState>
    );
  const columns: Column<Token>[] = [
    { id: "label", header: t("admin.label"), cell: (each) => each.label || t("admin.noLabel") },
    { id: "state", header: t("admin.state"), cell: (each) => <State token={each} /> },
    {
      id: "created",
      header: t("admin.created"),
      isWide: true,
      cell: (each) => <Ago time={each.created_at} />,
    },
    { id: "expires", header: t("admin.expires"), cell: (each) => <Expiry token={each} /> },
    {
      id: "revoke",
      header: "",
      isNumber: true,
      cell: (each) =>
        each.revoked_at === null && (
          <Button
            isSmall
            onPress={() => {
              setGoing(each);
              setIsAsking(true);
            }}
          >
            {t("admin.revoke")}
          </Button>
        ),
    },
  ];
  // Newest first: what somebody looks for is mostly what they have just made.
  const tokens = [...(data?.items ?? [])].sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
  return (
    <div className={styles.stack}>
      <div className={styles.above}>
        <p>{user === who.name ? t("admin.tokensHelp") : t("admin.tokensHelpOf", { user })}</p>
        <Button look="primary" icon="plus" onPress={() => setIsAdding(true)}>
          {t("admin.newToken")}
        </Button>
      </div>
      {user !== who.name && (
        <p>
          <Link href={to.admin("tokens")}>{t("admin.myTokens")}</Link>
        </p>
      )}
      {problem && <ProblemNote problem={problem} onRetry={reload} />}
      {!data && !problem && <Loading />}
      {data && tokens.length === 0 && <EmptyState icon="shield" title={t("admin.noTokens")} />}
      {tokens.length > 0 && (
        <Table label={t("admin.tokens")} columns={columns} rows={tokens} keyOf={(each) => each.id} />
      )}
      <NewToken
        user={user}
        isOpen={isAdding}
        onClose={() => setIsAdding(false)}
        onMade={(made) => {
          setSecret(made);
          reload();
        }}
      />
      <Secret value={secret} onClose={() => setSecret("")} />
      <Confirm
        title={t("admin.revokeAsk", { label: going?.label || t("admin.noLabel") })}
        action={t("admin.revoke")}
        isDangerous
        isOpen={isAsking}
        onClose={() => setIsAsking(false)}
        onConfirm={async () => {
          await api.delete("/api/v1/tokens/{id}", { path: { id: going?.id ?? "" } });
          reload();
        }}
      >
        {t("admin.revokeMeans")}
      </Confirm>
    </div>
  );
}

function State({ token }: { token: Token }) {
  const t = useT();
  const now = useNow();
  if (token.revoked_at)
    return (
      <Badge tone="quiet" icon="cross">
        {t("admin.revoked")}
      </Badge>
    );
  if (token.expires_at && Date.parse(token.expires_at) < now)
    return (
      <Badge tone="warn" icon="clock">
        {t("admin.expired")}
      </Badge>
    );
  return (
    <Badge tone="good" icon="done">
      {t("admin.works")}
    </Badge>
  );
}

function Expiry({ token }: { token: Token }) {
  const t = useT();
  const { dateTime } = useFormats();
  return <>{token.expires_at ? dateTime(token.expires_at) : t("admin.never")}</>;
}

const DAY = 86_400;
const LIVES = { day: DAY, month: 30 * DAY, year: 365 * DAY, ever: null } as const;
type Life = keyof typeof LIVES;

interface NewProps {
  user: string;
  isOpen: boolean;
  onClose: () => void;
  onMade: (secret: string) => void;
}

function NewToken({ user, isOpen, onClose, onMade }: NewProps) {
  const t = useT();
  const writing = useWrite();
  const [label, setLabel] = useState("");
  const [life, setLife] = useState<Life>("month");
  const submit = async () => {
    const body = { user, label: label.trim(), seconds: LIVES[life] };
    let secret = "";
    const isDone = await writing.write(async () => {
      secret = (await api.post("/api/v1/tokens", { body })).secret;
    });
    if (!isDone) return;
    setLabel("");
    onClose();
    onMade(secret);
  };
  return (
    <FormDialog
      title={t("admin.newTokenFor", { user })}
      action={t("admin.make")}
      isOpen={isOpen}
      isReady
      writing={writing}
      onClose={onClose}
      onSubmit={submit}
    >
      <Field
        label={t("admin.label")}
        help={t("admin.labelHelp")}
        value={label}
        onChange={setLabel}
        autoFocus
      />
      <Select
        label={t("admin.life")}
        help={t("admin.lifeHelp")}
        value={life}
        options={(Object.keys(LIVES) as Life[]).map((value) => ({ value, label: t(`admin.life_${value}`) }))}
        onChange={setLife}
      />
    </FormDialog>
  );
}

/** In memory until it is closed, and nowhere else. */
function Secret({ value, onClose }: { value: string; onClose: () => void }) {
  const t = useT();
  const footer = (
    <>
      <CopyButton text={value} label={t("admin.copyToken")} />
      <Button look="primary" onPress={onClose}>
        {t("admin.keptIt")}
      </Button>
    </>
  );
  return (
    <Dialog title={t("admin.newToken")} isOpen={value !== ""} onClose={onClose} footer={footer}>
      <p>{t("admin.shownOnce")}</p>
      <code className={styles.secret}>{value}</code>
    </Dialog>
  );
}
