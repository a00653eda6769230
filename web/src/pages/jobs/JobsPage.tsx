import { useState } from "react";
import { useT } from "@/i18n/i18n";
import { useJobList } from "@/live/useJobList";
import { navigate, to, usePlace } from "@/router/router";
import { ALL, may, useNamespace, useWho } from "@/session/session";
import { Button, ButtonLink } from "@/ui/Button";
import { Loading, PageHeader } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { BulkBar } from "./BulkBar";
import { Filters, SEARCH } from "./Filters";
import { filterOf, isFiltered } from "./filters";
import styles from "./JobsPage.module.css";
import { JobTable } from "./JobTable";
import { KeysHelp } from "./KeysHelp";
import { NoJobs, NoNamespace, NothingFits } from "./Nothing";
import { useKeys } from "./useKeys";
import { useSelection } from "./useSelection";

export function JobsPage() {
  const t = useT();
  const [namespace] = useNamespace();
  if (namespace === "")
    return (
      <>
        <PageHeader title={t("jobs.title")} />
        <NoNamespace />
      </>
    );
  return <JobsOf key={namespace} namespace={namespace} />;
}

function JobsOf({ namespace }: { namespace: string }) {
  const t = useT();
  const who = useWho();
  const { query } = usePlace();
  const filter = filterOf(query);
  const list = useJobList(namespace, filter);
  const { jobs, problem, isRead } = list;
  const selection = useSelection(jobs);
  const [uid, setUid] = useState("");
  const [hasHelp, setHasHelp] = useState(false);

  const at = jobs.findIndex((job) => job.uid === uid);
  const move = (by: number) => {
    const next = jobs[Math.min(jobs.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
    if (next) setUid(next.uid);
  };
  const current = jobs[at];
  const open = () => current && navigate(to.job(current.namespace, current.name));
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    x: () => current && may(who, "member", current.namespace) && selection.toggle(current, false),
    Enter: open,
    "/": () => document.getElementById(SEARCH)?.focus(),
    "?": () => setHasHelp(true),
    Escape: selection.clear,
  });

  const actions = (
    <>
      <Button look="quiet" icon="keyboard" isIconOnly onPress={() => setHasHelp(true)}>
        {t("jobs.keys")}
      </Button>
      <ButtonLink look="primary" icon="plus" href={to.newJob()}>
        {t("common.newJob")}
      </ButtonLink>
    </>
  );
  return (
    <>
      <PageHeader title={t("jobs.title")} actions={actions} />
      <Filters filter={filter} />
      {problem && <ProblemNote problem={problem} onRetry={list.reload} />}
      {!isRead && <Loading />}
      {isRead && !problem && jobs.length === 0 && (isFiltered(filter) ? <NothingFits /> : <NoJobs />)}
      {jobs.length > 0 && (
        <JobTable
          jobs={jobs}
          progress={list.progress}
          selection={selection}
          cursor={{ uid, set: setUid }}
          hasMore={list.nextToken !== null && !problem}
          hasNamespaces={namespace === ALL}
          onMore={list.readMore}
        />
      )}
      {list.isReadingMore && (
        <p role="status" className={styles.more}>
          {t("jobs.readingMore")}
        </p>
      )}
      <BulkBar selection={selection} />
      <KeysHelp isOpen={hasHelp} onClose={() => setHasHelp(false)} />
    </>
  );
}
