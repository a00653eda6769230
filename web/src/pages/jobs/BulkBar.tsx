import { useState } from "react";
import { api } from "@/api/client";
import type { Job } from "@/api/types";
import { useT } from "@/i18n/i18n";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Dialog";
import { toast } from "@/ui/toasts";
import { canSuspend, eachOf } from "./bulk";
import styles from "./JobsPage.module.css";
import type { Selection } from "./useSelection";

/** Names in a confirmation; more are counted. */
const NAMED = 12;
type Verb = "suspend" | "delete";

const JOB = "/api/v1/namespaces/{namespace}/jobs/{name}";
const pathOf = (job: Job) => ({ namespace: job.namespace, name: job.name });

/** What can be done with the chosen jobs; stands at the lower edge while there are some. */
export function BulkBar({ selection }: { selection: Selection }) {
  const t = useT();
  // What is asked about stays the same, whatever the list does meanwhile.
  const [asked, setAsked] = useState<{ verb: Verb; jobs: readonly Job[] }>();
  const [isOpen, setIsOpen] = useState(false);
  const chosen = selection.jobs;
  const ask = (verb: Verb, jobs: readonly Job[]) => {
    setAsked({ verb, jobs });
    setIsOpen(true);
  };
  const act = async () => {
    if (!asked) return;
    const { verb, jobs } = asked;
    const { done, refused } = await eachOf(jobs, (job) =>
      verb === "suspend"
        ? api.post(`${JOB}:suspend`, { path: pathOf(job) })
        : // The very job that was named, not one that has its name by now.
          api.delete(JOB, { path: pathOf(job), query: { uid: job.uid } }),
    );
    const said = verb === "suspend" ? "jobs.suspended" : "jobs.deleted";
    if (done.length > 0) toast({ tone: "good", text: t.plural(said, done.length) });
    for (const { job, problem } of refused.slice(0, 3))
      toast({ tone: "bad", text: t("jobs.refused", { name: job.name, problem: problem.message }) });
    if (refused.length === 0) selection.clear();
    else selection.set(refused.map(({ job }) => job));
  };
  const suspendable = chosen.filter(canSuspend);
  return (
    <>
      {chosen.length > 0 && (
        <section className={styles.bulk} aria-label={t("jobs.bulk")}>
          <span role="status">{t.plural("jobs.chosen", chosen.length)}</span>
          <Button
            icon="pause"
            isDisabled={suspendable.length === 0}
            onPress={() => ask("suspend", suspendable)}
          >
            {t("jobs.suspend")}
          </Button>
          <Button look="danger" icon="trash" onPress={() => ask("delete", chosen)}>
            {t("jobs.delete")}
          </Button>
          <Button look="quiet" icon="close" isIconOnly onPress={selection.clear}>
            {t("jobs.clearSelection")}
          </Button>
        </section>
      )}
      <Confirm
        title={
          asked
            ? t.plural(asked.verb === "suspend" ? "jobs.suspendAsk" : "jobs.deleteAsk", asked.jobs.length)
            : ""
        }
        action={asked?.verb === "suspend" ? t("jobs.suspend") : t("jobs.delete")}
        isDangerous={asked?.verb === "delete"}
        isOpen={isOpen}
        onClose={() => setIsOpen(false)}
        onConfirm={act}
      >
        <p>{asked?.verb === "suspend" ? t("jobs.suspendMeans") : t("jobs.deleteMeans")}</p>
        <ul className={styles.named}>
          {asked?.jobs.slice(0, NAMED).map((job) => (
            <li key={job.uid}>
              <code>
                {job.namespace}/{job.name}
              </code>{" "}
              {t(`phase.${job.phase}`)}
            </li>
          ))}
          {asked && asked.jobs.length > NAMED && (
            <li>{t.plural("jobs.andMore", asked.jobs.length - NAMED)}</li>
          )}
        </ul>
      </Confirm>
    </>
  );
}
