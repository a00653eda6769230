import { memo } from "react";
import { cx } from "@/ui/cx";
import styles from "./AnsiText.module.css";
import { lastState, type Piece, pieces } from "./ansi";

/** Text of a terminal with its colours. What `mark` finds in it is marked. */
export const AnsiText = memo(function AnsiText({ text, mark = "" }: { text: string; mark?: string }) {
  return (
    <>
      {pieces(text).map((piece, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no other name, and never change places
        <span key={index} className={cx(...piece.look.split(" ").map((name) => name && styles[name]))}>
          {mark ? <Marked piece={piece} mark={mark} /> : piece.text}
        </span>
      ))}
    </>
  );
});

function Marked({ piece, mark }: { piece: Piece; mark: string }) {
  const parts: { text: string; isFound: boolean }[] = [];
  const low = piece.text.toLowerCase();
  const wanted = mark.toLowerCase();
  let at = 0;
  // Lower case may have another length (İ): then places would be wrong, and nothing is marked.
  const isSound = low.length === piece.text.length && wanted !== "";
  for (let found = isSound ? low.indexOf(wanted) : -1; found >= 0; found = low.indexOf(wanted, at)) {
    if (found > at) parts.push({ text: piece.text.slice(at, found), isFound: false });
    at = found + wanted.length;
    parts.push({ text: piece.text.slice(found, at), isFound: true });
  }
  parts.push({ text: piece.text.slice(at), isFound: false });
  return parts.map((part, index) =>
    part.isFound ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text
      <mark key={index} className={styles.mark}>
        {part.text}
      </mark>
    ) : (
      part.text
    ),
  );
}

/** A message of several lines, as the last lines of a failed rank: each in its last state. */
export function Message({ text }: { text: string }) {
  return (
    <span className={styles.message}>
      <AnsiText text={linesOf(text).join("\n")} />
    </span>
  );
}

const MOST_SHORT = 300;

/** The same where there is room for one line; the whole of a long one is behind it. */
export function ShortMessage({ text }: { text: string }) {
  const [first = "", ...rest] = linesOf(text);
  if (rest.length === 0 && first.length <= MOST_SHORT) return <Message text={text} />;
  return (
    <details className={styles.long}>
      <summary>
        <AnsiText text={first.length > MOST_SHORT ? `${first.slice(0, MOST_SHORT)}…` : first} />
      </summary>
      <Message text={text} />
    </details>
  );
}

function linesOf(text: string): string[] {
  return text.replace(/\r\n/g, "\n").trimEnd().split("\n").map(lastState);
}
