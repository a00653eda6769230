import { useState } from "react";
import { Button as AriaButton, Tooltip, TooltipTrigger } from "react-aria-components";
import { api } from "@/api/client";
import type { Job } from "@/api/types";
import { useT } from "@/i18n/i18n";
import { navigate, to } from "@/router/router";
import { may, useWho } from "@/session/session";
import { Button, ButtonLink } from "@/ui/Button";
import { cx } from "@/ui/cx";
import { Confirm } from "@/ui/Dialog";
import { Icon, type IconName } from "@/ui/Icon";
import { Tick } from "@/ui/Tick";
import { toast } from "@/ui/toasts";
import styles from "./Actions.module.css";

type Verb = "suspend" | "resume" | "restart" | "delete";

/** What can be done with the job; what cannot says why. */
export function Actions({ job, isGone }: { job: Job; isGone: boolean }) {
  const t = useT();
  const who = useWho();
  const [asked, setAsked] = useState<Verb | null>(null);
  const [keepsCode, setKeepsCode] = useState(false);
  const isMember = may(who, "member", job.namespace);
  const hasEnded = job.phase === "Complete" || job.phase === "Failed";
  const refused = !isMember
    ? t("job.noRole", { namespace: job.namespace })
    : isGone
      ? t("job.noGone")
      : job.is_deleting
        ? t("job.noDeleting")
        : "";
  const canSuspend = who.abilities.includes("suspend");
  const reasons: Record<Verb, string> = {
    suspend: refused || (hasEnded ? t("job.noEnded") : !canSuspend ? t("job.noAbility") : ""),
    resume: refused,
    restart: refused,
    delete: refused,
  };
  const act = async () => {
    if (asked === null) return;
    await perform(job, asked, keepsCode);
    toast({ tone: "good", text: t(`job.${asked}Done`, { name: job.name }) });
    if (asked === "delete") navigate(to.jobs());
  };
  const isPaused = job.is_suspended && !hasEnded;
  return (
    <>
      {isPaused ? (
        <Act icon="play" why={reasons.resume} onPress={() => setAsked("resume")}>
          {t("job.resume")}
        </Act>
      ) : (
        <Act icon="pause" why={reasons.suspend} onPress={() => setAsked("suspend")}>
          {t("job.suspend")}
        </Act>
      )}
      <Act icon="restart" why={reasons.restart} onPress={() => setAsked("restart")}>
        {t("job.restart")}
      </Act>
      {isMember && !isGone ? (
        <ButtonLink icon="copy" href={to.newJob({ from: job.name, namespace: job.namespace })}>
          {t("job.clone")}
        </ButtonLink>
      ) : (
        <Act icon="copy" why={refused} onPress={() => {}}>
          {t("job.clone")}
        </Act>
      )}
      <Act icon="trash" isDangerous why={reasons.delete} onPress={() => setAsked("delete")}>
        {t("job.delete")}
      </Act>
      {asked && (
        <Confirm
          isOpen
          title={t(`job.${asked}Title`, { name: job.name })}
          action={t(`job.${asked}`)}
          isDangerous={asked === "delete"}
          onClose={() => setAsked(null)}
          onConfirm={act}
        >
          <p>{goesWith(asked, job, t)}</p>
          <p>{t(`job.${asked}Stays`)}</p>
          {asked === "delete" && <Tick label={t("job.keepCode")} isOn={keepsCode} onChange={setKeepsCode} />}
        </Confirm>
      )}
    </>
  );
}

function goesWith(verb: Verb, job: Job, t: ReturnType<typeof useT>): string {
  const pods = t.plural("job.pods", job.nodes + (job.framework === "horovod" ? 1 : 0));
  if (verb === "restart" && (job.phase === "Complete" || job.phase === "Failed"))
    return t("job.restartEnded");
  return t(`job.${verb}Goes`, { pods });
}

async function perform(job: Job, verb: Verb, keepsCode: boolean): Promise<void> {
  const path = { namespace: job.namespace, name: job.name };
  if (verb === "delete") {
    const query = { uid: job.uid, ...(keepsCode ? { keep_code: true } : {}) };
    await api.delete("/api/v1/namespaces/{namespace}/jobs/{name}", { path, query });
  } else await api.post(`/api/v1/namespaces/{namespace}/jobs/{name}:${verb}`, { path });
}

interface ActProps {
  icon: IconName;
  /** Why it cannot be done; "" when it can. */
  why: string;
  isDangerous?: boolean;
  onPress: () => void;
  children: string;
}

/** A button that stays in reach of the keyboard when it cannot be pressed, so that its reason can be read. */
function Act({ icon, why, isDangerous, onPress, children }: ActProps) {
  if (!why) {
    return (
      <Button icon={icon} look={isDangerous ? "danger" : "plain"} onPress={onPress}>
        {children}
      </Button>
    );
  }
  return (
    <TooltipTrigger delay={200}>
      <AriaButton
        className={cx(styles.off)}
        aria-disabled="true"
        aria-label={`${children}: ${why}`}
        onPress={() => toast({ tone: "bad", text: why })} // a finger cannot hover
      >
        <Icon name={icon} />
        <span>{children}</span>
      </AriaButton>
      <Tooltip className={cx(styles.why)} placement="bottom" offset={6}>
        {why}
      </Tooltip>
    </TooltipTrigger>
  );
}
