import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api, newKey } from "@/api/client";
import { asProblem, type Problem } from "@/api/problem";
import type { Job, JobSpec } from "@/api/types";
import { useFormats, useT } from "@/i18n/i18n";
import { navigate, to } from "@/router/router";
import { may, useNamespace, useWho } from "@/session/session";
import { remember, remembered } from "@/store";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Dialog";
import { PageHeader } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { toast } from "@/ui/toasts";
import { ImageCard, JobCard, ResourcesCard, USED_IMAGES, usedImages } from "./basics";
import { CodeCard, RunCard } from "./code";
import { FormProvider, type Offers } from "./context";
import {
  bodyToForm,
  type Draft,
  differences,
  type Form,
  type FormKey,
  firstForm,
  formToBody,
  readDraft,
  withStandard,
} from "./form";
import styles from "./NewJobPage.module.css";
import { PlanPanel, PROBLEMS } from "./PlanPanel";
import { homeNamespace, LAST_NAMESPACE } from "./sample";
import { EnvCard, LifeCard, MoreCard, VolumesCard } from "./settings";
import { usePreview } from "./usePreview";

export interface Original {
  name: string;
  namespace: string;
  form: Form;
}

/** Typing is not slowed by keeping it. */
const KEEP_MS = 300;

interface JobFormProps {
  offers: Offers;
  original: Original | null;
  /** Fields that the address asks for, whatever the draft has. */
  wanted: Partial<Form>;
}

/** The form of a new job; with an original it begins as that job, and marks what differs. */
export function JobForm({ offers, original, wanted }: JobFormProps) {
  const t = useT();
  const who = useWho();
  const [listed] = useNamespace();
  const home = original?.namespace ?? homeNamespace(who, listed);
  // Of the place where the form was opened: the namespace may be changed in the form itself.
  const [draftName] = useState(() => `draft.${who.name}.${original ? `${home}/${original.name}` : home}`);
  const [draft] = useState(() => readDraft(remembered(draftName)));
  const beginning = original?.form ?? firstForm(who.engine);
  const [namespace, setNamespace] = useState(draft?.namespace ?? home);
  const [form, setForm] = useState<Form>({ ...(draft?.form ?? beginning), ...wanted });
  const set = useCallback((changes: Partial<Form>) => setForm((old) => ({ ...old, ...changes })), []);
  const body = useMemo(() => formToBody(form), [form]);
  const plan = usePreview(namespace, body);

  const content = JSON.stringify([namespace, body]);
  const sent = useRef({ content: draft?.key ? content : "", key: draft?.key ?? "" });
  const isChanged = namespace !== home || JSON.stringify(form) !== JSON.stringify(beginning);
  const keep = useCallback(() => {
    const key = sent.current.content === content ? sent.current.key : "";
    remember(draftName, isChanged || key ? JSON.stringify({ namespace, form, key } satisfies Draft) : null);
  }, [draftName, content, isChanged, namespace, form]);
  useKept(keep);

  const { submit, isBusy, problem, hasTried } = useSubmit(
    content,
    (isSuspended) => {
      const request = isSuspended ? { ...body, suspend: true } : body;
      const wanted = JSON.stringify([namespace, request]);
      // One key for one content, however often it is sent: a second press, or a retry after a lost answer, is the same job.
      if (sent.current.content !== wanted) sent.current = { content: wanted, key: newKey() };
      keep();
      const post = (from: string) =>
        api.post("/api/v1/namespaces/{namespace}/jobs", {
          path: { namespace },
          query: { cloned_from: from },
          body: request as unknown as JobSpec,
          idempotencyKey: sent.current.key,
        });
      return post(original?.namespace === namespace ? original.name : "").catch((error: unknown) => {
        // The original may be deleted while the form is filled: the job is wanted all the same.
        if (asProblem(error).errors.every((each) => each.path !== "cloned_from")) throw error;
        return post("");
      });
    },
    () => {
      remember(draftName, null);
      remember(LAST_NAMESPACE, namespace);
      if (form.image) {
        const images = [form.image, ...usedImages().filter((each) => each !== form.image)].slice(0, 20);
        remember(USED_IMAGES, JSON.stringify(images));
      }
    },
  );

  const changed = useMemo(
    () => new Set<FormKey>(original ? differences(original.form, form) : []),
    [original, form],
  );
  const reset = useCallback(
    (keys: readonly FormKey[]) => set(Object.fromEntries(keys.map((key) => [key, beginning[key]]))),
    [set, beginning],
  );
  const offered = useMemo(() => ({ ...offers, presets: withStandard(offers.presets) }), [offers]);
  const findings = problem && problem.errors.length > 0 ? problem.errors : plan.findings;
  const context = { namespace, form, set, findings, offers: offered, changed, reset, beginning, hasTried };
  const own = Object.keys(who.roles)
    .filter((each) => may(who, "member", each))
    .sort();

  return (
    <FormProvider value={context}>
      <PageHeader
        title={original ? t("newJob.cloneTitle", { name: original.name }) : t("newJob.title")}
        actions={
          !original && (
            <Button icon="play" onPress={() => setForm(bodyToForm(offers.sample))}>
              {t("newJob.useSample")}
            </Button>
          )
        }
      />
      {original && <CloneNote count={changed.size} onReset={() => reset([...changed])} />}
      <form
        className={styles.page}
        onSubmit={(event) => {
          event.preventDefault();
          void submit(false);
        }}
      >
        <div className={styles.form}>
          <JobCard
            namespace={namespace}
            namespaces={own.includes(namespace) || namespace === "" ? own : [namespace, ...own]}
            isNamespaceFree={who.is_administrator || own.length === 0}
            onNamespace={setNamespace}
          />
          <ResourcesCard />
          <ImageCard />
          <CodeCard />
          <RunCard />
          <EnvCard />
          <VolumesCard />
          <LifeCard />
          <MoreCard />
          <p className={styles.hint}>{t("newJob.draftKept")}</p>
        </div>
        <PlanPanel plan={plan} namespace={namespace} body={body} />
        <div className={styles.bar}>
          {problem && <ProblemNote problem={problem} />}
          <div className={styles.barRow}>
            <Summary form={form} />
            <Errors count={plan.findings.filter((each) => each.severity !== "warning").length} />
            <ResetForm
              isDisabled={!isChanged}
              onReset={() => {
                setForm(beginning);
                setNamespace(home);
              }}
            />
            {who.abilities.includes("suspend") && (
              <Button isDisabled={isBusy || namespace === ""} onPress={() => void submit(true)}>
                {t("newJob.save")}
              </Button>
            )}
            <Button type="submit" look="primary" icon="play" isDisabled={isBusy || namespace === ""}>
              {isBusy ? t("newJob.submitting") : t("newJob.submit")}
            </Button>
          </div>
        </div>
      </form>
    </FormProvider>
  );
}

