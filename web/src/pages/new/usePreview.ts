import { useEffect, useState } from "react";
import { api } from "@/api/client";
import { asProblem, isAbort, type Problem } from "@/api/problem";
import type { JobSpec, Preview } from "@/api/types";
import { useT } from "@/i18n/i18n";
import type { Finding } from "@/ui/ProblemList";
import type { JobBody } from "./form";

/** Long enough for a word to be typed, short enough to feel live. */
const PAUSE_MS = 250;

export interface Plan {
  /** Of the newest request that could be read; the objects are empty where nothing could be made of it. */
  preview: Preview | undefined;
  findings: readonly Finding[];
  /** No answer, or not to this person. */
  problem: Problem | undefined;
  /** An answer to what is in the form now is still on its way. */
  isWaiting: boolean;
}

const NOTHING: Plan = { preview: undefined, findings: [], problem: undefined, isWaiting: true };

/** What the server says of the form, asked when typing pauses; what is out of date is aborted. */
export function usePreview(namespace: string, body: JobBody): Plan {
  const [plan, setPlan] = useState<Plan>(NOTHING);
  const asked = JSON.stringify(body);
  const missing = useT()("newJob.namespaceMissing");
  useEffect(() => {
    if (namespace.trim() === "") {
      const finding = { path: "namespace", code: "FieldValueRequired", message: missing, remedy: "" };
      setPlan((old) => ({ preview: old.preview, findings: [finding], problem: undefined, isWaiting: false }));
      return;
    }
    const controller = new AbortController();
    setPlan((old) => (old.isWaiting ? old : { ...old, isWaiting: true }));
    const timer = setTimeout(async () => {
      try {
        const preview = await api.post("/api/v1/namespaces/{namespace}/jobs:preview", {
          path: { namespace },
          body: JSON.parse(asked) as JobSpec,
          signal: controller.signal,
        });
        setPlan({ preview, findings: preview.problems, problem: undefined, isWaiting: false });
      } catch (error) {
        if (isAbort(error) || controller.signal.aborted) return;
        const problem = asProblem(error);
        const isRefused = problem.errors.length > 0;
        setPlan((old) => ({
          preview: old.preview,
          findings: isRefused ? problem.errors : [],
          problem: isRefused ? undefined : problem,
          isWaiting: false,
        }));
      }
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [namespace, asked, missing]);
  return plan;
}
