import { type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import { Button as AriaButton, Dialog, DialogTrigger, Link, Popover } from "react-aria-components";
import { useFormats, useT } from "@/i18n/i18n";
import { useConnection } from "@/live/jobFeed";
import { match, to, usePlace } from "@/router/router";
import { ROUTES } from "@/routes";
import { useInvitations } from "@/session/invitations";
import { ALL, mayGovern, namespacesOf, signOut, useNamespace, useWho } from "@/session/session";
import { Button, ButtonLink } from "@/ui/Button";
import { cx } from "@/ui/cx";
import { ErrorBoundary } from "@/ui/ErrorBoundary";
import { Select } from "@/ui/Field";
import { Icon, type IconName } from "@/ui/Icon";
import { EmptyState, Loading } from "@/ui/Layout";
import { Preferences } from "./Preferences";
import styles from "./Shell.module.css";

const MAIN = "content";

/** Everything around a page. */
export function Shell() {
  const t = useT();
  const { path } = usePlace();
  useFocusOnArrival(path);
  return (
    <>
      <a className={styles.skip} href={`#${MAIN}`}>
        {t("common.skip")}
      </a>
      <Header path={path} />
      <ConnectionNote />
      <DiskNote />
      <InvitationNote />
      <main id={MAIN} tabIndex={-1} className={styles.main}>
        <ErrorBoundary key={path}>
          <Suspense fallback={<Loading />}>{pageAt(path) ?? <NoSuchPage />}</Suspense>
        </ErrorBoundary>
      </main>
    </>
  );
}

function pageAt(path: string): ReactNode {
  for (const { path: pattern, page: Page } of ROUTES) {
    const parameters = match(pattern, path);
    if (parameters) return <Page parameters={parameters} />;
  }
  return null;
}

/** Who follows a link by keyboard or screen reader goes on at the top of the new page. */
function useFocusOnArrival(path: string): void {
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    document.getElementById(MAIN)?.focus({ preventScroll: true });
  }, [path]);
}

function Header({ path }: { path: string }) {
  const t = useT();
  const [isOpen, setIsOpen] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page closes the menu
  useEffect(() => setIsOpen(false), [path]);
  return (
    <header className={styles.header}>
      <Link href={to.jobs()} className={cx(styles.brand)}>
        <img src="/favicon.svg" alt="" width={24} height={24} />
        <span>{t("common.product")}</span>
      </Link>
      <AriaButton
        className={cx(styles.iconButton, styles.burger)}
        aria-label={t("common.menu")}
        aria-expanded={isOpen}
        onPress={() => setIsOpen(!isOpen)}
      >
        <Icon name={isOpen ? "close" : "menu"} />
      </AriaButton>
      <div className={cx(styles.bar, isOpen && styles.open)}>
        <Navigation path={path} />
        <div className={styles.right}>
          <NamespaceChoice />
          <Preferences />
          <Account />
        </div>
      </div>
    </header>
  );
}

function Navigation({ path }: { path: string }) {
  const t = useT();
  const who = useWho();
  const links: { href: string; label: string; icon: IconName }[] = [
    { href: to.jobs(), label: t("common.jobs"), icon: "jobs" },
    { href: to.newJob(), label: t("common.newJob"), icon: "plus" },
    { href: to.nodes(), label: t("common.nodes"), icon: "node" },
    { href: to.runtimes(), label: t("common.runtimes"), icon: "runtime" },
    ...(mayGovern(who) ? [{ href: to.admin(), label: t("common.admin"), icon: "shield" as const }] : []),
  ];
  const isHere = (href: string) =>
    path === href || path.startsWith(`${href}/`) || (path === "/" && href === to.jobs());
  return (
    <nav aria-label={t("common.navigation")} className={styles.navigation}>
      {links.map(({ href, label, icon }) => (
        <Link
          key={href}
          href={href}
          className={cx(styles.link, isHere(href) && styles.here)}
          {...(isHere(href) ? { "aria-current": "page" as const } : {})}
        >
          <Icon name={icon} />
          {label}
        </Link>
      ))}
    </nav>
  );
}

