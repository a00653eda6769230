/** Line icons on a grid of 16, drawn here: nothing is fetched. They are decoration; words stand beside them. */
const PATHS = {
  alert: "M8 2.2 14.4 13.5H1.6ZM8 6.4v3.2M8 11.6v.1",
  chart: "M2.5 2.5v11h11M5 10.5l2.6-3.4 2 1.9L13 4.8",
  check: "M3 8.4 6.4 11.8 13 4.6",
  chevron: "M4.5 6.2 8 9.8l3.5-3.6",
  circle: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Z",
  clock: "M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2ZM8 4.8V8l2.2 1.6",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5h8v8h-8ZM10.5 5.5v-3h-8v8h3",
  cross: "M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2ZM5.9 5.9l4.2 4.2M10.1 5.9l-4.2 4.2",
  done: "M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2ZM5.3 8.2l1.9 1.9 3.6-4",
  download: "M8 2.5v8M4.6 7.4 8 10.8l3.4-3.4M2.8 13.5h10.4",
  gear: "M8 5.6a2.4 2.4 0 1 0 0 4.8 2.4 2.4 0 0 0 0-4.8ZM8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2M3.6 3.6 5 5M11 11l1.4 1.4M12.4 3.6 11 5M5 11l-1.4 1.4",
  globe:
    "M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2ZM2.2 8h11.6M8 2.2c2.2 1.6 2.2 10 0 11.6M8 2.2c-2.2 1.6-2.2 10 0 11.6",
  jobs: "M2.5 4h1M2.5 8h1M2.5 12h1M6 4h7.5M6 8h7.5M6 12h7.5",
  keyboard: "M1.8 4h12.4v8.2H1.8ZM4.2 6.6v.1M6.7 6.6v.1M9.3 6.6v.1M11.8 6.6v.1M5 9.6h6",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  moon: "M13 9.6A5.6 5.6 0 0 1 6.4 3a5.6 5.6 0 1 0 6.6 6.6Z",
  node: "M2.5 3h11v4h-11ZM2.5 9h11v4h-11ZM5 5v.1M5 11v.1",
  pause: "M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2ZM6.4 5.8v4.4M9.6 5.8v4.4",
  play: "M5 3.2 12.4 8 5 12.8Z",
  plus: "M8 3v10M3 8h10",
  restart: "M13 8a5 5 0 1 1-1.6-3.7M13.2 2.4v2.8h-2.8",
  runtime: "M8 1.9 13.4 5v6L8 14.1 2.6 11V5ZM2.8 5.1 8 8l5.2-2.9M8 8v6",
  search: "M7 2.6a4.4 4.4 0 1 0 0 8.8 4.4 4.4 0 0 0 0-8.8ZM10.3 10.3l3.2 3.2",
  shield: "M8 1.9 13 4v4c0 3.2-2.2 5.2-5 6.1C5.2 13.2 3 11.2 3 8V4Z",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM8 1.6v1.4M8 13v1.4M1.6 8H3M13 8h1.4M3.5 3.5l1 1M11.5 11.5l1 1M12.5 3.5l-1 1M4.5 11.5l-1 1",
  trash: "M3 4.5h10M6.2 4.5V2.8h3.6v1.7M4.3 4.5l.6 8.7h6.2l.6-8.7",
  upload: "M8 10.5v-8M4.6 5.6 8 2.2l3.4 3.4M2.8 13.5h10.4",
  up: "M4.5 9.8 8 6.2l3.5 3.6",
  user: "M8 2.6a2.7 2.7 0 1 0 0 5.4 2.7 2.7 0 0 0 0-5.4ZM2.8 13.6c.4-2.8 2.6-4.2 5.2-4.2s4.8 1.4 5.2 4.2",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16, className }: { name: IconName; size?: number; className?: string }) {
  return (
    <svg
      className={className}
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.5}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
