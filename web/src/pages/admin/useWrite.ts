import { useState } from "react";
import { asProblem, type Problem } from "@/api/problem";

/** A change that is under way: whether it is, and what was wrong with it. True when it was done. */
export function useWrite(): {
  isBusy: boolean;
  problem: Problem | undefined;
  write: (work: () => Promise<unknown>) => Promise<boolean>;
  reset: () => void;
} {
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const write = async (work: () => Promise<unknown>) => {
    setIsBusy(true);
    setProblem(undefined);
    try {
      await work();
      return true;
    } catch (error) {
      setProblem(asProblem(error));
      return false;
    } finally {
      setIsBusy(false);
    }
  };
  return { isBusy, problem, write, reset: () => setProblem(undefined) };
}
