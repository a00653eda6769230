import { useCallback, useEffect, useRef, useState } from "react";
import { addressOf, request } from "@/api/client";
import { asProblem, isAbort, type Problem } from "@/api/problem";
import type { Job } from "@/api/types";
import { useFormats, useT } from "@/i18n/i18n";
import { setQuery, usePlace } from "@/router/router";
import { useWho } from "@/session/session";
import { remember, remembered } from "@/store";
import { Button } from "@/ui/Button";
import { SearchField, Select } from "@/ui/Field";
import { EmptyState, Loading } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { Toggle } from "@/ui/Toggle";
import { toast } from "@/ui/toasts";
import styles from "./LogsTab.module.css";
import { LogView, type LogViewHandle } from "./LogView";
import { type Choice, type LogReader, useLog } from "./useLog";

const SEARCH_PAUSE_MS = 300;

export function LogsTab({ job }: { job: Job }) {
  const t = useT();
  const { query } = usePlace();
  const choice: Choice = {
    rank: query.get("rank") ?? "",
    attempt: query.get("attempt") ?? "",
    // Named, so that a run that begins has a view of its own.
    run: query.get("run") ?? String(job.run),
    container: query.get("container") ?? "",
  };
  const reader = useLog(job.namespace, job.name, job.uid, choice);
  const view = useRef<LogViewHandle>(null);
  const [hasTimes, setHasTimes] = useKept("log.times", false);
  const [isWrapped, setIsWrapped] = useKept("log.wrap", false);
  const [isFollowing, setIsFollowing] = useState(true);
  const linked = useLinkedLine();
  const begins = useRef(linked ?? ("end" as const)).current;
  const search = useSearch(reader, (line) => view.current?.goToLine(line));
  const { book } = reader;
  const isLive = reader.stream !== "over";
  return (
    <div className={styles.tab}>
      <div className={styles.bar}>
        <Choices job={job} choice={choice} reader={reader} />
        <Search search={search} />
      </div>
      <div className={styles.bar}>
        <Toggle isOn={isFollowing} onChange={(isOn) => view.current?.follow(isOn)} icon="chevron">
          {isLive ? t("job.follow") : t("job.toEnd")}
        </Toggle>
        <Toggle isOn={hasTimes} onChange={setHasTimes} icon="clock">
          {t("job.times")}
        </Toggle>
        <Toggle isOn={isWrapped} onChange={setIsWrapped} icon="menu">
          {t("job.wrap")}
        </Toggle>
        <span className={styles.state} role="status">
          <Counted reader={reader} />
        </span>
        <Download job={job} choice={choice} reader={reader} />
      </div>
      {reader.problem && <ProblemNote problem={reader.problem} onRetry={reader.retry} />}
      {search.problem && <ProblemNote problem={search.problem} />}
      {!reader.isOpen && !reader.problem && <Loading />}
      {reader.isOpen && book.count === 0 && <NoLines job={job} />}
      {reader.isOpen && book.count > 0 && (
        <LogView
          key={JSON.stringify([job.uid, choice])}
          ref={view}
          reader={reader}
          label={t("job.logOf", { name: job.name })}
          hasTimes={hasTimes}
          hasRanks={book.ranks.length > 1}
          isWrapped={isWrapped}
          current={search.current ?? linked}
          mark={search.isRegex ? "" : search.asked}
          begins={begins}
          onFollow={setIsFollowing}
        />
      )}
    </div>
  );
}

function Counted({ reader }: { reader: LogReader }) {
  const t = useT();
  if (!reader.isOpen) return null;
  const lines = t.plural("job.lines", reader.book.count);
  if (reader.stream === "lost") return <>{t("job.linesLost", { lines })}</>;
  if (reader.stream === "over") return <>{lines}</>;
  return <>{t("job.linesLive", { lines })}</>;
}

function NoLines({ job }: { job: Job }) {
  const t = useT();
  const isBefore = ["Queued", "Pending", "Pulling", "Initializing"].includes(job.phase);
  return (
    <EmptyState icon="clock" title={t("job.noLines")}>
      {isBefore ? t("job.noLinesYet") : t("job.noLinesEver")}
    </EmptyState>
  );
}

