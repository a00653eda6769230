/** The points of a series as the `d` of a path in a box of this size; "" where there is no line to draw. */
export function sparkline(values: readonly number[], width: number, height: number): string {
  const sound = values.filter(Number.isFinite);
  if (sound.length < 2) return "";
  const low = Math.min(...sound);
  const span = Math.max(...sound) - low;
  // The line is 1.5 wide: it must not be cut at the edges.
  const [edge, inner] = [1, height - 2];
  return sound
    .map((value, index) => {
      const x = edge + (index / (sound.length - 1)) * (width - 2 * edge);
      const y = edge + (span === 0 ? inner / 2 : (1 - (value - low) / span) * inner);
      return `${index === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
    })
    .join("");
}
