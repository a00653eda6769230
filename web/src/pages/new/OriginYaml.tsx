import { useId, useRef, useState } from "react";
import { useT } from "@/i18n/i18n";
import { Button } from "@/ui/Button";
import { cx } from "@/ui/cx";
import { Icon, type IconName } from "@/ui/Icon";
import { yamlLines } from "@/yaml/yaml";
import styles from "./OriginYaml.module.css";
import { type Origin, originOf, type Source } from "./origins";

const ICONS: Record<Source, IconName> = {
  you: "user",
  runtime: "runtime",
  platform: "gear",
  operator: "node",
};

interface OriginYamlProps {
  value: unknown;
  pointer: string;
  provenance: Readonly<Record<string, string>>;
  /** Brings the field of the form behind a line into view. */
  onJump: (path: string) => void;
}

/** YAML whose every line says who set it: by word, sign and colour, and in whole below for the line that is pointed at. */
export function OriginYaml({ value, pointer, provenance, onJump }: OriginYamlProps) {
  const t = useT();
  const words: Record<Source, string> = {
    you: t("newJob.originYou"),
    runtime: t("newJob.originRuntime"),
    platform: t("newJob.originPlatform"),
    operator: t("newJob.originOperator"),
  };
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState(0);
  const lines = yamlLines(value, pointer).map((line) => ({
    text: line.text,
    origin: line.pointer === null ? null : originOf(line.pointer, provenance),
  }));
  const line = Math.min(current, lines.length - 1);
  const origin = lines[line]?.origin ?? null;
  const move = (to: number) => {
    const next = Math.max(0, Math.min(lines.length - 1, to));
    setCurrent(next);
    list.current?.children[next]?.scrollIntoView({ block: "nearest" });
  };
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: line + 1,
    ArrowUp: line - 1,
    PageDown: line + 15,
    PageUp: line - 15,
    Home: 0,
    End: lines.length - 1,
  };
  return (
    <div className={styles.yaml}>
      <div
        ref={list}
        role="listbox"
        tabIndex={0}
        aria-label={t("newJob.yamlLabel")}
        aria-activedescendant={`${id}-${line}`}
        className={styles.lines}
        onKeyDown={(event) => {
          const next = steps[event.key];
          if (next !== undefined) {
            event.preventDefault();
            move(next);
          } else if (event.key === "Enter" && origin?.source === "you") {
            event.preventDefault();
            onJump(origin.detail);
          }
        }}
      >
        {lines.map((each, index) => (
          <div
            // biome-ignore lint/suspicious/noArrayIndexKey: a line is its place
            key={index}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === line}
            {...(each.text.trim() ? {} : { "aria-label": t("newJob.blankLine") })}
            tabIndex={-1}
            className={cx(
              styles.line,
              each.origin ? styles[each.origin.source] : undefined,
              index === line && styles.current,
            )}
            onMouseEnter={() => setCurrent(index)}
          >
            <span className={styles.who}>
              {each.origin && (
                <>
                  <Icon name={ICONS[each.origin.source]} size={11} />
                  {words[each.origin.source]}
                </>
              )}
            </span>
            <code>{each.text || " "}</code>
          </div>
        ))}
      </div>
      <div className={styles.told} aria-live="polite">
        <span>{origin ? told(t, line + 1, origin, words) : t("newJob.yamlHelp")}</span>
        {origin?.source === "you" && (
          <Button isSmall look="quiet" onPress={() => onJump(origin.detail)}>
            {t("newJob.goToField")}
          </Button>
        )}
      </div>
    </div>
  );
}

function told(
  t: ReturnType<typeof useT>,
  line: number,
  origin: Origin,
  words: Record<Source, string>,
): string {
  const who = words[origin.source];
  return origin.detail
    ? t("newJob.originOfField", { line, who, detail: origin.detail })
    : t("newJob.originOf", { line, who });
}
