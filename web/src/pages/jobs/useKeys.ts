import { useEffect, useRef } from "react";
import { createStore, remember, remembered, useStore } from "@/store";

/** Letters alone disturb some who speak to their computer or use a screen reader: they can be turned off. */
const isOn = createStore(remembered("keys") !== "off");

export function useKeysOn(): [boolean, (value: boolean) => void] {
  return [
    useStore(isOn),
    (value) => {
      remember("keys", value ? null : "off");
      isOn.set(value);
    },
  ];
}

/** Single keys, where nobody types and no dialog is open. */
export function useKeys(actions: Readonly<Record<string, () => void>>): void {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented)
        return;
      if (!isOn.get() && event.key !== "Escape") return;
      if (
        isTyping(event.target) ||
        document.querySelector("[role=dialog], [role=alertdialog], [role=listbox]")
      )
        return;
      // Enter belongs to the link or button that has the focus.
      if (event.key === "Enter" && event.target instanceof Element && event.target.closest("a, button"))
        return;
      const act = latest.current[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target instanceof HTMLTextAreaElement ||
      target instanceof HTMLSelectElement ||
      (target instanceof HTMLInputElement && target.type !== "checkbox"))
  );
}
