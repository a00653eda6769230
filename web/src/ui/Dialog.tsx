import { type ReactNode, useState } from "react";
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import { asProblem, type Problem } from "@/api/problem";
import { useT } from "@/i18n/i18n";
import { Button } from "./Button";
import { cx } from "./cx";
import styles from "./overlays.module.css";
import { ProblemNote } from "./ProblemList";

interface DialogProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
  footer?: ReactNode;
  role?: "dialog" | "alertdialog";
}

export function Dialog({ title, isOpen, onClose, children, footer, role = "dialog" }: DialogProps) {
  return (
    <ModalOverlay
      isOpen={isOpen}
      onOpenChange={(open) => !open && onClose()}
      isDismissable
      className={cx(styles.overlay)}
    >
      <Modal className={cx(styles.modal)}>
        <AriaDialog role={role} className={cx(styles.dialog)}>
          <Heading slot="title" className={cx(styles.title)}>
            {title}
          </Heading>
          <div className={styles.content}>{children}</div>
          {footer && <div className={styles.footer}>{footer}</div>}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

interface ConfirmProps {
  title: string;
  /** Names what goes: "job hello with its logs and 3 checkpoints". */
  children: ReactNode;
  /** The verb, as "Delete". */
  action: string;
  isDangerous?: boolean;
  isOpen: boolean;
  onClose: () => void;
  /** What fails is told in the dialog, which stays. */
  onConfirm: () => Promise<unknown>;
}

export function Confirm({ title, children, action, isDangerous, isOpen, onClose, onConfirm }: ConfirmProps) {
  const t = useT();
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const close = () => {
    setProblem(undefined);
    onClose();
  };
  const confirm = async () => {
    setIsBusy(true);
    try {
      await onConfirm();
      close();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setIsBusy(false);
    }
  };
  const footer = (
    <>
      <Button autoFocus onPress={close}>
        {t("common.cancel")}
      </Button>
      <Button look={isDangerous ? "danger" : "primary"} isDisabled={isBusy} onPress={confirm}>
        {action}
      </Button>
    </>
  );
  return (
    <Dialog title={title} isOpen={isOpen} onClose={close} footer={footer} role="alertdialog">
      {children}
      {problem && <ProblemNote problem={problem} />}
    </Dialog>
  );
}
