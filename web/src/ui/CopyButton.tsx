import { useEffect, useState } from "react";
import { useT } from "@/i18n/i18n";
import { Button } from "./Button";
import { toast } from "./toasts";

/** Copies a text; says so on itself. */
export function CopyButton({
  text,
  label,
  isIconOnly,
}: {
  text: string | (() => string);
  label?: string;
  isIconOnly?: boolean;
}) {
  const t = useT();
  const [isCopied, setIsCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setIsCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async () => {
    if (await copyText(typeof text === "string" ? text : text())) setIsCopied(true);
    else toast({ tone: "bad", text: t("common.copyFailed") });
  };
  return (
    <Button isSmall icon={isCopied ? "check" : "copy"} isIconOnly={isIconOnly ?? false} onPress={copy}>
      {isCopied ? t("common.copied") : (label ?? t("common.copy"))}
    </Button>
  );
}

/** Browsers have no clipboard for pages that came over plain HTTP from another machine; the old way works there. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    area.style.opacity = "0";
    document.body.append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    return isDone;
  }
}