function NamespaceChoice() {
  const t = useT();
  const offered = namespacesOf(useWho());
  const [value, setValue] = useNamespace();
  if (offered.length < 2) return null;
  return (
    <div className={styles.namespace}>
      <Select
        label={t("common.namespace")}
        isLabelHidden
        value={value}
        options={offered.map((each) => ({
          value: each,
          label: each === ALL ? t("common.allNamespaces") : each,
        }))}
        onChange={setValue}
      />
    </div>
  );
}

function Account() {
  const t = useT();
  const who = useWho();
  const hasAuthentication = who.authentication !== "off";
  return (
    <DialogTrigger>
      <AriaButton className={cx(styles.account)} aria-label={t("common.account", { name: who.name })}>
        <Icon name="user" />
        <span>{who.name}</span>
      </AriaButton>
      <Popover className={cx(styles.popover)} placement="bottom end">
        <Dialog aria-label={t("common.account", { name: who.name })} className={cx(styles.accountCard)}>
          <strong>{t("common.signedInAs", { name: who.name })}</strong>
          {who.is_administrator && <span>{t("common.administrator")}</span>}
          {!hasAuthentication && <span>{t("common.localUser")}</span>}
          <span>{t("common.version", { version: who.version })}</span>
          {hasAuthentication && <ButtonLink href={to.admin("tokens")}>{t("admin.tokens")}</ButtonLink>}
          {hasAuthentication && (
            <ButtonLink href={to.admin("invitations")}>{t("admin.invitations")}</ButtonLink>
          )}
          {hasAuthentication && <Button onPress={signOut}>{t("common.signOut")}</Button>}
        </Dialog>
      </Popover>
    </DialogTrigger>
  );
}

/** The word that it is back stays for a moment, so that it can be read. */
const BACK_MS = 3000;

const DISK_TEXTS = {
  DiskNearlyFull: "common.diskNearlyFull",
  LogsNotWritten: "common.diskLogsNotWritten",
  DiskFull: "common.diskFull",
} as const;

/** For administrators, as it was when the page was opened. */
function DiskNote() {
  const t = useT();
  const { bytes } = useFormats();
  const disk = useWho().disk;
  if (!disk?.alarm) return null;
  return (
    <div role="status" className={cx(styles.connection, styles.lost)}>
      <Icon name="alert" size={14} />
      {t(DISK_TEXTS[disk.alarm], { free: bytes(disk.free_bytes) })}
    </div>
  );
}

function InvitationNote() {
  const t = useT();
  const count = useInvitations().data?.items.length ?? 0;
  if (count === 0) return null;
  return (
    <div role="status" className={cx(styles.connection, styles.back)}>
      <Icon name="user" size={14} />
      {t.plural("common.invited", count)}
      <Link href={to.admin("invitations")}>{t("common.toInvitations")}</Link>
    </div>
  );
}

function ConnectionNote() {
  const t = useT();
  const state = useConnection();
  const [note, setNote] = useState<"" | "lost" | "back">("");
  useEffect(() => {
    if (state === "lost") setNote("lost");
    else if (state === "open") setNote((old) => (old === "lost" ? "back" : old));
  }, [state]);
  useEffect(() => {
    if (note !== "back") return;
    const timer = setTimeout(() => setNote(""), BACK_MS);
    return () => clearTimeout(timer);
  }, [note]);
  return (
    <div role="status" className={cx(styles.connection, note !== "" && styles[note])}>
      {note !== "" && (
        <>
          <Icon name={note === "lost" ? "alert" : "done"} size={14} />
          {note === "lost" ? t("common.connectionLost") : t("common.connectionBack")}
        </>
      )}
    </div>
  );
}

function NoSuchPage() {
  const t = useT();
  const actions = <ButtonLink href={to.jobs()}>{t("common.toJobs")}</ButtonLink>;
  return (
    <EmptyState icon="search" title={t("common.notFoundTitle")} actions={actions}>
      {t("common.notFoundHelp")}
    </EmptyState>
  );
}
