/** The form, for its fields: value, change, what is wrong, and what differs from the job that is cloned. */
import { createContext, type ReactNode, useContext } from "react";
import type { components } from "@/api/schema";
import { useT } from "@/i18n/i18n";
import { Button } from "@/ui/Button";
import { Field, type FieldWords } from "@/ui/Field";
import { Icon } from "@/ui/Icon";
import type { Finding } from "@/ui/ProblemList";
import type { Form, FormKey } from "./form";
import styles from "./NewJobPage.module.css";
import { fieldId, problemAt } from "./places";

export type Offers = components["schemas"]["Offers"];

export interface FormContext {
  /** Where the job will be. */
  namespace: string;
  form: Form;
  set: (changes: Partial<Form>) => void;
  findings: readonly Finding[];
  offers: Offers;
  /** Fields that differ from the original; empty where nothing is cloned. */
  changed: ReadonlySet<FormKey>;
  reset: (keys: readonly FormKey[]) => void;
  /** What a reset goes back to. */
  beginning: Form;
  /** The form was sent, and refused. */
  hasTried: boolean;
}

const Context = createContext<FormContext | null>(null);
export const FormProvider = Context.Provider;

export function useForm(): FormContext {
  const found = useContext(Context);
  if (!found) throw new Error("a field stands outside of the form");
  return found;
}

/** For fields of rows: one that is still empty is not blamed before the form is sent; the list has it all the same. */
export function useRowProblem(): (value: string, ...paths: string[]) => string | undefined {
  const { findings, hasTried } = useForm();
  return (value, ...paths) => (value === "" && !hasTried ? undefined : problemAt(findings, ...paths));
}

/** A field, marked where it differs from the original, with the way back. */
export function Tracked({ keys, children }: { keys: readonly FormKey[]; children: ReactNode }) {
  const t = useT();
  const { changed, reset, beginning } = useForm();
  if (!keys.some((key) => changed.has(key))) return <div className={styles.tracked}>{children}</div>;
  const before = keys.length === 1 && keys[0] ? shortly(beginning[keys[0]]) : null;
  return (
    <div className={`${styles.tracked} ${styles.changed}`}>
      {children}
      <div className={styles.mark}>
        <Icon name="alert" size={13} />
        <span className={styles.before}>
          {before === null ? t("newJob.changed") : t("newJob.changedFrom", { before })}
        </span>
        <Button isSmall look="quiet" onPress={() => reset(keys)}>
          {t("newJob.reset")}
        </Button>
      </div>
    </div>
  );
}

/** What was there, where one glance tells it. */
function shortly(value: Form[FormKey]): string | null {
  const isShort = typeof value === "string" && value !== "" && value.length <= 60 && !value.includes("\n");
  return isShort ? value : null;
}

type TextKey = { [K in FormKey]: Form[K] extends string ? K : never }[FormKey];

interface TextInputProps extends Pick<FieldWords, "label" | "help" | "sets"> {
  of: TextKey;
  /** In the request. */
  path: string;
  /** Problems of these places are shown here, too. */
  also?: readonly string[];
  placeholder?: string;
  isMono?: boolean;
}

/** One text of the form with everything around it. */
export function TextInput({ of, path, also = [], ...words }: TextInputProps) {
  const { form, set, findings } = useForm();
  return (
    <Tracked keys={[of]}>
      <Field
        {...words}
        id={fieldId(path)}
        value={form[of]}
        onChange={(value) => set({ [of]: value })}
        problem={problemAt(findings, path, ...also)}
      />
    </Tracked>
  );
}

interface RowsProps<T> {
  /** Where problems of the whole list jump to. */
  path: string;
  rows: readonly T[];
  onChange: (rows: T[]) => void;
  empty: T;
  add: string;
  remove: (number: number) => string;
  children: (row: T, change: (changes: Partial<T>) => void, index: number) => ReactNode;
}

/** A list that grows and shrinks; each row has its own way out. */
export function Rows<T extends object>({ path, rows, onChange, empty, add, remove, children }: RowsProps<T>) {
  return (
    <div className={styles.rows}>
      {rows.map((row, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no name of their own, and are controlled
        <div key={index} className={styles.row}>
          <div className={styles.rowFields}>
            {children(
              row,
              (changes) =>
                onChange(rows.map((each, place) => (place === index ? { ...each, ...changes } : each))),
              index,
            )}
          </div>
          <Button
            isSmall
            isIconOnly
            look="quiet"
            icon="trash"
            onPress={() => onChange(rows.filter((_, place) => place !== index))}
          >
            {remove(index + 1)}
          </Button>
        </div>
      ))}
      <div>
        <Button isSmall icon="plus" id={fieldId(path)} onPress={() => onChange([...rows, empty])}>
          {add}
        </Button>
      </div>
    </div>
  );
}