function Choices({ job, choice, reader }: { job: Job; choice: Choice; reader: LogReader }) {
  const t = useT();
  const { number } = useFormats();
  const newest = newestOf(job, choice, reader);
  const ranks = known(
    Array.from({ length: job.nodes + (job.framework === "horovod" ? 1 : 0) }, (_, rank) => rank),
    [...reader.book.ranks, ...(choice.rank ? [Number(choice.rank)] : [])],
  );
  const attempts = known(
    Array.from({ length: newest + 1 }, (_, attempt) => attempt),
    choice.attempt ? [Number(choice.attempt)] : [],
  );
  const containers = [
    ...new Set([...reader.book.containers, ...(choice.container ? [choice.container] : [])]),
  ];
  return (
    <>
      <Select
        label={t("job.rank")}
        isLabelHidden
        value={choice.rank || "all"}
        options={[
          { value: "all", label: t("job.allRanks") },
          ...ranks.map((rank) => ({
            value: String(rank),
            label: t("job.rankNumber", { rank: number(rank) }),
          })),
        ]}
        onChange={(value) => setQuery({ rank: value === "all" ? null : value })}
      />
      {attempts.length > 1 && (
        <Select
          label={t("job.attempt")}
          isLabelHidden
          value={choice.attempt || "all"}
          options={[
            { value: "all", label: t("job.allAttempts") },
            ...attempts.map((attempt) => ({
              value: String(attempt),
              label: t("job.attemptNumber", { attempt: number(attempt + 1) }),
            })),
          ]}
          onChange={(value) => setQuery({ attempt: value === "all" ? null : value })}
        />
      )}
      {job.run > 1 && (
        <Select
          label={t("job.run")}
          isLabelHidden
          value={choice.run}
          options={Array.from({ length: job.run }, (_, index) => ({
            value: String(index + 1),
            label: t("job.runNumber", { run: number(index + 1) }),
          }))}
          onChange={(value) => setQuery({ run: value === String(job.run) ? null : value, attempt: null })}
        />
      )}
      {containers.length > 1 && (
        <Select
          label={t("job.container")}
          isLabelHidden
          value={choice.container || "node"}
          options={containers.map((name) => ({ value: name, label: name }))}
          onChange={(value) => setQuery({ container: value === "node" ? null : value })}
        />
      )}
    </>
  );
}

/** The newest attempt of the run that is shown. */
function newestOf(job: Job, choice: Choice, { book }: LogReader): number {
  if (Number(choice.run) === job.run) return job.attempt;
  return Math.max(0, ...book.headings.map((each) => each.attempt));
}

const known = (counted: number[], others: readonly number[]) =>
  [...new Set([...counted, ...others.filter((each) => Number.isInteger(each) && each >= 0)])].sort(
    (a, b) => a - b,
  );

interface Searching {
  text: string;
  setText: (text: string) => void;
  /** What the hits are about. */
  asked: string;
  isRegex: boolean;
  setIsRegex: (value: boolean) => void;
  hasCase: boolean;
  setHasCase: (value: boolean) => void;
  isBusy: boolean;
  problem: Problem | undefined;
  lines: readonly number[];
  isWhole: boolean;
  place: number;
  /** The line of the hit that we are at. */
  current: number | null;
  step: (by: 1 | -1) => void;
}

function useSearch(reader: LogReader, goTo: (line: number) => void): Searching {
  const [text, setText] = useState("");
  const [isRegex, setIsRegex] = useState(false);
  const [hasCase, setHasCase] = useState(false);
  const [found, setFound] = useState({ asked: "", lines: [] as number[], isWhole: true });
  const [place, setPlace] = useState(0);
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const latest = useRef(goTo);
  latest.current = goTo;
  useEffect(() => {
    setProblem(undefined);
    setIsBusy(text !== "");
    if (text === "") {
      setFound({ asked: "", lines: [], isWhole: true });
      return;
    }
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const hits = await reader.find(text, isRegex, !hasCase, controller.signal);
        const lines = hits.items.map((hit) => hit.line);
        setFound({ asked: text, lines, isWhole: hits.is_whole });
        setPlace(0);
        if (lines[0] !== undefined) latest.current(lines[0]);
      } catch (error) {
        if (isAbort(error)) return;
        setProblem(asProblem(error));
        setFound({ asked: "", lines: [], isWhole: true });
      }
      setIsBusy(false);
    }, SEARCH_PAUSE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text, isRegex, hasCase, reader]);
  const { lines } = found;
  const step = useCallback(
    (by: 1 | -1) => {
      if (lines.length === 0) return;
      const next = (place + by + lines.length) % lines.length;
      setPlace(next);
      latest.current(lines[next] ?? 0);
    },
    [lines, place],
  );
  const current = lines[place] ?? null;
  return {
    ...{ text, setText, isRegex, setIsRegex, hasCase, setHasCase, isBusy, problem, place, current, step },
    ...found,
  };
}

