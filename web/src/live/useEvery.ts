import { useEffect, useRef } from "react";

/** Calls `act` again and again, while somebody can see the page. */
export function useEvery(ms: number, act: () => void): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && latest.current(), ms);
    return () => clearInterval(timer);
  }, [ms]);
}
