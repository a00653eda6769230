import { createStore, remember, remembered, useStore } from "@/store";

export type Theme = "system" | "light" | "dark";

const kept = remembered("theme");
const theme = createStore<Theme>(kept === "light" || kept === "dark" ? kept : "system");

/** Colours follow `color-scheme`, so one attribute changes all of them; see tokens.css. */
function show(value: Theme): void {
  if (value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
}
show(theme.get());

export function setTheme(value: Theme): void {
  remember("theme", value === "system" ? null : value);
  show(value);
  theme.set(value);
}

export function useTheme(): Theme {
  return useStore(theme);
}