function Search({ search }: { search: Searching }) {
  const t = useT();
  const { number } = useFormats();
  const { lines, isWhole, place, text } = search;
  const total = isWhole ? number(lines.length) : t("job.hitsAtLeast", { count: number(lines.length) });
  const words = search.isBusy
    ? t("job.searching")
    : search.problem || text === ""
      ? ""
      : lines.length === 0
        ? t("job.noHits")
        : t("job.hitOf", { place: number(place + 1), total });
  return (
    <form
      className={styles.search}
      onSubmit={(event) => {
        event.preventDefault();
        search.step(1);
      }}
    >
      <SearchField label={t("job.searchLog")} value={text} onChange={search.setText} />
      <span className={styles.hits} role="status">
        {words}
      </span>
      <Button isSmall isIconOnly icon="up" isDisabled={lines.length === 0} onPress={() => search.step(-1)}>
        {t("job.previousHit")}
      </Button>
      <Button
        isSmall
        isIconOnly
        icon="chevron"
        isDisabled={lines.length === 0}
        onPress={() => search.step(1)}
      >
        {t("job.nextHit")}
      </Button>
      <Toggle isOn={search.hasCase} onChange={search.setHasCase} title={t("job.matchCase")}>
        Aa
      </Toggle>
      <Toggle isOn={search.isRegex} onChange={search.setIsRegex} title={t("job.regex")}>
        .*
      </Toggle>
    </form>
  );
}

/** What is shown, as a file: one attempt, or all of them one after the other. */
function Download({ job, choice, reader }: { job: Job; choice: Choice; reader: LogReader }) {
  const t = useT();
  const who = useWho();
  const [isBusy, setIsBusy] = useState(false);
  const attempts = choice.attempt
    ? [Number(choice.attempt)]
    : Array.from({ length: newestOf(job, choice, reader) + 1 }, (_, attempt) => attempt);
  const [only] = attempts.length === 1 ? attempts : [];
  const file = fileName(job, choice);
  const addressOfOne = (attempt: number) =>
    addressOf(
      "/api/v1/namespaces/{namespace}/jobs/{name}/logs",
      { namespace: job.namespace, name: job.name },
      { ...choice, attempt: String(attempt), format: "text" },
    );
  const fetchFile = async () => {
    setIsBusy(true);
    try {
      const parts: (Blob | string)[] = [];
      for (const attempt of attempts) {
        if (only === undefined) parts.push(`=== ${t("job.attemptNumber", { attempt: attempt + 1 })} ===\n`);
        parts.push(await (await request(addressOfOne(attempt))).blob());
      }
      const url = URL.createObjectURL(new Blob(parts, { type: "text/plain" }));
      give(url, file);
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch (error) {
      toast({ tone: "bad", text: asProblem(error).message });
    } finally {
      setIsBusy(false);
    }
  };
  // A token cannot be in a link: then the file is fetched and handed to the browser.
  const isLink = who.authentication === "off" && only !== undefined;
  return (
    <Button
      isSmall
      icon="download"
      isDisabled={isBusy}
      onPress={isLink ? () => give(addressOfOne(only), file) : fetchFile}
    >
      {choice.attempt
        ? t("job.downloadAttempt", { attempt: Number(choice.attempt) + 1 })
        : only === undefined
          ? t("job.downloadAll")
          : t("job.download")}
    </Button>
  );
}

function fileName(job: Job, { run, attempt, rank }: Choice): string {
  return [
    job.name,
    ...(run === "1" ? [] : [`run-${run}`]),
    ...(attempt ? [`attempt-${Number(attempt) + 1}`] : []),
    ...(rank ? [`rank-${rank}`] : []),
  ]
    .join("-")
    .concat(".log");
}

function give(address: string, file: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = file;
  link.click();
}

/** A choice that the browser keeps. */
function useKept(name: string, initial: boolean): [boolean, (value: boolean) => void] {
  const [value, setValue] = useState(() => (remembered(name) ?? String(initial)) === "true");
  return [
    value,
    (next) => {
      remember(name, String(next));
      setValue(next);
    },
  ];
}

/** The line that the address names: `#L123`. */
function useLinkedLine(): number | null {
  const [line, setLine] = useState(linkedLine);
  useEffect(() => {
    const changed = () => setLine(linkedLine());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return line;
}

function linkedLine(): number | null {
  const found = /^#L(\d{1,12})$/.exec(location.hash);
  return found ? Math.max(0, Number(found[1]) - 1) : null;
}
