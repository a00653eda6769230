import type { en } from "./en";

export type Language = "en" | "ko";
export type Page = keyof typeof en;
/** What a translation of a page must have: the keys of the English one, no more and no less. */
export type Texts<P extends Page> = { readonly [K in keyof (typeof en)[P]]: string };
export type Catalogue = { readonly [P in Page]: Texts<P> };

type KeysOf<P extends Page> = P extends Page ? `${P}.${Extract<keyof (typeof en)[P], string>}` : never;
export type Key = KeysOf<Page>;
/** Keys with a `_one` and an `_other` form. */
export type PluralKey = Key extends infer K ? (K extends `${infer Base}_one` ? Base : never) : never;

type TextOf<K extends Key> = K extends `${infer P extends Page}.${infer Name}`
  ? Name extends keyof (typeof en)[P]
    ? (typeof en)[P][Name]
    : never
  : never;
type Names<T> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;
/** The values that a text asks for; none for a text without `{…}`. */
export type Values<K extends Key> = { [N in Names<TextOf<K>>]: string | number };
/** The values of a counted text beside its count. */
export type PluralValues<K extends PluralKey> = Omit<
  Values<Extract<`${K}_one` | `${K}_other`, Key>>,
  "count"
>;
