import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useT } from "@/i18n/i18n";
import { Button } from "@/ui/Button";
import { Legend } from "./Legend";
import styles from "./MetricsTab.module.css";
import type { Aligned, Axis } from "./series";
import { COLOURS, dashesOf } from "./strokes";

const HEIGHT = 230;

interface PlotProps {
  data: Aligned;
  axis: Axis;
  isLog: boolean;
  /** What is drawn, in words. */
  label: string;
  /** Changes when colours do. */
  theme: string;
}

/**
 * One series, a line for each attempt and rank, and a mark where an attempt began. Dragging zooms; a double click goes
 * back.
 */
export function Plot({ data, axis, isLog, label, theme }: PlotProps) {
  const t = useT();
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const latest = useRef(data);
  latest.current = data;
  const [isZoomed, setIsZoomed] = useState(false);
  const [place, setPlace] = useState<number | null>(null);
  const shape = JSON.stringify(data.parts);

  // biome-ignore lint/correctness/useExhaustiveDependencies: other lines, or other colours, are another plot
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const colours = coloursOf(element);
    const newest = Math.max(...latest.current.parts.map((part) => part.attempt));
    const words = (attempt: number) => t("job.attemptNumber", { attempt: attempt + 1 });
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, drag: { x: true, y: false } },
        scales: { x: { time: axis === "time" }, y: isLog ? { distr: 3 } : {} },
        axes: [
          axisOf(colours, axis === "time" ? 46 : 30),
          { ...axisOf(colours, 58), values: (_, splits) => splits.map(tick) },
        ],
        series: [
          {},
          ...latest.current.parts.map((part) => ({
            ...strokeOf(part, part.attempt === newest, colours),
            spanGaps: true,
            points: { show: false },
          })),
        ],
        hooks: {
          setCursor: [(self) => setPlace(self.cursor.idx ?? null)],
          draw: [(self) => drawMarks(self, latest.current.marks, colours, words)],
          setScale: [
            (self, key) => {
              const { xs } = latest.current;
              const { min, max } = self.scales.x ?? {};
              if (key === "x" && xs.length > 1) {
                setIsZoomed((min ?? 0) > (xs[0] ?? 0) || (max ?? 0) < (xs.at(-1) ?? 0));
              }
            },
          ],
        },
      },
      dataOf(latest.current),
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [axis, isLog, theme, shape, t]);

  useEffect(() => {
    // Who looks at a part goes on looking at that part.
    plot.current?.setData(dataOf(data), !isZoomed);
    if (isZoomed) plot.current?.redraw(true, true);
  }, [data, isZoomed]);

  return (
    <div className={styles.plot}>
      <div ref={frame} role="img" aria-label={label} />
      {isZoomed && (
        <div className={styles.zoom}>
          <Button isSmall icon="search" onPress={() => plot.current?.setData(dataOf(data), true)}>
            {t("job.zoomOut")}
          </Button>
        </div>
      )}
      {data.parts.some((part) => part.rank !== undefined) && <Legend data={data} axis={axis} place={place} />}
    </div>
  );
}

const dataOf = (data: Aligned): uPlot.AlignedData => [data.xs, ...data.ys] as uPlot.AlignedData;

interface Colours {
  ranks: string[];
  line: string;
  old: string;
  text: string;
  grid: string;
  mark: string;
}

/** A canvas knows no variables: an element is asked what they come to. */
function coloursOf(element: HTMLElement): Colours {
  const probe = document.createElement("span");
  element.append(probe);
  const colour = (name: string) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const found = {
    ranks: COLOURS.map(colour),
    ...{ line: colour("--accent"), old: colour("--text-3"), text: colour("--text-2") },
    ...{ grid: colour("--border"), mark: colour("--warn") },
  };
  probe.remove();
  return found;
}

/** An older attempt is paler; where there are no ranks, its dashes tell it. */
function strokeOf({ rank }: { rank?: number }, isNewest: boolean, colours: Colours): uPlot.Series {
  if (rank === undefined) {
    return isNewest ? { stroke: colours.line, width: 2 } : { stroke: colours.old, width: 1.5, dash: [6, 3] };
  }
  const stroke = colours.ranks[rank % COLOURS.length] ?? colours.line;
  return { stroke, width: isNewest ? 2 : 1, alpha: isNewest ? 1 : 0.5, dash: dashesOf(rank) };
}

function axisOf(colours: Colours, size: number): uPlot.Axis {
  return {
    ...{ stroke: colours.text, size, font: "11px system-ui, sans-serif" },
    grid: { stroke: colours.grid, width: 1 },
    ticks: { stroke: colours.grid, width: 1, size: 4 },
  };
}

/** Small numbers stay different from each other; a log scale leaves some ticks without words. */
function tick(value: number | null): string {
  if (value === null) return "";
  const isTiny = value !== 0 && Math.abs(value) < 1e-3;
  return isTiny ? Number(value.toPrecision(3)).toExponential() : String(Number(value.toPrecision(3)));
}

function drawMarks(
  plot: uPlot,
  marks: Aligned["marks"],
  colours: Colours,
  words: (attempt: number) => string,
): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colours.mark;
  ctx.fillStyle = colours.mark;
  ctx.lineWidth = 1;
  ctx.setLineDash([4, 3]);
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  for (const [index, mark] of marks.entries()) {
    const x = plot.valToPos(mark.x, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const text = words(mark.attempt);
    const isLeft = x + ctx.measureText(text).width + 8 > bbox.left + bbox.width;
    ctx.textAlign = isLeft ? "right" : "left";
    // Attempts that began at the same step stand below each other.
    ctx.fillText(text, x + (isLeft ? -4 : 4), bbox.top + (12 + 13 * (index % 6)) * devicePixelRatio);
  }
  ctx.restore();
}
