import type { ReactNode } from "react";
import { Checkbox } from "react-aria-components";
import { cx } from "./cx";
import { SetsPath } from "./Field";
import { Icon } from "./Icon";
import styles from "./Tick.module.css";

interface TickProps {
  label: string;
  help?: ReactNode;
  sets?: string;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
  id?: string;
}

/** Yes or no. */
export function Tick({ label, help, sets, isOn, onChange, id }: TickProps) {
  return (
    <div className={styles.tick}>
      <Checkbox isSelected={isOn} onChange={onChange} className={cx(styles.control)} {...(id ? { id } : {})}>
        <span className={styles.box}>
          <Icon name="check" size={12} />
        </span>
        {label}
      </Checkbox>
      {sets && <SetsPath path={sets} />}
      {help && <span className={styles.help}>{help}</span>}
    </div>
  );
}
