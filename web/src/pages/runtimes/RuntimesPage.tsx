import { Link } from "react-aria-components";
import { api } from "@/api/client";
import type { components } from "@/api/schema";
import { useLoad } from "@/api/useLoad";
import { useFormats, useT } from "@/i18n/i18n";
import { to } from "@/router/router";
import type { PageProps } from "@/routes";
import { ButtonLink } from "@/ui/Button";
import { CopyButton } from "@/ui/CopyButton";
import { Card, EmptyState, Loading, PageHeader } from "@/ui/Layout";
import { ProblemNote } from "@/ui/ProblemList";
import { toYaml } from "@/yaml/yaml";
import { type Container, factsOf, type Pod } from "./facts";
import styles from "./RuntimesPage.module.css";

type Runtime = components["schemas"]["RuntimeBody"];

export default function RuntimesPage({ parameters }: PageProps) {
  return parameters.name ? <OneRuntime name={parameters.name} /> : <Catalogue />;
}

function Catalogue() {
  const t = useT();
  const { data, problem, reload } = useLoad("runtimes", (signal) => api.get("/api/v1/runtimes", { signal }));
  return (
    <>
      <PageHeader title={t("runtimes.title")} />
      <p className={styles.lead}>{t("runtimes.lead")}</p>
      {problem && <ProblemNote problem={problem} onRetry={reload} />}
      {!data && !problem && <Loading />}
      {data?.items.length === 0 && <EmptyState icon="runtime" title={t("runtimes.empty")} />}
      <ul className={styles.list}>
        {data?.items.map((each) => (
          <li key={each.name}>
            <Entry runtime={each} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Entry({ runtime }: { runtime: Runtime }) {
  const t = useT();
  const { number } = useFormats();
  return (
    <article className={styles.entry}>
      <h2>
        <Link href={to.runtime(runtime.name)}>{runtime.name}</Link>
      </h2>
      <p>
        <Prose text={runtime.summary} />
      </p>
      <dl className={styles.facts}>
        <dt>{t("runtimes.framework")}</dt>
        <dd>{runtime.framework || t("runtimes.none")}</dd>
        <dt>{t("runtimes.nodes")}</dt>
        <dd>{number(runtime.nodes)}</dd>
        <dt>{t("runtimes.image")}</dt>
        <dd>
          <code>{runtime.image || t("runtimes.none")}</code>
        </dd>
      </dl>
    </article>
  );
}

function OneRuntime({ name }: { name: string }) {
  const t = useT();
  const { data, problem, reload } = useLoad(`runtime ${name}`, (signal) =>
    api.get("/api/v1/runtimes/{name}", { path: { name }, signal }),
  );
  const actions = (
    <>
      <ButtonLink href={to.runtimes()}>{t("runtimes.all")}</ButtonLink>
      {data && (
        <ButtonLink look="primary" icon="plus" href={to.newJob({ runtime: name })}>
          {t("runtimes.use")}
        </ButtonLink>
      )}
    </>
  );
  return (
    <>
      <PageHeader title={name} actions={actions} />
      {problem && <ProblemNote problem={problem} onRetry={reload} />}
      {!data && !problem && <Loading />}
      {data && <Details runtime={data} manifest={data.manifest} />}
    </>
  );
}

function Details({ runtime, manifest }: { runtime: Runtime; manifest: unknown }) {
  const t = useT();
  const { number } = useFormats();
  const facts = factsOf(manifest);
  const yaml = toYaml(manifest);
  return (
    <div className={styles.details}>
      <p className={styles.lead}>
        <Prose text={runtime.about} />
      </p>
      <Card title={t("runtimes.whole")}>
        <dl className={styles.facts}>
          <dt>{t("runtimes.framework")}</dt>
          <dd>{runtime.framework || t("runtimes.none")}</dd>
          <dt>{t("runtimes.nodes")}</dt>
          <dd>{t("runtimes.nodesUnlessTold", { nodes: number(facts.nodes) })}</dd>
          <dt>{t("runtimes.policy")}</dt>
          <dd>
            {facts.policy ? <code>{facts.policy}</code> : t("runtimes.noPolicy")}
            <Pairs pairs={facts.policySettings} />
          </dd>
          <dt>{t("runtimes.restart")}</dt>
          <dd>
            {facts.maxRestarts > 0
              ? t.plural("runtimes.restarts", facts.maxRestarts)
              : t("runtimes.noRestart")}
            {facts.restartStrategy && (
              <>
                {" "}
                <code>{facts.restartStrategy}</code>
              </>
            )}
          </dd>
          {facts.successOf.length > 0 && (
            <>
              <dt>{t("runtimes.success")}</dt>
              <dd>{t("runtimes.successOf", { name: facts.successOf.join(", ") })}</dd>
            </>
          )}
        </dl>
      </Card>
      {facts.pods.map((pod) => (
        <PodCard key={pod.name} pod={pod} />
      ))}
      <Card>
        <details className={styles.yaml}>
          <summary>{t("runtimes.manifest")}</summary>
          <div className={styles.copy}>
            <CopyButton text={yaml} />
          </div>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls must be reached by keys */}
          <pre tabIndex={0}>{yaml}</pre>
        </details>
      </Card>
    </div>
  );
}

function PodCard({ pod }: { pod: Pod }) {
  const t = useT();
  const { duration } = useFormats();
  return (
    <Card title={t("runtimes.pod", { name: pod.name })}>
      <dl className={styles.facts}>
        {pod.waitsFor.length > 0 && (
          <>
            <dt>{t("runtimes.waitsFor")}</dt>
            <dd>{pod.waitsFor.join(", ")}</dd>
          </>
        )}
        {pod.init.map((each) => (
          <ContainerFacts key={each.name} label={t("runtimes.init", { name: each.name })} container={each} />
        ))}
        {pod.containers.map((each) => (
          <ContainerFacts
            key={each.name}
            label={t("runtimes.container", { name: each.name })}
            container={each}
          />
        ))}
        <dt>{t("runtimes.volumes")}</dt>
        <dd>
          {pod.volumes.length === 0 && t("runtimes.none")}
          <ul className={styles.plain}>
            {pod.volumes.map((each) => (
              <li key={each.name}>
                <code>{each.name}</code> {each.kind}
              </li>
            ))}
          </ul>
        </dd>
        <dt>{t("runtimes.ttl")}</dt>
        <dd>
          {pod.ttlSeconds === null
            ? t("runtimes.noTtl")
            : t("runtimes.ttlAfter", { time: duration(pod.ttlSeconds) })}
        </dd>
      </dl>
    </Card>
  );
}

function ContainerFacts({ label, container }: { label: string; container: Container }) {
  const t = useT();
  return (
    <>
      <dt>{label}</dt>
      <dd className={styles.container}>
        <div>
          <span className={styles.term}>{t("runtimes.image")}</span>
          <code>{container.image || t("runtimes.none")}</code>
        </div>
        <div>
          <span className={styles.term}>{t("runtimes.command")}</span>
          {container.command ? <code>{container.command}</code> : <span>{t("runtimes.ofTheJob")}</span>}
        </div>
        <div>
          <span className={styles.term}>{t("runtimes.env")}</span>
          {container.env.length > 0 ? <Pairs pairs={container.env} /> : <span>{t("runtimes.none")}</span>}
        </div>
        {container.mounts.length > 0 && (
          <div>
            <span className={styles.term}>{t("runtimes.mounts")}</span>
            <ul className={styles.plain}>
              {container.mounts.map((each) => (
                <li key={each.path}>
                  <code>{each.path}</code> {each.name}
                  {each.isReadOnly && ` (${t("runtimes.readOnly")})`}
                </li>
              ))}
            </ul>
          </div>
        )}
      </dd>
    </>
  );
}

function Pairs({ pairs }: { pairs: readonly { name: string; value: string }[] }) {
  if (pairs.length === 0) return null;
  return (
    <ul className={styles.plain}>
      {pairs.map((each) => (
        <li key={each.name}>
          <code>
            {each.name}={each.value}
          </code>
        </li>
      ))}
    </ul>
  );
}

/** Names in backticks, as comments of a manifest have them, become code. */
function Prose({ text }: { text: string }) {
  return text.split("`").map((part, index) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text that never changes
    index % 2 === 1 ? <code key={index}>{part}</code> : part,
  );
}
