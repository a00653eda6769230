import { createStore, useStore } from "@/store";

/** The time, told once a second to all who show it. */
const clock = createStore(Date.now());
setInterval(() => {
  if (document.visibilityState === "visible") clock.set(Date.now());
}, 1000);

export function useNow(): number {
  return useStore(clock);
}
