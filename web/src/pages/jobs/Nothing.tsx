import { useState } from "react";
import { api } from "@/api/client";
import { asProblem, type Problem } from "@/api/problem";
import { useT } from "@/i18n/i18n";
import { homeNamespace, startSample } from "@/pages/new/sample";
import { navigate, setQuery, to } from "@/router/router";
import { begin, may, useNamespace, useWho } from "@/session/session";
import { Button, ButtonLink } from "@/ui/Button";
import { EmptyState } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { NO_FILTER } from "./filters";

export function NothingFits() {
  const t = useT();
  const clear = <Button onPress={() => setQuery(NO_FILTER)}>{t("jobs.clearFilter")}</Button>;
  return (
    <EmptyState icon="search" title={t("jobs.nothingFits")} actions={clear}>
      {t("jobs.nothingFitsHelp")}
    </EmptyState>
  );
}

/** Nobody has submitted anything yet: the shortest way to see something run. */
export function NoJobs() {
  const t = useT();
  const who = useWho();
  const [chosen] = useNamespace();
  const { isBusy, problem, act } = useAct(async () => {
    const job = await startSample(homeNamespace(who, chosen));
    navigate(to.job(job.namespace, job.name));
  });
  if (!may(who, "member", chosen))
    return (
      <EmptyState icon="jobs" title={t("jobs.emptyTitle")}>
        {t("jobs.emptyForViewer")}
      </EmptyState>
    );
  const actions = (
    <>
      <Button look="primary" icon="play" isDisabled={isBusy} onPress={act}>
        {isBusy ? t("jobs.sampleStarts") : t("jobs.sample")}
      </Button>
      <ButtonLink icon="plus" href={to.newJob()}>
        {t("common.newJob")}
      </ButtonLink>
    </>
  );
  return (
    <>
      {problem && <ProblemNote problem={problem} onRetry={act} />}
      <EmptyState icon="jobs" title={t("jobs.emptyTitle")} actions={actions}>
        {t("jobs.emptyHelp")}
      </EmptyState>
    </>
  );
}

/** Somebody whom an issuer knows and nobody has let in yet. */
export function NoNamespace() {
  const t = useT();
  const who = useWho();
  const { isBusy, problem, act } = useAct(async () => {
    await api.post("/api/v1/signup", { body: { user: null, title: "" } });
    await begin();
  });
  const isOpen = who.sign_up === "open";
  const actions = isOpen && (
    <Button look="primary" isDisabled={isBusy} onPress={act}>
      {t("jobs.makeNamespace")}
    </Button>
  );
  return (
    <>
      {problem && <ProblemNote problem={problem} />}
      <EmptyState icon="user" title={t("jobs.noNamespace")} actions={actions}>
        {isOpen ? t("jobs.noNamespaceOpen") : t("jobs.noNamespaceAsk", { name: who.name })}
      </EmptyState>
    </>
  );
}

function useAct(work: () => Promise<void>): {
  isBusy: boolean;
  problem: Problem | undefined;
  act: () => void;
} {
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const act = async () => {
    setIsBusy(true);
    setProblem(undefined);
    try {
      await work();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setIsBusy(false);
    }
  };
  return { isBusy, problem, act: () => void act() };
}
