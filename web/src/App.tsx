import { useEffect } from "react";
import { I18nProvider, RouterProvider } from "react-aria-components";
import { useLanguage } from "@/i18n/i18n";
import { SignInPage } from "@/pages/sign-in/SignInPage";
import { navigate } from "@/router/router";
import { begin, useSession } from "@/session/session";
import { Shell } from "@/shell/Shell";
import { ErrorBoundary } from "@/ui/ErrorBoundary";
import { Loading } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { Toasts } from "@/ui/toasts";

export function App() {
  const language = useLanguage();
  useEffect(() => {
    document.documentElement.lang = language;
  }, [language]);
  return (
    <I18nProvider locale={language}>
      <RouterProvider navigate={(path) => navigate(path)}>
        <ErrorBoundary>
          <Entrance />
        </ErrorBoundary>
        <Toasts />
      </RouterProvider>
    </I18nProvider>
  );
}

function Entrance() {
  const session = useSession();
  switch (session.kind) {
    case "asking":
      return <Loading />;
    case "unreachable":
      return <ProblemNote problem={session.problem} onRetry={() => void begin()} />;
    case "signed-out":
      return <SignInPage why={session.why} />;
    case "signed-in":
      return <Shell />;
  }
}
