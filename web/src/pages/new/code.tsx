/** The code and what runs of it. */
import { useState } from "react";
import { DropZone, FileTrigger } from "react-aria-components";
import { useFormats, useT } from "@/i18n/i18n";
import { Button } from "@/ui/Button";
import { Choice } from "@/ui/Choice";
import { CodeEditor } from "@/ui/CodeEditor";
import { cx } from "@/ui/cx";
import { Field, Select, SetsPath } from "@/ui/Field";
import { Icon } from "@/ui/Icon";
import { Card } from "@/ui/Layout";
import { Rows, TextInput, Tracked, useForm } from "./context";
import type { CodeKind, FileRow, RunKind } from "./form";
import styles from "./NewJobPage.module.css";
import { fieldId, problemAt } from "./places";
import { chosenFiles, droppedFiles, MOST_BYTES, merged, readFiles } from "./uploads";

export function CodeCard() {
  const t = useT();
  const { form, set, findings } = useForm();
  return (
    <Card title={t("newJob.sectionCode")}>
      <div className={styles.fields}>
        <Tracked keys={["codeKind"]}>
          <Choice
            id={fieldId("code")}
            label={t("newJob.codeKind")}
            help={t("newJob.codeKindHelp")}
            value={form.codeKind}
            options={[
              { value: "inline", label: t("newJob.codeInline") },
              { value: "files", label: t("newJob.codeFiles") },
              { value: "git", label: t("newJob.codeGit") },
              { value: "none", label: t("newJob.codeNone") },
            ]}
            onChange={(codeKind: CodeKind) => set({ codeKind })}
          />
        </Tracked>
        {form.codeKind === "inline" && (
          <Tracked keys={["inline"]}>
            <EditorField
              path="code.inline"
              label={t("newJob.inline")}
              sets="ConfigMap.data"
              value={form.inline}
              onChange={(inline) => set({ inline })}
              problem={problemAt(findings, "code.inline")}
            />
          </Tracked>
        )}
        {form.codeKind === "files" && (
          <Tracked keys={["files"]}>
            <Files />
          </Tracked>
        )}
        {form.codeKind === "git" && (
          <div className={styles.pair}>
            <TextInput
              of="gitUrl"
              path="code.git.url"
              also={["code.git"]}
              label={t("newJob.gitUrl")}
              help={t("newJob.gitUrlHelp")}
              sets="initContainers[git-clone].env[GIT_SYNC_REPO]"
              isMono
            />
            <TextInput
              of="gitBranch"
              path="code.git.branch"
              label={t("newJob.gitBranch")}
              help={t("newJob.gitBranchHelp")}
              sets="initContainers[git-clone].env[GIT_SYNC_BRANCH]"
              isMono
            />
          </div>
        )}
        {form.codeKind !== "none" && form.runKind === "script" && <Entrypoint />}
        <Tracked keys={["requirements"]}>
          <EditorField
            path="requirements"
            label={t("newJob.requirements")}
            help={t("newJob.requirementsHelp")}
            sets="initContainers[install-requirements]"
            language="text"
            isShort
            value={form.requirements}
            onChange={(requirements) => set({ requirements })}
            problem={problemAt(findings, "requirements")}
          />
        </Tracked>
      </div>
    </Card>
  );
}

interface EditorFieldProps {
  path: string;
  label: string;
  help?: string;
  sets?: string;
  value: string;
  language?: "python" | "shell" | "text";
  onChange: (value: string) => void;
  problem: string | undefined;
  isShort?: boolean;
}

function EditorField({ path, label, help, sets, problem, language = "python", ...rest }: EditorFieldProps) {
  const t = useT();
  return (
    <div className={styles.editorField}>
      <span className={styles.editorHead}>
        <span className={styles.label}>{label}</span>
        {sets && <SetsPath path={sets} />}
      </span>
      <CodeEditor id={fieldId(path)} label={label} language={language} problem={problem} {...rest} />
      <span className={styles.hint}>{[help, t("newJob.editorHelp")].filter(Boolean).join(" ")}</span>
      {problem && (
        <span className={styles.problem}>
          <Icon name="alert" size={14} /> {problem}
        </span>
      )}
    </div>
  );
}

function Entrypoint() {
  const t = useT();
  const { form, set, findings } = useForm();
  const words = {
    label: t("newJob.entrypoint"),
    help: t("newJob.entrypointHelp"),
    sets: "spec.trainer.command",
  };
  if (form.codeKind !== "files" || form.files.length === 0) {
    return <TextInput of="entrypoint" path="code.entrypoint" {...words} isMono />;
  }
  const paths = form.files.map((each) => each.path);
  const options = paths.includes(form.entrypoint) ? paths : [form.entrypoint, ...paths];
  return (
    <Tracked keys={["entrypoint"]}>
      <Select
        {...words}
        id={fieldId("code.entrypoint")}
        value={form.entrypoint}
        options={options.map((each) => ({ value: each, label: each }))}
        onChange={(entrypoint) => set({ entrypoint })}
        problem={problemAt(findings, "code.entrypoint")}
      />
    </Tracked>
  );
}

