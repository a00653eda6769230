/** Exit codes in words: 128 + n means that a signal ended the process. */
import type { Translate } from "@/i18n/i18n";

const SIGNALS: Readonly<Record<number, string>> = {
  ...{ 1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE" },
  ...{
    9: "SIGKILL",
    10: "SIGUSR1",
    11: "SIGSEGV",
    12: "SIGUSR2",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
  },
};

export function signalOf(code: number): string | undefined {
  return code > 128 ? SIGNALS[code - 128] : undefined;
}

export function exitWords(code: number, t: Translate): string {
  switch (code) {
    case 0:
      return t("job.exitSuccess");
    case 126:
      return t("job.exitNotRunnable");
    case 127:
      return t("job.exitNotFound");
    case 134:
      return t("job.exitAbort");
    case 135:
      return t("job.exitBus");
    case 137:
      return t("job.exitKill");
    case 139:
      return t("job.exitSegment");
    case 143:
      return t("job.exitTerm");
  }
  const signal = signalOf(code);
  return signal ? t("job.exitSignal", { signal }) : t("job.exitError");
}
