import { useT } from "@/i18n/i18n";
import { Dialog } from "@/ui/Dialog";
import { Tick } from "@/ui/Tick";
import styles from "./JobsPage.module.css";
import { useKeysOn } from "./useKeys";

export function KeysHelp({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const t = useT();
  const [isOn, setIsOn] = useKeysOn();
  const keys: [string[], string][] = [
    [["j", "k"], t("jobs.keyMove")],
    [["Enter"], t("jobs.keyOpen")],
    [["x"], t("jobs.keySelect")],
    [["/"], t("jobs.keySearch")],
    [["Esc"], t("jobs.keyClear")],
    [["?"], t("jobs.keyHelp")],
  ];
  return (
    <Dialog title={t("jobs.keys")} isOpen={isOpen} onClose={onClose}>
      <dl className={styles.keys}>
        {keys.map(([names, means]) => (
          <div key={means}>
            <dt>
              {names.map((name) => (
                <kbd key={name}>{name}</kbd>
              ))}
            </dt>
            <dd>{means}</dd>
          </div>
        ))}
      </dl>
      <Tick label={t("jobs.keysOn")} isOn={isOn} onChange={setIsOn} />
    </Dialog>
  );
}
