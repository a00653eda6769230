import { useState } from "react";
import { Slider, SliderThumb, SliderTrack } from "react-aria-components";
import { cx } from "./cx";
import { FieldFoot, type FieldWords, SetsPath } from "./Field";
import styles from "./fields.module.css";

interface SliderFieldProps extends FieldWords {
  value: number;
  min: number;
  max: number;
  step?: number;
  unit?: string;
  onChange: (value: number) => void;
  isDisabled?: boolean;
  id: string;
}

/** A slider for the usual range, and its number to be typed, which may go beyond it. */
export function SliderField({
  label,
  help,
  sets,
  problem,
  value,
  min,
  max,
  step = 1,
  ...rest
}: SliderFieldProps) {
  const { unit, onChange, isDisabled = false, id } = rest;
  const [typed, setTyped] = useState<string | null>(null);
  const helpId = `${id}-help`;
  const within = Math.min(max, Math.max(min, value));
  return (
    <div className={styles.field}>
      <span className={styles.head}>
        <label className={styles.label} htmlFor={id}>
          {label}
        </label>
        {sets && <SetsPath path={sets} />}
      </span>
      <div className={styles.sliderRow}>
        <Slider
          aria-label={label}
          value={within}
          minValue={min}
          maxValue={max}
          step={step}
          isDisabled={isDisabled}
          onChange={(next) => onChange(next)}
          className={cx(styles.slider)}
        >
          <SliderTrack className={cx(styles.track)}>
            {({ state }) => (
              <>
                <div className={styles.fill} style={{ width: `${state.getThumbPercent(0) * 100}%` }} />
                <SliderThumb className={cx(styles.thumb)} />
              </>
            )}
          </SliderTrack>
        </Slider>
        <span className={styles.number}>
          <input
            id={id}
            className={styles.input}
            inputMode="decimal"
            disabled={isDisabled}
            aria-describedby={help || problem ? helpId : undefined}
            aria-invalid={problem ? true : undefined}
            value={typed ?? String(value)}
            onChange={(event) => {
              setTyped(event.target.value);
              const number = Number(event.target.value);
              if (event.target.value.trim() !== "" && Number.isFinite(number)) onChange(number);
            }}
            onBlur={() => setTyped(null)}
          />
          {unit && <span className={styles.unit}>{unit}</span>}
        </span>
      </div>
      <div id={helpId}>
        <FieldFoot help={help} problem={problem} />
      </div>
    </div>
  );
}
