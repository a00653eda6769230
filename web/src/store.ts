import { useSyncExternalStore } from "react";

/** A value that components follow. One for each thing that lives longer than a page: session, language, theme. */
export interface Store<T> {
  get: () => T;
  set: (value: T) => void;
  subscribe: (listener: () => void) => () => void;
}

export function createStore<T>(initial: T): Store<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set: (next) => {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener();
    },
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get);
}

/** A word kept by the browser; a browser that keeps nothing is no reason to fail. */
export function remembered(name: string): string | null {
  try {
    return localStorage.getItem(`astrago.${name}`);
  } catch {
    return null;
  }
}

export function remember(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`astrago.${name}`);
    else localStorage.setItem(`astrago.${name}`, value);
  } catch {
    // it is forgotten with the page
  }
}
