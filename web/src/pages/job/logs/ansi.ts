/**
 * What a terminal would show of a line, as pieces of text with names of looks. Nothing of it is ever markup: a piece is
 * the child of a span, and a look is one of the names below.
 */

export interface Piece {
  text: string;
  /** Names of looks, as "bold red"; "" for plain text. */
  look: string;
}

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

interface State {
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  strike: boolean;
  inverse: boolean;
  colour: string;
  ground: string;
}

const PLAIN: State = {
  ...{ bold: false, dim: false, italic: false, underline: false, strike: false, inverse: false },
  ...{ colour: "", ground: "" },
};

// One escape sequence: CSI …, OSC … with its end, the other strings, two-character ones, and the 8-bit CSI.
const SEQUENCE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about
  /(?:\u001b\[|\u009b)([0-?]*)[ -/]*([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|\u001b[PX^_][^\u001b]*(?:\u001b\\|$)|\u001b[ -/]*[0-~]?/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: those that would be invisible
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** The line as it stood last: what a carriage return went back over is gone. One at the end overwrites nothing. */
export function lastState(line: string): string {
  if (!line.includes("\r")) return line;
  const kept = line.replace(/\r+$/, "");
  return kept.slice(kept.lastIndexOf("\r") + 1);
}

/** Cuts a line into pieces of one look each. The look does not go on in the next line. */
export function pieces(line: string): Piece[] {
  const found: Piece[] = [];
  let state = PLAIN;
  let at = 0;
  const add = (text: string) => {
    if (text) found.push({ text: visible(text), look: lookOf(state) });
  };
  for (const match of line.matchAll(SEQUENCE)) {
    add(line.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] === "m") state = after(state, match[1] ?? "");
  }
  add(line.slice(at));
  return found;
}

/** The words alone. */
export function plain(line: string): string {
  return pieces(line)
    .map((piece) => piece.text)
    .join("");
}

/** Control characters as their pictures: they would be nothing, or move what stands beside them. */
function visible(text: string): string {
  return text.replace(INVISIBLE, (each) =>
    each === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + each.charCodeAt(0)),
  );
}

function lookOf(state: State): string {
  if (state === PLAIN) return "";
  const names = (["bold", "dim", "italic", "underline", "strike"] as const).filter((name) => state[name]);
  // Swapped: one look of its own, because the colour of the page behind is not ours to know.
  if (state.inverse) return [...names, "inverse"].join(" ");
  const coloured = [state.colour, state.ground && `on-${state.ground}`].filter(Boolean);
  return [...names, ...coloured].join(" ");
}

function after(state: State, parameters: string): State {
  const codes = parameters.split(/[;:]/).map(Number);
  let next = state;
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] ?? 0;
    if (code === 38 || code === 48) {
      const [colour, used] = extended(codes.slice(at + 1));
      next = { ...next, [code === 38 ? "colour" : "ground"]: colour };
      at += used;
    } else next = simple(next, code);
  }
  return next;
}

function simple(state: State, code: number): State {
  switch (code) {
    case 0:
      return PLAIN;
    case 1:
      return { ...state, bold: true };
    case 2:
      return { ...state, dim: true };
    case 3:
      return { ...state, italic: true };
    case 4:
      return { ...state, underline: true };
    case 7:
      return { ...state, inverse: true };
    case 9:
      return { ...state, strike: true };
    case 22:
      return { ...state, bold: false, dim: false };
    case 23:
      return { ...state, italic: false };
    case 24:
      return { ...state, underline: false };
    case 27:
      return { ...state, inverse: false };
    case 29:
      return { ...state, strike: false };
    case 39:
      return { ...state, colour: "" };
    case 49:
      return { ...state, ground: "" };
  }
  if (code >= 30 && code <= 37) return { ...state, colour: COLOURS[code - 30] ?? "" };
  if (code >= 40 && code <= 47) return { ...state, ground: COLOURS[code - 40] ?? "" };
  if (code >= 90 && code <= 97) return { ...state, colour: COLOURS[code - 90] ?? "" };
  if (code >= 100 && code <= 107) return { ...state, ground: COLOURS[code - 100] ?? "" };
  return state;
}

/** `5;n` or `2;r;g;b` as the nearest of eight, which are readable on both backgrounds; and how many codes it took. */
function extended(codes: number[]): [string, number] {
  if (codes[0] === 5) {
    const index = codes[1] ?? 0;
    if (index < 16) return [COLOURS[index % 8] ?? "", 2];
    if (index >= 232) return [index < 244 ? "black" : "white", 2];
    const cube = index - 16;
    return [nearest(Math.floor(cube / 36) * 51, (Math.floor(cube / 6) % 6) * 51, (cube % 6) * 51), 2];
  }
  if (codes[0] === 2) return [nearest(codes[1] ?? 0, codes[2] ?? 0, codes[3] ?? 0), 4];
  return ["", 1];
}

function nearest(red: number, green: number, blue: number): string {
  const half = Math.max(red, green, blue, 128) / 2;
  return COLOURS[Number(red > half) + 2 * Number(green > half) + 4 * Number(blue > half)] ?? "";
}