function Files() {
  const t = useT();
  const { bytes } = useFormats();
  const { form, set, findings } = useForm();
  const [refused, setRefused] = useState<string[]>([]);
  const [edited, setEdited] = useState<number | null>(null);
  const take = async (chosen: { path: string; file: File }[]) => {
    const upload = await readFiles(chosen);
    setRefused(upload.refused);
    if (upload.files.length === 0) return;
    const files = merged(form.files, upload.files);
    const scripts = files.filter((each) => each.path.endsWith(".py"));
    const isKnown = files.some((each) => each.path === form.entrypoint);
    set({ files, ...(!isKnown && scripts[0] ? { entrypoint: scripts[0].path } : {}) });
    setEdited(null);
  };
  const change = (index: number, changes: Partial<FileRow>) =>
    set({ files: form.files.map((each, place) => (place === index ? { ...each, ...changes } : each)) });
  const used = form.files.reduce((sum, each) => sum + new Blob([each.text]).size, 0);
  const problem = problemAt(findings, "code.files");
  const open = edited === null ? undefined : form.files[edited];
  return (
    <div className={styles.fields}>
      <DropZone
        className={cx(styles.drop)}
        aria-label={t("newJob.codeFiles")}
        onDrop={async (event) => take(await droppedFiles([...event.items]))}
      >
        <Icon name="upload" />
        <span>{t("newJob.drop")}</span>
        <FileTrigger allowsMultiple onSelect={(list) => void take(chosenFiles([...(list ?? [])]))}>
          <Button isSmall id={fieldId("code.files")}>
            {t("newJob.choose")}
          </Button>
        </FileTrigger>
        <span className={styles.hint}>{t("newJob.filesLimit", { size: bytes(MOST_BYTES) })}</span>
      </DropZone>
      {refused.length > 0 && (
        <p className={styles.problem} role="alert">
          <Icon name="alert" size={14} /> {t("newJob.refusedFiles", { names: refused.join(", ") })}
        </p>
      )}
      {problem && (
        <p className={styles.problem}>
          <Icon name="alert" size={14} /> {problem}
        </p>
      )}
      {form.files.length > 0 && (
        <>
          <ul className={styles.files}>
            {form.files.map((each, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a path may be typed twice on the way to another one
              <li key={index} className={cx(index === edited && styles.openFile)}>
                <Field
                  id={fieldId(`code.files.${each.path}`)}
                  label={t("newJob.filePath")}
                  value={each.path}
                  onChange={(path) => change(index, { path })}
                  isMono
                />
                <span className={styles.size}>{bytes(new Blob([each.text]).size)}</span>
                <Button isSmall onPress={() => setEdited(index === edited ? null : index)}>
                  {t("newJob.fileEdit", { path: each.path })}
                </Button>
                <Button
                  isSmall
                  isIconOnly
                  look="quiet"
                  icon="trash"
                  onPress={() => {
                    set({ files: form.files.filter((_, place) => place !== index) });
                    setEdited(null);
                  }}
                >
                  {t("newJob.fileRemove", { path: each.path })}
                </Button>
              </li>
            ))}
          </ul>
          <p className={styles.hint}>
            {t("newJob.filesUsed", { used: bytes(used), size: bytes(MOST_BYTES) })}
          </p>
        </>
      )}
      {open && edited !== null && (
        <EditorField
          key={edited}
          path={`code.files[${edited}]`}
          label={t("newJob.fileEditing", { path: open.path })}
          value={open.text}
          language={open.path.endsWith(".py") ? "python" : open.path.endsWith(".sh") ? "shell" : "text"}
          onChange={(text) => change(edited, { text })}
          problem={undefined}
        />
      )}
    </div>
  );
}

export function RunCard() {
  const t = useT();
  const { form, set, findings } = useForm();
  return (
    <Card title={t("newJob.sectionRun")}>
      <div className={styles.fields}>
        <Tracked keys={["runKind"]}>
          <Choice
            id={fieldId("run")}
            label={t("newJob.runKind")}
            help={t("newJob.runKindHelp")}
            sets="spec.trainer.command"
            value={form.runKind}
            options={[
              { value: "script", label: t("newJob.runScript") },
              { value: "command", label: t("newJob.runCommand") },
              { value: "argv", label: t("newJob.runArgv") },
            ]}
            onChange={(runKind: RunKind) => set({ runKind })}
            {...(form.runKind === "command" ? {} : { problem: problemAt(findings, "command") })}
          />
        </Tracked>
        {form.runKind === "command" && (
          <Tracked keys={["command"]}>
            <EditorField
              path="command"
              label={t("newJob.command")}
              help={t("newJob.commandHelp")}
              sets="spec.trainer.command[2]"
              language="shell"
              isShort
              value={form.command}
              onChange={(command) => set({ command })}
              problem={problemAt(findings, "command")}
            />
          </Tracked>
        )}
        {form.runKind !== "command" && <Words of={form.runKind === "argv" ? "argv" : "args"} />}
      </div>
    </Card>
  );
}

function Words({ of }: { of: "args" | "argv" }) {
  const t = useT();
  const { form, set, findings } = useForm();
  return (
    <Tracked keys={[of]}>
      <fieldset className={styles.group}>
        <legend>
          {of === "argv" ? t("newJob.argv") : t("newJob.args")} <SetsPath path="spec.trainer.command[3…]" />
        </legend>
        <p className={styles.hint}>{of === "argv" ? t("newJob.argvHelp") : t("newJob.argsHelp")}</p>
        <Rows
          path={of}
          rows={form[of].map((value) => ({ value }))}
          onChange={(rows) => set({ [of]: rows.map((each) => each.value) })}
          empty={{ value: "" }}
          add={t("newJob.addArgument")}
          remove={(number) => t("newJob.removeArgument", { number })}
        >
          {(row, change, index) => (
            <Field
              id={fieldId(`${of}[${index}]`)}
              label={t("newJob.argument", { number: index + 1 })}
              value={row.value}
              onChange={(value) => change({ value })}
              problem={problemAt(findings, `${of}[${index}]`)}
              isMono
              isGrowing
            />
          )}
        </Rows>
      </fieldset>
    </Tracked>
  );
}
