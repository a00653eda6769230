import { admin } from "./admin";
import { common } from "./common";
import { job } from "./job";
import { jobs } from "./jobs";
import { newJob } from "./new";
import { nodes } from "./nodes";
import { phase } from "./phase";
import { runtimes } from "./runtimes";
import { signIn } from "./sign-in";

export const en = { admin, common, job, jobs, newJob, nodes, phase, runtimes, signIn };
