import type { ReactNode } from "react";
import {
  Button as AriaButton,
  SearchField as AriaSearchField,
  Select as AriaSelect,
  Input,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
  SelectValue,
  Text,
  TextArea,
  TextField,
} from "react-aria-components";
import { useT } from "@/i18n/i18n";
import { cx } from "./cx";
import styles from "./fields.module.css";
import { Icon } from "./Icon";

/** What every field says of itself. */
export interface FieldWords {
  label: string;
  help?: ReactNode;
  /** The field of Kubernetes that this value becomes, as `spec.trainer.numNodes`. */
  sets?: string;
  /** What is wrong with the value; the border alone would not tell. */
  problem?: string | undefined;
  isRequired?: boolean;
}

export function FieldHead({ label, sets, isRequired }: FieldWords) {
  const t = useT();
  return (
    <span className={styles.head}>
      <Label className={styles.label}>
        {label}
        {isRequired && <span className={styles.required}> ({t("common.required")})</span>}
      </Label>
      {sets && <SetsPath path={sets} />}
    </span>
  );
}

export function SetsPath({ path }: { path: string }) {
  const t = useT();
  return <span className={styles.sets}>{t("common.sets", { path })}</span>;
}

export function FieldFoot({ help, problem }: Pick<FieldWords, "help" | "problem">) {
  return (
    <>
      {help && (
        <Text slot="description" className={styles.help}>
          {help}
        </Text>
      )}
      {problem && (
        <Text slot="errorMessage" className={styles.problem}>
          <Icon name="alert" size={14} /> <span>{problem}</span>
        </Text>
      )}
    </>
  );
}

interface TextProps extends FieldWords {
  value: string;
  onChange: (value: string) => void;
  onBlur?: () => void;
  placeholder?: string;
  isMono?: boolean;
  isMultiline?: boolean;
  /** One line that grows with its text: for values that may hold several lines, and mostly do not. */
  isGrowing?: boolean;
  isDisabled?: boolean;
  autoFocus?: boolean;
  autoComplete?: string;
  type?: "text" | "password" | "url";
  /** Where a problem of this path jumps to; see `ProblemList`. */
  id?: string;
}

export function Field({ placeholder, isMono, isMultiline, isGrowing, id, ...props }: TextProps) {
  const { label, help, sets, problem, isRequired, autoFocus = false, ...rest } = props;
  const className = [styles.input, isMono && styles.mono, isGrowing && styles.growing]
    .filter(Boolean)
    .join(" ");
  const shared = {
    className,
    spellCheck: false,
    ...(placeholder ? { placeholder } : {}),
    ...(id ? { id } : {}),
  };
  return (
    <TextField
      {...rest}
      autoFocus={autoFocus}
      isRequired={isRequired ?? false}
      isInvalid={Boolean(problem)}
      validationBehavior="aria"
      className={cx(styles.field)}
    >
      <FieldHead label={label} {...(sets ? { sets } : {})} isRequired={isRequired ?? false} />
      {isGrowing ? (
        <TextArea {...shared} rows={1} />
      ) : isMultiline ? (
        <TextArea {...shared} />
      ) : (
        <Input {...shared} />
      )}
      <FieldFoot help={help} problem={problem} />
    </TextField>
  );
}

export interface Option<V extends string = string> {
  value: V;
  label: string;
}

interface SelectProps<V extends string> extends FieldWords {
  value: V;
  options: readonly Option<V>[];
  onChange: (value: V) => void;
  /** The label is read aloud, and not seen. */
  isLabelHidden?: boolean;
  isDisabled?: boolean;
  id?: string;
}

export function Select<V extends string>({
  value,
  options,
  onChange,
  isLabelHidden,
  ...props
}: SelectProps<V>) {
  const { label, help, sets, problem, isRequired, isDisabled = false, id } = props;
  return (
    <AriaSelect
      {...(isLabelHidden ? { "aria-label": label } : {})}
      selectedKey={value}
      onSelectionChange={(key) => onChange(String(key) as V)}
      isDisabled={isDisabled}
      isInvalid={Boolean(problem)}
      validationBehavior="aria"
      className={cx(styles.field)}
    >
      {!isLabelHidden && (
        <FieldHead label={label} {...(sets ? { sets } : {})} isRequired={isRequired ?? false} />
      )}
      <AriaButton className={cx(styles.trigger)} {...(id ? { id } : {})}>
        <SelectValue className={cx(styles.value)} />
        <Icon name="chevron" />
      </AriaButton>
      <FieldFoot help={help} problem={problem} />
      <Popover className={cx(styles.popover)}>
        <ListBox className={cx(styles.options)} items={options.map((each) => ({ id: each.value, ...each }))}>
          {(each) => (
            <ListBoxItem id={each.value} textValue={each.label} className={cx(styles.option)}>
              <Icon name="check" size={14} />
              <span>{each.label}</span>
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </AriaSelect>
  );
}

interface SearchProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  id?: string;
}

export function SearchField({ label, value, onChange, id }: SearchProps) {
  return (
    <AriaSearchField aria-label={label} value={value} onChange={onChange} className={cx(styles.search)}>
      <Icon name="search" />
      <Input className={cx(styles.input)} placeholder={label} spellCheck={false} {...(id ? { id } : {})} />
      <AriaButton className={cx(styles.clear)}>
        <Icon name="close" size={14} />
      </AriaButton>
    </AriaSearchField>
  );
}
