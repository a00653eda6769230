import { useCallback, useEffect, useRef, useState } from "react";
import { asProblem, isAbort, type Problem } from "./problem";

export interface Loaded<T> {
  data: T | undefined;
  problem: Problem | undefined;
  isLoading: boolean;
  /** Asks again; what is shown stays until the answer is here. */
  reload: () => void;
}

/**
 * Reads once per `key` and again on `reload`; aborts what nobody waits for any more. `load` may be a new function at
 * each render: the key alone decides. Old data stays while the same key is read again, and goes with another key.
 */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string; data?: T; problem?: Problem; isLoading: boolean }>({
    key,
    isLoading: true,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;

  // biome-ignore lint/correctness/useExhaustiveDependencies: `turn` is what asks again
  useEffect(() => {
    const controller = new AbortController();
    setState((old) => (old.key === key ? { ...old, isLoading: true } : { key, isLoading: true }));
    latest.current(controller.signal).then(
      (data) => {
        if (!controller.signal.aborted) setState({ key, data, isLoading: false });
      },
      (error: unknown) => {
        if (isAbort(error) || controller.signal.aborted) return;
        setState((old) => ({ ...old, key, problem: asProblem(error), isLoading: false }));
      },
    );
    return () => controller.abort();
  }, [key, turn]);

  const reload = useCallback(() => setTurn((value) => value + 1), []);
  const isCurrent = state.key === key;
  return {
    data: isCurrent ? state.data : undefined,
    problem: isCurrent ? state.problem : undefined,
    isLoading: isCurrent ? state.isLoading : true,
    reload,
  };
}
