/**
 * One stream of changes per namespace, shared by everything on the screen that follows jobs. It closes when nobody
 * listens. Its state is the page's state of connection, which the shell shows.
 */
import { useEffect, useRef } from "react";
import { addressOf } from "@/api/client";
import type { Job, Progress } from "@/api/types";
import { createStore, useStore } from "@/store";
import type { ServerEvent } from "./sse";
import { openStream, type StreamState } from "./stream";

export type JobNews =
  | { kind: "changed"; job: Job }
  | { kind: "removed"; name: string; namespace: string; uid: string }
  | { kind: "progress"; progress: Progress }
  /** Read again what is shown: at the beginning, and after something was missed. */
  | { kind: "read" };

type Listener = (news: JobNews[]) => void;

interface Feed {
  listeners: Set<Listener>;
  isReady: boolean;
  close: () => void;
}

const feeds = new Map<string, Feed>();
const connection = createStore<StreamState>("connecting");

/** How the newest stream stands. */
export function useConnection(): StreamState {
  return useStore(connection);
}

export function newsOf(event: ServerEvent): JobNews | null {
  switch (event.event) {
    case "ready":
    case "resync":
      return { kind: "read" };
    case "changed":
      return { kind: "changed", job: JSON.parse(event.data) as Job };
    case "removed":
      return {
        kind: "removed",
        ...(JSON.parse(event.data) as { name: string; namespace: string; uid: string }),
      };
    case "progress":
      return { kind: "progress", progress: JSON.parse(event.data) as Progress };
    default:
      return null;
  }
}

function listen(namespace: string, listener: Listener): () => void {
  const feed = feeds.get(namespace) ?? open(namespace);
  feed.listeners.add(listener);
  if (feed.isReady) listener([{ kind: "read" }]);
  return () => {
    feed.listeners.delete(listener);
    if (feed.listeners.size > 0) return;
    feed.close();
    feeds.delete(namespace);
  };
}

function open(namespace: string): Feed {
  const feed: Feed = { listeners: new Set(), isReady: false, close: () => {} };
  feeds.set(namespace, feed);
  feed.close = openStream(addressOf("/api/v1/namespaces/{namespace}/stream", { namespace }), {
    onState: (state) => connection.set(state),
    onRefused: () => {
      connection.set("open");
      for (const each of [...feed.listeners]) each([{ kind: "read" }]); // what is read says what is wrong
    },
    onEvents: (events) => {
      const news = events.map(newsOf).filter((each) => each !== null);
      if (news.some((each) => each.kind === "read")) feed.isReady = true;
      for (const each of [...feed.listeners]) each(news);
    },
  });
  return feed;
}

/** Calls `onNews` with what happens to the jobs of a namespace (`-`: of all). */
export function useJobNews(namespace: string, onNews: Listener): void {
  const latest = useRef(onNews);
  latest.current = onNews;
  useEffect(() => listen(namespace, (news) => latest.current(news)), [namespace]);
}
