import type { ReactNode } from "react";
import { Form } from "react-aria-components";
import { useT } from "@/i18n/i18n";
import { Button } from "@/ui/Button";
import { cx } from "@/ui/cx";
import { Dialog } from "@/ui/Dialog";
import { ProblemNote } from "@/ui/ProblemList";
import styles from "./AdminPage.module.css";
import type { useWrite } from "./useWrite";

interface Props {
  title: string;
  action: string;
  isOpen: boolean;
  isReady: boolean;
  writing: ReturnType<typeof useWrite>;
  onClose: () => void;
  onSubmit: () => void;
  children: ReactNode;
}

/** A few fields and a verb; what the server refuses is told here, and nothing that was typed is lost. */
export function FormDialog({ title, action, isOpen, isReady, writing, onClose, onSubmit, children }: Props) {
  const t = useT();
  const close = () => {
    writing.reset();
    onClose();
  };
  return (
    <Dialog title={title} isOpen={isOpen} onClose={close}>
      <Form
        className={cx(styles.form)}
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}
      >
        {children}
        {writing.problem && <ProblemNote problem={writing.problem} />}
        <div className={styles.buttons}>
          <Button onPress={close}>{t("common.cancel")}</Button>
          <Button type="submit" look="primary" isDisabled={writing.isBusy || !isReady}>
            {action}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}
