import { Label, Radio, RadioGroup } from "react-aria-components";
import styles from "./Choice.module.css";
import { cx } from "./cx";
import { FieldFoot, type FieldWords, type Option, SetsPath } from "./Field";
import fields from "./fields.module.css";

interface ChoiceProps<V extends string> extends FieldWords {
  value: V;
  options: readonly Option<V>[];
  onChange: (value: V) => void;
  /** Where a problem of this path jumps to; see `ProblemList`. */
  id?: string;
}

/** One of a few, all of them seen at once. */
export function Choice<V extends string>({ value, options, onChange, id, ...words }: ChoiceProps<V>) {
  const { label, help, sets, problem } = words;
  return (
    <RadioGroup
      value={value}
      onChange={(next) => onChange(next as V)}
      orientation="horizontal"
      isInvalid={Boolean(problem)}
      validationBehavior="aria"
      className={cx(fields.field)}
      {...(id ? { id } : {})}
    >
      <span className={fields.head}>
        <Label className={cx(fields.label)}>{label}</Label>
        {sets && <SetsPath path={sets} />}
      </span>
      <div className={styles.options}>
        {options.map((each) => (
          <Radio key={each.value} value={each.value} className={cx(styles.option)}>
            {each.label}
          </Radio>
        ))}
      </div>
      <FieldFoot help={help} problem={problem} />
    </RadioGroup>
  );
}
