import { useCallback, useEffect, useRef, useState } from "react";
import { api } from "@/api/client";
import { asProblem, isAbort, type Problem } from "@/api/problem";
import type { JobPage } from "@/api/types";
import { type JobNews, useJobNews } from "./jobFeed";
import { EMPTY, type Filter, type JobList, withNews, withPage } from "./jobList";

const PAGE = 100;
/** Of those who scroll. */
const MORE = 500;
/** What the API gives in one answer. */
const MOST_AT_ONCE = 500;
const MOST_READ_AGAIN = 2000;
/** More than a page under way can miss. */
const MOST_TOLD = 1000;

export interface LiveJobs extends JobList {
  problem: Problem | undefined;
  /** False until the first page is here. */
  isRead: boolean;
  isReadingMore: boolean;
  readMore: () => void;
  reload: () => void;
}

/** Jobs of a namespace (`-`: all), newest first, kept up to date by the stream. Further pages come by `readMore`. */
export function useJobList(namespace: string, filter: Filter): LiveJobs {
  const [state, setState] = useState<{ key: string; list: JobList; problem?: Problem; isRead: boolean }>({
    key: "",
    list: EMPTY,
    isRead: false,
  });
  const [isReadingMore, setIsReadingMore] = useState(false);
  const key = JSON.stringify([namespace, filter]);
  const shown = { shownKey: state.key, count: state.list.jobs.length, nextToken: state.list.nextToken };
  const current = useRef({ key, filter, namespace, ...shown });
  current.current = { key, filter, namespace, ...shown };
  const reading = useRef<AbortController>(null);
  /** The page under way: whoever scrolls asks for it many times. */
  const under = useRef<string>(null);
  // What is told while a page is under way may be newer than the page.
  const meanwhile = useRef<JobNews[]>([]);

  const read = useCallback(async (pageToken: string | null) => {
    reading.current?.abort();
    const controller = new AbortController();
    reading.current = controller;
    meanwhile.current = [];
    const asked = current.current;
    // Who has scrolled far and missed something stays where they are.
    const again = asked.shownKey === asked.key ? Math.min(asked.count, MOST_READ_AGAIN) : 0;
    const enough = pageToken ? MORE : Math.max(PAGE, again);
    try {
      const page = await pagesOf(asked, pageToken, enough, controller.signal);
      const told = meanwhile.current;
      setState((old) => {
        const before = pageToken ? old.list : { ...EMPTY, progress: old.list.progress };
        const list = withPage(before, page.items, page.next_page_token);
        return { key: asked.key, list: withNews(list, told, asked.filter), isRead: true };
      });
    } catch (error) {
      if (!isAbort(error))
        setState((old) => ({ ...old, key: asked.key, problem: asProblem(error), isRead: true }));
    }
  }, []);

  // A key that is not the one shown is read at once; the stream asks for the first reading of a namespace itself.
  useEffect(() => {
    if (state.key !== "" && state.key !== key) void read(null);
  }, [key, state.key, read]);
  useEffect(() => () => reading.current?.abort(), []);

  useJobNews(namespace, (news) => {
    const isBehind = news.some((each) => each.kind === "read");
    if (isBehind) void read(null);
    meanwhile.current = [...meanwhile.current, ...news].slice(-MOST_TOLD);
    if (isBehind) return;
    setState((old) => (old.key === key ? { ...old, list: withNews(old.list, news, filter) } : old));
  });

  const readMore = useCallback(() => {
    const token = current.current.nextToken;
    if (!token || token === under.current) return;
    under.current = token;
    setIsReadingMore(true);
    void read(token).finally(() => {
      under.current = null;
      setIsReadingMore(false);
    });
  }, [read]);
  const reload = useCallback(() => void read(null), [read]);

  const problem = state.key === key ? state.problem : undefined;
  return { ...state.list, problem, isRead: state.isRead, isReadingMore, readMore, reload };
}

/** As many jobs as are enough, if there are. A page may be short, or empty, and still not be the last. */
async function pagesOf(
  asked: { namespace: string; filter: Filter },
  pageToken: string | null,
  enough: number,
  signal: AbortSignal,
): Promise<JobPage> {
  const { phases, ...rest } = asked.filter;
  const items: JobPage["items"] = [];
  let next = pageToken;
  do {
    const page: JobPage = await api.get("/api/v1/namespaces/{namespace}/jobs", {
      path: { namespace: asked.namespace },
      query: {
        ...rest,
        phase: phases.join(","),
        limit: Math.min(MOST_AT_ONCE, enough - items.length),
        ...(next ? { page_token: next } : {}),
      },
      signal,
    });
    items.push(...page.items);
    next = page.next_page_token;
  } while (next && items.length < enough);
  return { items, next_page_token: next };
}
