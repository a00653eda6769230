/** Names of classes in one string; what is false or missing is left out. */
export function cx(...names: (string | false | undefined)[]): string {
  return names.filter(Boolean).join(" ");
}
