import { Button as AriaButton, Menu, MenuItem, MenuTrigger, Popover } from "react-aria-components";
import { LANGUAGES, setLanguage, useLanguage, useT } from "@/i18n/i18n";
import type { Language } from "@/i18n/types";
import { setTheme, type Theme, useTheme } from "@/session/theme";
import { cx } from "@/ui/cx";
import fields from "@/ui/fields.module.css";
import { Icon, type IconName } from "@/ui/Icon";
import styles from "./Shell.module.css";

/** Language and colours: also for who is not signed in. */
export function Preferences() {
  const t = useT();
  const language = useLanguage();
  const theme = useTheme();
  const themes: Record<Theme, string> = {
    system: t("common.themeSystem"),
    light: t("common.themeLight"),
    dark: t("common.themeDark"),
  };
  return (
    <div className={styles.preferences}>
      <Choice<Language>
        icon="globe"
        label={t("common.language")}
        value={language}
        options={LANGUAGES}
        onChange={setLanguage}
      />
      <Choice<Theme>
        icon={theme === "dark" ? "moon" : "sun"}
        label={t("common.theme")}
        value={theme}
        options={themes}
        onChange={setTheme}
      />
    </div>
  );
}

interface ChoiceProps<V extends string> {
  icon: IconName;
  label: string;
  value: V;
  options: Record<V, string>;
  onChange: (value: V) => void;
}

function Choice<V extends string>({ icon, label, value, options, onChange }: ChoiceProps<V>) {
  return (
    <MenuTrigger>
      <AriaButton className={cx(styles.iconButton)} aria-label={`${label}: ${options[value]}`}>
        <Icon name={icon} />
      </AriaButton>
      <Popover className={cx(fields.popover)} placement="bottom end">
        <Menu
          className={cx(fields.options)}
          aria-label={label}
          selectionMode="single"
          selectedKeys={[value]}
          onAction={(key) => onChange(String(key) as V)}
        >
          {Object.entries<string>(options).map(([key, text]) => (
            <MenuItem key={key} id={key} textValue={text} className={cx(fields.option)}>
              <Icon name="check" size={14} />
              <span>{text}</span>
            </MenuItem>
          ))}
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}
