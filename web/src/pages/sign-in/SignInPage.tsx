import { type ReactNode, useEffect, useState } from "react";
import { Form } from "react-aria-components";
import { api } from "@/api/client";
import { asProblem } from "@/api/problem";
import { useLoad } from "@/api/useLoad";
import { useT } from "@/i18n/i18n";
import type { Key } from "@/i18n/types";
import { CALLBACK, type Client, goToIssuer, SignInFailed } from "@/session/oidc";
import { signIn, type Why } from "@/session/session";
import { Preferences } from "@/shell/Preferences";
import { Button } from "@/ui/Button";
import { CopyButton } from "@/ui/CopyButton";
import { cx } from "@/ui/cx";
import { Field } from "@/ui/Field";
import { Icon } from "@/ui/Icon";
import styles from "./SignInPage.module.css";

const WORDS = {
  left: "signIn.left",
  refused: "signIn.ended",
  expired: "signIn.expired",
  insecure: "signIn.insecure",
  issuer: "signIn.issuer",
  denied: "signIn.denied",
  stale: "signIn.stale",
  forged: "signIn.forged",
} as const satisfies Record<Exclude<Why, "">, Key>;

/** In the place of every page while nobody is signed in; afterwards the address shows what it names. */
export function SignInPage({ why }: { why: Why }) {
  const t = useT();
  const { data } = useLoad("sign-in", (signal) => api.get("/api/v1/sign-in", { signal }));
  const [isNew, setIsNew] = useState(false);
  useEffect(() => {
    document.title = `${t("signIn.title")} · ${t("common.product")}`;
  }, [t]);
  if (isNew)
    return (
      <Frame>
        <SignUp onBack={() => setIsNew(false)} />
      </Frame>
    );
  return (
    <Frame>
      <h1>{t("signIn.title")}</h1>
      {why && (
        <p role="status" className={cx(styles.why, why !== "left" && styles.ended)}>
          <Icon name={why === "left" ? "done" : "alert"} /> <span>{t(WORDS[why])}</span>
        </p>
      )}
      {data?.oidc && <IssuerDoor client={data.oidc} />}
      {data?.oidc && <p className={styles.or}>{t("signIn.or")}</p>}
      <TokenDoor />
      {data?.sign_up === "open" && (
        <p className={styles.foot}>
          {t("signIn.noAccount")}{" "}
          <Button look="quiet" isSmall onPress={() => setIsNew(true)}>
            {t("signIn.signUp")}
          </Button>
        </p>
      )}
    </Frame>
  );
}

function Frame({ children }: { children: ReactNode }) {
  const t = useT();
  return (
    <main className={styles.page}>
      <div className={styles.box}>
        <div className={styles.brand}>
          <img src="/favicon.svg" alt="" width={32} height={32} />
          {t("common.product")}
        </div>
        {children}
      </div>
      <Preferences />
    </main>
  );
}

function IssuerDoor({ client }: { client: Client }) {
  const t = useT();
  const [problem, setProblem] = useState<string>();
  const [isBusy, setIsBusy] = useState(false);
  const go = async () => {
    setIsBusy(true);
    setProblem(undefined);
    try {
      const isHere = location.pathname === CALLBACK;
      await goToIssuer(client, isHere ? "/" : location.pathname + location.search);
    } catch (error) {
      setProblem(t(error instanceof SignInFailed ? WORDS[error.why] : "signIn.issuer"));
      setIsBusy(false);
    }
  };
  return (
    <>
      <Button look="primary" icon="user" isDisabled={isBusy} onPress={go}>
        {t("signIn.withIssuer", { host: new URL(client.issuer).host })}
      </Button>
      {problem && (
        <p role="alert" className={styles.problem}>
          {problem}
        </p>
      )}
    </>
  );
}

function TokenDoor() {
  const t = useT();
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<string>();
  const [isBusy, setIsBusy] = useState(false);
  const submit = async () => {
    setIsBusy(true);
    setProblem(undefined);
    try {
      await signIn(token.trim());
    } catch (error) {
      const found = asProblem(error);
      setProblem(
        found.status === 401 ? t("signIn.refused") : found.isOffline ? t("common.offline") : found.message,
      );
      setIsBusy(false);
    }
  };
  return (
    <Form
      className={cx(styles.form)}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <Field
        label={t("signIn.token")}
        help={t("signIn.tokenHelp")}
        problem={problem}
        type="password"
        autoComplete="off"
        value={token}
        onChange={setToken}
        isRequired
        isMono
        autoFocus
      />
      <Button type="submit" look="primary" isDisabled={isBusy || token.trim() === ""}>
        {t("signIn.submit")}
      </Button>
      <details>
        <summary>{t("signIn.noToken")}</summary>
        <p>{t("signIn.help")}</p>
      </details>
    </Form>
  );
}

/** A user, a namespace and a token, which is shown this once. */
function SignUp({ onBack }: { onBack: () => void }) {
  const t = useT();
  const [user, setUser] = useState("");
  const [problem, setProblem] = useState<string>();
  const [isBusy, setIsBusy] = useState(false);
  const [made, setMade] = useState<{ namespace: string; secret: string }>();
  const submit = async () => {
    setIsBusy(true);
    setProblem(undefined);
    try {
      const answer = await api.post("/api/v1/signup", { body: { user: user.trim(), title: "" } });
      setMade({ namespace: answer.namespace, secret: answer.token.secret });
    } catch (error) {
      const found = asProblem(error);
      setProblem(found.isOffline ? t("common.offline") : found.message);
    }
    setIsBusy(false);
  };
  if (made)
    return (
      <>
        <h1>{t("signIn.welcome", { name: user.trim() })}</h1>
        <p>{t("signIn.keepToken", { namespace: made.namespace })}</p>
        <code className={styles.secret}>{made.secret}</code>
        <CopyButton text={made.secret} />
        <Button look="primary" onPress={() => void signIn(made.secret)}>
          {t("signIn.goOn")}
        </Button>
      </>
    );
  return (
    <Form
      className={cx(styles.form)}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <h1>{t("signIn.signUp")}</h1>
      <Field
        label={t("signIn.user")}
        help={t("signIn.userHelp")}
        problem={problem}
        autoComplete="username"
        value={user}
        onChange={setUser}
        isRequired
        autoFocus
      />
      <Button type="submit" look="primary" isDisabled={isBusy || user.trim() === ""}>
        {t("signIn.signUp")}
      </Button>
      <Button look="quiet" onPress={onBack}>
        {t("signIn.haveToken")}
      </Button>
    </Form>
  );
}
