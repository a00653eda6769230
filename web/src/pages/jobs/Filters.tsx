import { useT } from "@/i18n/i18n";
import type { Filter } from "@/live/jobList";
import { setQuery } from "@/router/router";
import { useWho } from "@/session/session";
import { Button } from "@/ui/Button";
import { type Option, SearchField, Select } from "@/ui/Field";
import { ACTIVE, FRAMEWORKS, isFiltered, NO_FILTER, PHASES } from "./filters";
import styles from "./JobsPage.module.css";

export const SEARCH = "search-jobs";

export function Filters({ filter }: { filter: Filter }) {
  const t = useT();
  const who = useWho();
  const phases = filter.phases.join(",");
  const states: Option[] = [
    { value: "any", label: t("jobs.anyPhase") },
    { value: ACTIVE, label: t("jobs.active") },
    ...PHASES.map((phase) => ({ value: phase, label: t(`phase.${phase}`) })),
  ];
  // A link may name any set of states; then the field says which.
  if (phases && !states.some((each) => each.value === phases))
    states.push({ value: phases, label: filter.phases.map((each) => t(`phase.${each}`)).join(", ") });
  const owners: Option[] = [
    { value: "any", label: t("jobs.anyOwner") },
    { value: who.name, label: t("jobs.mine") },
  ];
  if (filter.owner && filter.owner !== who.name) owners.push({ value: filter.owner, label: filter.owner });
  const frameworks: Option[] = [
    { value: "any", label: t("jobs.anyFramework") },
    ...Object.entries(FRAMEWORKS).map(([value, label]) => ({ value, label })),
  ];
  const choose = (name: string) => (value: string) => setQuery({ [name]: value === "any" ? null : value });
  return (
    <search className={styles.filters}>
      <div className={styles.search}>
        <SearchField
          id={SEARCH}
          label={t("jobs.search")}
          value={filter.q}
          onChange={(q) => setQuery({ q })}
        />
      </div>
      <div className={styles.choice}>
        <Select
          isLabelHidden
          label={t("jobs.phaseFilter")}
          value={phases || "any"}
          options={states}
          onChange={choose("phase")}
        />
      </div>
      <div className={styles.choice}>
        <Select
          isLabelHidden
          label={t("jobs.frameworkFilter")}
          value={filter.framework || "any"}
          options={frameworks}
          onChange={choose("framework")}
        />
      </div>
      <div className={styles.choice}>
        <Select
          isLabelHidden
          label={t("jobs.ownerFilter")}
          value={filter.owner || "any"}
          options={owners}
          onChange={choose("owner")}
        />
      </div>
      {isFiltered(filter) && (
        <Button look="quiet" icon="close" onPress={() => setQuery(NO_FILTER)}>
          {t("jobs.clearFilter")}
        </Button>
      )}
    </search>
  );
}
