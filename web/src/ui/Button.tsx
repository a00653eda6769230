import {
  Button as AriaButton,
  Link as AriaLink,
  type ButtonProps,
  type LinkProps,
} from "react-aria-components";
import styles from "./Button.module.css";
import { Icon, type IconName } from "./Icon";

type Look = "primary" | "plain" | "quiet" | "danger";
interface Own {
  look?: Look;
  icon?: IconName;
  /** Only the icon is seen; the words are still read aloud. */
  isIconOnly?: boolean;
  isSmall?: boolean;
  children: string;
}

function classOf({ look = "plain", isIconOnly, isSmall }: Own): string {
  return [styles.button, styles[look], isIconOnly && styles.iconOnly, isSmall && styles.small]
    .filter(Boolean)
    .join(" ");
}

function Content({ icon, isIconOnly, children }: Own) {
  return (
    <>
      {icon && <Icon name={icon} />}
      <span className={isIconOnly ? "visually-hidden" : undefined}>{children}</span>
    </>
  );
}

export function Button({
  look,
  icon,
  isIconOnly,
  isSmall,
  children,
  ...rest
}: Own & Omit<ButtonProps, "children" | "className">) {
  const own = { look, icon, isIconOnly, isSmall, children } as Own;
  return (
    <AriaButton {...rest} className={classOf(own)}>
      <Content {...own} />
    </AriaButton>
  );
}

/** Goes to another address of the page, and looks like a button. */
export function ButtonLink({
  look,
  icon,
  isIconOnly,
  isSmall,
  children,
  ...rest
}: Own & Omit<LinkProps, "children" | "className">) {
  const own = { look, icon, isIconOnly, isSmall, children } as Own;
  return (
    <AriaLink {...rest} className={classOf(own)}>
      <Content {...own} />
    </AriaLink>
  );
}
