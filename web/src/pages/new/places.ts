/** Where on the form a problem belongs. Controls have ids made here, of the path in the request: `field-env[0].name`. */

export function fieldId(path: string): string {
  return `field-${path}`;
}

/** Problems that the operator would have speak of the TrainJob; these are the fields behind its paths. */
const TRAINJOB: readonly (readonly [string, string])[] = [
  ["metadata.name", "name"],
  ["metadata.namespace", "namespace"],
  ["metadata.labels", "labels"],
  ["metadata.annotations", "annotations"],
  ["spec.runtimeRef", "runtime"],
  ["spec.trainer.numNodes", "nodes"],
  ["spec.trainer.numProcPerNode", "processes_per_node"],
  ["spec.trainer.image", "image"],
  ["spec.trainer.env", "env"],
  ["spec.trainer.command", "command"],
  ["spec.trainer.args", "command"],
  ["spec.trainer.resourcesPerNode", "resources.cpu.limit"],
  ["spec.podTemplateOverrides", "volumes"],
  ["spec.runtimePatches", "volumes"],
];

/** The paths to look for, the nearest first: the place itself, then what is around it. */
export function placesOf(path: string): string[] {
  const known = TRAINJOB.find(([begin]) => path === begin || path.startsWith(begin) || path.includes(begin));
  const start = known ? known[1] : path;
  const found = [start];
  for (let place = start; place; ) {
    const cut = Math.max(place.lastIndexOf("."), place.lastIndexOf("["));
    place = cut > 0 ? place.slice(0, cut) : "";
    if (place) found.push(place);
  }
  return found;
}

/** Opens what hides the field of a problem, brings it into view and gives it the keyboard. Whether there is one. */
export function jumpTo(path: string): boolean {
  const target = placesOf(path)
    .map((place) => document.getElementById(fieldId(place)))
    .find((element) => element !== null);
  if (!target) return false;
  for (let around = target.parentElement; around; around = around.parentElement) {
    if (around instanceof HTMLDetailsElement) around.open = true;
  }
  const inner = target.shadowRoot?.querySelector<HTMLElement>(".cm-content");
  const control =
    inner ?? (target.matches(CONTROLS) ? target : target.querySelector<HTMLElement>(CONTROLS)) ?? target;
  target.scrollIntoView({ block: "center" });
  control.focus({ preventScroll: true });
  return true;
}

const CONTROLS = "input:checked, input:not([type=radio]), textarea, button, select, [tabindex]";

export interface Located {
  path: string;
  message: string;
  severity?: "error" | "warning";
}

/** What is wrong with the field of these paths, and with what is inside of it; warnings stay in the list. */
export function problemAt(findings: readonly Located[], ...paths: string[]): string | undefined {
  const found = findings.filter(
    (each) =>
      each.severity !== "warning" &&
      placesOf(each.path)
        .slice(0, 1)
        .some((place) => paths.some((path) => place === path || place.startsWith(`${path}.`))),
  );
  return found.length > 0 ? [...new Set(found.map((each) => each.message))].join(" ") : undefined;
}
