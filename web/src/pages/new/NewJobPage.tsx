import { api } from "@/api/client";
import { useLoad } from "@/api/useLoad";
import { useT } from "@/i18n/i18n";
import { usePlace } from "@/router/router";
import { useNamespace } from "@/session/session";
import { Loading, PageHeader } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { frameworkOf } from "./basics";
import { bodyToForm, type Form } from "./form";
import { JobForm, type Original } from "./JobForm";

/** `/new`, `/new?from=<job>&namespace=<its namespace>` to clone one, and `/new?runtime=<name>` to use that runtime. */
export default function NewJobPage() {
  const t = useT();
  const { query } = usePlace();
  const [listed] = useNamespace();
  const name = query.get("from") ?? "";
  const namespace = query.get("namespace") ?? listed;
  const runtime = query.get("runtime") ?? "";
  const key = `new ${namespace}/${name} ${runtime}`;
  const { data, problem, reload } = useLoad(key, async (signal) => {
    const [offers, original, wanted] = await Promise.all([
      api.get("/api/v1/offers", { signal }),
      name ? readOriginal(namespace, name, signal) : null,
      runtime ? readRuntime(runtime, signal) : {},
    ]);
    return { offers, original, wanted };
  });
  if (data) return <JobForm key={key} {...data} />;
  return (
    <>
      <PageHeader title={name ? t("newJob.cloneTitle", { name }) : t("newJob.title")} />
      {problem ? <ProblemNote problem={problem} onRetry={reload} /> : <Loading />}
    </>
  );
}

/** The fields that say: on this runtime. */
async function readRuntime(name: string, signal: AbortSignal): Promise<Partial<Form>> {
  const { framework } = await api.get("/api/v1/runtimes/{name}", { path: { name }, signal });
  return { framework: frameworkOf(framework), runtime: name, hasLauncher: false };
}

async function readOriginal(namespace: string, name: string, signal: AbortSignal): Promise<Original> {
  const { spec } = await api.get("/api/v1/namespaces/{namespace}/jobs/{name}/manifest", {
    path: { namespace, name },
    signal,
  });
  // Two jobs cannot share a name: the new one begins without.
  return { name, namespace, form: { ...bodyToForm(spec), name: "" } };
}
