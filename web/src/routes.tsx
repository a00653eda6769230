/** Every page and its address. The server knows the first words of them: VIEWS in server/page.py. */
import { type ComponentType, lazy } from "react";
import { JobsPage } from "@/pages/jobs/JobsPage";

export interface PageProps {
  /** The named parts of the address. */
  parameters: Record<string, string>;
}

interface Route {
  path: string;
  page: ComponentType<PageProps>;
}

// Jobs is the first page for nearly everybody; the others come when they are opened.
const JobPage = lazy(() => import("@/pages/job/JobPage"));
const NewJobPage = lazy(() => import("@/pages/new/NewJobPage"));
const NodesPage = lazy(() => import("@/pages/nodes/NodesPage"));
const RuntimesPage = lazy(() => import("@/pages/runtimes/RuntimesPage"));
const AdminPage = lazy(() => import("@/pages/admin/AdminPage"));

export const ROUTES: readonly Route[] = [
  { path: "/", page: JobsPage },
  { path: "/jobs", page: JobsPage },
  { path: "/jobs/:namespace/:name", page: JobPage },
  { path: "/new", page: NewJobPage },
  { path: "/nodes", page: NodesPage },
  { path: "/runtimes", page: RuntimesPage },
  { path: "/runtimes/:name", page: RuntimesPage },
  { path: "/admin", page: AdminPage },
  { path: "/admin/:section", page: AdminPage },
];
