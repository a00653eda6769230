import { ToggleButton } from "react-aria-components";
import styles from "./Button.module.css";
import { cx } from "./cx";
import { Icon, type IconName } from "./Icon";

interface ToggleProps {
  isOn: boolean;
  onChange: (isOn: boolean) => void;
  icon?: IconName;
  children: string;
  /** Said when pointed at, where the word alone is short. */
  title?: string;
}

/** A choice of on and off, told by a mark and not by colour alone. */
export function Toggle({ isOn, onChange, icon, children, title }: ToggleProps) {
  return (
    <ToggleButton
      isSelected={isOn}
      onChange={onChange}
      className={cx(styles.button, styles.small, styles.toggle)}
      {...(title ? { "aria-label": title } : {})}
    >
      <Icon name={isOn ? "check" : (icon ?? "circle")} size={13} />
      <span>{children}</span>
    </ToggleButton>
  );
}
