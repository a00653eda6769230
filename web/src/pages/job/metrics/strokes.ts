/** How the line of a rank is drawn: its colour is also that of its log lines, and its dashes tell it without colour. */
export const COLOURS = Array.from({ length: 8 }, (_, place) => `--rank-${place}`);
const DASHES: readonly (readonly number[])[] = [
  [],
  [8, 4],
  [2, 3],
  [8, 3, 2, 3],
  [14, 4],
  [4, 4],
  [14, 3, 2, 3, 2, 3],
  [2, 6],
];

export const colourOf = (rank: number): string => COLOURS[rank % COLOURS.length] ?? "";
export const dashesOf = (rank: number): number[] => [...(DASHES[rank % DASHES.length] ?? [])];
