import { useFormats } from "@/i18n/i18n";
import { useNow } from "@/live/useNow";

/** How long ago something was; the whole time when pointed at, and for machines. */
export function Ago({ time }: { time: string }) {
  const { ago, dateTime } = useFormats();
  const now = useNow();
  return (
    <time dateTime={time} title={dateTime(time)}>
      {ago(time, Math.max(now, Date.parse(time)))}
    </time>
  );
}

/** From begin to end, or to now. Nothing where it has not begun. */
export function Duration({ from, until }: { from: string | null; until: string | null }) {
  const { duration } = useFormats();
  const now = useNow();
  if (!from) return <span>–</span>;
  return <span>{duration(((until ? Date.parse(until) : now) - Date.parse(from)) / 1000)}</span>;
}
