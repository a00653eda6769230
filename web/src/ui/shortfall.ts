import type { components } from "@/api/schema";
import type { Formats, Translate } from "@/i18n/i18n";

export type Shortfall = components["schemas"]["ShortfallBody"];

/** What a job asked for, what the machine has, and what follows; in the language of the page. */
export function shortfallText(short: Shortfall, t: Translate, formats: Formats): string {
  const { asked, has, nodes } = short;
  const listed = ({ cpu, memory, gpus }: Shortfall["asked"], isAsked: boolean) =>
    [
      (cpu > 0 || !isAsked) &&
        t("common.amountCpu", { cpu: formats.number(cpu, { maximumFractionDigits: 2 }) }),
      (memory > 0 || !isAsked) && formats.bytes(memory),
      gpus > 0 && t("common.amountGpus", { gpus }),
      gpus === 0 && !isAsked && t("common.amountNoGpu"),
    ]
      .filter(Boolean)
      .join(", ");
  const sizes = t.plural("common.shortfall", nodes, { asked: listed(asked, true), has: listed(has, false) });
  const follows = short.is_refused
    ? t("common.shortfallRefused")
    : asked.gpus > 0 && has.gpus === 0
      ? t("common.shortfallOnCpu")
      : t("common.shortfallLess");
  return `${sizes} ${follows}`;
}
