import { Component, type ReactNode } from "react";
import { currentT } from "@/i18n/i18n";
import { Button } from "./Button";
import { EmptyState } from "./Layout";

/** What breaks in a page stays in that page: the shell and its navigation go on. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state = { error: null };

  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const error: Error | null = this.state.error;
    if (error === null) return this.props.children;
    const t = currentT();
    const actions = (
      <Button look="primary" onPress={() => location.reload()}>
        {t("common.reload")}
      </Button>
    );
    return (
      <EmptyState icon="alert" title={t("common.brokenTitle")} actions={actions}>
        {t("common.brokenHelp")} <code>{(error as Error).message}</code>
      </EmptyState>
    );
  }
}
