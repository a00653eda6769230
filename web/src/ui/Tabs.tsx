import type { ReactNode } from "react";
import { Tabs as AriaTabs, Tab, TabList, TabPanel } from "react-aria-components";
import { useQuery } from "@/router/router";
import { cx } from "./cx";
import styles from "./Tabs.module.css";

export interface TabItem {
  id: string;
  label: string;
  /** Made when the tab is shown, and not before. */
  content: () => ReactNode;
}

/** Tabs whose choice is part of the address (`?tab=logs`), so that each can be linked. The first is the default. */
export function UrlTabs({
  label,
  items,
  parameter = "tab",
}: {
  label: string;
  items: TabItem[];
  parameter?: string;
}) {
  const [wanted, setWanted] = useQuery(parameter);
  const first = items[0]?.id ?? "";
  const selected = items.some((each) => each.id === wanted) ? wanted : first;
  return (
    <AriaTabs
      selectedKey={selected}
      onSelectionChange={(key) => setWanted(key === first ? null : String(key), { push: true })}
      className={cx(styles.tabs)}
    >
      <TabList aria-label={label} className={cx(styles.list)}>
        {items.map((each) => (
          <Tab key={each.id} id={each.id} className={cx(styles.tab)}>
            {each.label}
          </Tab>
        ))}
      </TabList>
      {items.map((each) => (
        <TabPanel key={each.id} id={each.id} className={cx(styles.panel)}>
          {each.content()}
        </TabPanel>
      ))}
    </AriaTabs>
  );
}
