/**
 * Words of the page. `const t = useT(); t("jobs.title"); t("jobs.remaining", { time })`, and for numbers of things
 * `t.plural("common.problems", count)`, with other values `t.plural("jobs.restarts", count, { most })`. Keys and
 * placeholders are checked by the compiler, and by the tests beside this.
 */
import { useMemo } from "react";
import { createStore, remember, remembered, useStore } from "@/store";
import { en } from "./en";
import { ko } from "./ko";
import type { Catalogue, Key, Language, Page, PluralKey, PluralValues, Values } from "./types";

export const catalogues: Record<Language, Catalogue> = { en, ko };
/** Each language by its own name. */
export const LANGUAGES: Record<Language, string> = { en: "English", ko: "한국어" };

const language = createStore<Language>(first());

function first(): Language {
  const kept = remembered("language");
  if (kept === "en" || kept === "ko") return kept;
  return navigator.languages.some((each) => each.toLowerCase().startsWith("ko")) ? "ko" : "en";
}

export function setLanguage(value: Language): void {
  remember("language", value);
  document.documentElement.lang = value;
  language.set(value);
}

export function useLanguage(): Language {
  return useStore(language);
}

export function currentLanguage(): Language {
  return language.get();
}

type Asked<V> = keyof V extends never ? [] : [values: V];

export interface Translate {
  <K extends Key>(key: K, ...values: Asked<Values<K>>): string;
  plural: <K extends PluralKey>(key: K, count: number, ...values: Asked<PluralValues<K>>) => string;
}

export function translator(spoken: Language): Translate {
  const catalogue = catalogues[spoken];
  const rules = new Intl.PluralRules(spoken);
  const numbers = new Intl.NumberFormat(spoken);
  const text = (key: string, values: Record<string, string | number> = {}): string => {
    const [page, name] = key.split(".") as [Page, string];
    const found = (catalogue[page] as Record<string, string>)[name] ?? key;
    return found.replace(/\{(\w+)\}/g, (whole, each: string) => String(values[each] ?? whole));
  };
  const translate = ((key, ...values) => text(key, values[0])) as Translate;
  translate.plural = (key, count, ...values) => {
    const form = rules.select(count) === "one" ? "one" : "other";
    return text(`${key}_${form}`, { ...values[0], count: numbers.format(count) });
  };
  return translate;
}

const translators: Record<Language, Translate> = { en: translator("en"), ko: translator("ko") };

export function useT(): Translate {
  return translators[useLanguage()];
}

/** For what is said outside of components. */
export function currentT(): Translate {
  return translators[language.get()];
}

export interface Formats {
  number: (value: number, options?: Intl.NumberFormatOptions) => string;
  percent: (fraction: number) => string;
  bytes: (value: number) => string;
  dateTime: (value: string | number | Date) => string;
  /** "3 minutes ago". */
  ago: (value: string | number | Date, now: number) => string;
  /** "1h 5m", two units at most. */
  duration: (seconds: number) => string;
}

export function formats(spoken: Language): Formats {
  const relative = new Intl.RelativeTimeFormat(spoken, { numeric: "auto", style: "short" });
  const dates = new Intl.DateTimeFormat(spoken, { dateStyle: "medium", timeStyle: "medium" });
  const unit = (value: number, name: string) =>
    new Intl.NumberFormat(spoken, { style: "unit", unit: name, unitDisplay: "narrow" }).format(value);
  return {
    number: (value, options) => new Intl.NumberFormat(spoken, options).format(value),
    percent: (fraction) =>
      new Intl.NumberFormat(spoken, { style: "percent", maximumFractionDigits: 0 }).format(fraction),
    bytes: (value) => {
      const names = ["B", "KiB", "MiB", "GiB", "TiB"];
      let size = value;
      let step = 0;
      for (; size >= 1024 && step < names.length - 1; step++) size /= 1024;
      return `${new Intl.NumberFormat(spoken, { maximumFractionDigits: 1 }).format(size)} ${names[step]}`;
    },
    dateTime: (value) => dates.format(new Date(value)),
    ago: (value, now) => {
      const seconds = (new Date(value).getTime() - now) / 1000;
      const [amount, name] = largestUnit(Math.abs(seconds));
      return relative.format(Math.sign(seconds) * amount, name);
    },
    duration: (seconds) => {
      const whole = Math.max(0, Math.round(seconds));
      const parts: [number, string][] = [
        [Math.floor(whole / 86400), "day"],
        [Math.floor(whole / 3600) % 24, "hour"],
        [Math.floor(whole / 60) % 60, "minute"],
        [whole % 60, "second"],
      ];
      const begin = parts.findIndex(([value]) => value > 0);
      if (begin < 0) return unit(0, "second");
      return parts
        .slice(begin, begin + 2)
        .filter(([value]) => value > 0)
        .map(([value, name]) => unit(value, name))
        .join(" ");
    },
  };
}

function largestUnit(seconds: number): [number, Intl.RelativeTimeFormatUnit] {
  if (seconds < 60) return [Math.floor(seconds), "second"];
  if (seconds < 3600) return [Math.floor(seconds / 60), "minute"];
  if (seconds < 86400) return [Math.floor(seconds / 3600), "hour"];
  return [Math.floor(seconds / 86400), "day"];
}

export function useFormats(): Formats {
  const spoken = useLanguage();
  return useMemo(() => formats(spoken), [spoken]);
}
