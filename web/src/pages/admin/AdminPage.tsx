import { Link } from "react-aria-components";
import { useT } from "@/i18n/i18n";
import { to } from "@/router/router";
import type { PageProps } from "@/routes";
import { mayGovern, useWho } from "@/session/session";
import { cx } from "@/ui/cx";
import { PageHeader } from "@/ui/Layout";
import styles from "./AdminPage.module.css";
import { AuditSection } from "./AuditSection";
import { InvitationsSection } from "./InvitationsSection";
import { TenantsSection } from "./TenantsSection";
import { TokensSection } from "./TokensSection";
import { UsersSection } from "./UsersSection";

/** Sections by what somebody may: everybody has tokens and invitations, administrators of a namespace its members. */
export default function AdminPage({ parameters }: PageProps) {
  const t = useT();
  const who = useWho();
  const sections = [
    ...(mayGovern(who) ? [{ id: "tenants", label: t("admin.tenants"), content: <TenantsSection /> }] : []),
    ...(who.is_administrator ? [{ id: "users", label: t("admin.users"), content: <UsersSection /> }] : []),
    ...(who.authentication !== "off" && who.backend.length === 0
      ? [{ id: "invitations", label: t("admin.invitations"), content: <InvitationsSection /> }]
      : []),
    { id: "tokens", label: t("admin.tokens"), content: <TokensSection /> },
    ...(mayGovern(who) ? [{ id: "audit", label: t("admin.audit"), content: <AuditSection /> }] : []),
  ];
  const here = sections.find((each) => each.id === parameters.section) ?? sections[0];
  return (
    <>
      <PageHeader title={t("admin.title")} />
      <nav className={styles.sections} aria-label={t("admin.sections")}>
        {sections.map((each) => (
          <Link
            key={each.id}
            href={to.admin(each.id)}
            className={cx(styles.section, each === here && styles.here)}
            {...(each === here ? { "aria-current": "page" as const } : {})}
          >
            {each.label}
          </Link>
        ))}
      </nav>
      {here?.content}
    </>
  );
}
