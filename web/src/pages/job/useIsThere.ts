import { api } from "@/api/client";
import { asProblem } from "@/api/problem";
import type { Original } from "@/api/types";
import { useLoad } from "@/api/useLoad";

/** Whether a job is still the one that its name means; undefined as long as that is not known. */
export function useIsThere(namespace: string, { name, uid }: Original): boolean | undefined {
  const { data } = useLoad(`is there ${uid}`, async (signal) => {
    try {
      const path = { namespace, name };
      return (await api.get("/api/v1/namespaces/{namespace}/jobs/{name}", { path, signal })).uid === uid;
    } catch (error) {
      if (asProblem(error).status === 404) return false;
      throw error;
    }
  });
  return data;
}
