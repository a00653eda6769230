import { useEffect, useState } from "react";

/** The value, once it has stayed the same for a moment: what is being typed is not asked about letter by letter. */
export function useSettled<T>(value: T, ms = 400): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
