import { Button as AriaButton } from "react-aria-components";
import { useT } from "@/i18n/i18n";
import { createStore, useStore } from "@/store";
import { cx } from "./cx";
import { Icon } from "./Icon";
import styles from "./overlays.module.css";

interface Toast {
  tone: "good" | "bad";
  text: string;
}

const SHOWN_MS = 5000;
const toasts = createStore<readonly (Toast & { id: number })[]>([]);
let number = 0;

/** A short word at the edge of the window. Bad news stays until it is closed. */
export function toast(value: Toast): void {
  const id = ++number;
  toasts.set([...toasts.get().slice(-3), { ...value, id }]);
  if (value.tone === "good") setTimeout(() => close(id), SHOWN_MS);
}

function close(id: number): void {
  toasts.set(toasts.get().filter((each) => each.id !== id));
}

export function Toasts() {
  const t = useT();
  const shown = useStore(toasts);
  return (
    <section className={styles.toasts} aria-label={t("common.notifications")} aria-live="polite">
      {shown.map((each) => (
        <div key={each.id} className={cx(styles.toast, styles[each.tone])}>
          <Icon name={each.tone === "good" ? "done" : "alert"} />
          <span>{each.text}</span>
          <AriaButton
            className={cx(styles.toastClose)}
            aria-label={t("common.close")}
            onPress={() => close(each.id)}
          >
            <Icon name="close" size={14} />
          </AriaButton>
        </div>
      ))}
    </section>
  );
}