/** A moment after the last change, and at once when the page goes. */
function useKept(keep: () => void): void {
  useEffect(() => {
    const timer = setTimeout(keep, KEEP_MS);
    addEventListener("pagehide", keep);
    return () => {
      clearTimeout(timer);
      removeEventListener("pagehide", keep);
    };
  }, [keep]);
}

function useSubmit(content: string, send: (isSuspended: boolean) => Promise<Job>, onDone: () => void) {
  const t = useT();
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [hasTried, setHasTried] = useState(false);
  const isSending = useRef(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was wrong with another content is over
  useEffect(() => setProblem(undefined), [content]);
  const submit = async (isSuspended: boolean) => {
    if (isSending.current) return;
    isSending.current = true;
    setIsBusy(true);
    try {
      const job = await send(isSuspended);
      onDone();
      const text = t(isSuspended ? "newJob.saved" : "newJob.started", { name: job.name });
      toast({ tone: "good", text });
      navigate(to.job(job.namespace, job.name));
    } catch (error) {
      setProblem(asProblem(error));
      setHasTried(true);
      document.getElementById(PROBLEMS)?.focus();
    } finally {
      isSending.current = false;
      setIsBusy(false);
    }
  };
  return { submit, isBusy, problem, hasTried };
}

function ResetForm({ isDisabled, onReset }: { isDisabled: boolean; onReset: () => void }) {
  const t = useT();
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <Button isDisabled={isDisabled} onPress={() => setIsOpen(true)}>
        {t("newJob.resetForm")}
      </Button>
      <Confirm
        title={t("newJob.resetFormTitle")}
        action={t("newJob.resetForm")}
        isDangerous
        isOpen={isOpen}
        onClose={() => setIsOpen(false)}
        onConfirm={async () => onReset()}
      >
        {t("newJob.resetFormHelp")}
      </Confirm>
    </>
  );
}

function CloneNote({ count, onReset }: { count: number; onReset: () => void }) {
  const t = useT();
  return (
    <div className={styles.clone} role="status">
      <span>{count === 0 ? t("newJob.cloneSame") : t.plural("newJob.cloneChanges", count)}</span>
      {count > 0 && (
        <Button isSmall icon="restart" onPress={onReset}>
          {t("newJob.resetAll")}
        </Button>
      )}
    </div>
  );
}

function Summary({ form }: { form: Form }) {
  const t = useT();
  const { number } = useFormats();
  const nodes = form.isMultiNode ? number(Number(form.nodes) || 0) : "1";
  const cpu = form.cpuLimit || t("newJob.unlimited");
  const memory = form.memoryLimit || t("newJob.unlimited");
  return (
    <span className={styles.summary}>
      {form.gpus === "0"
        ? t("newJob.summaryCpu", { nodes, cpu, memory })
        : t("newJob.summaryGpu", { nodes, gpus: form.gpus, cpu, memory })}
    </span>
  );
}

function Errors({ count }: { count: number }) {
  const t = useT();
  if (count === 0) return null;
  const show = () => {
    const list = document.getElementById(PROBLEMS);
    list?.scrollIntoView({ block: "center" });
    list?.focus({ preventScroll: true });
  };
  return (
    <Button isSmall look="danger" icon="cross" onPress={show}>
      {t.plural("newJob.errors", count)}
    </Button>
  );
}
