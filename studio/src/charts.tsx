// Small pictures: bars of a column, a forest of intervals, a curve with its band.

import type { Column } from "./types";

export function number(value: number): string {
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

export function Bars({ column }: { column: Column }) {
  const heights = column.bars ?? column.levels?.map(([, count]) => count) ?? [];
  const most = Math.max(1, ...heights);
  const wide = 96 / Math.max(1, heights.length);
  const told = column.levels
    ? column.levels.map(([name, count]) => `${name}: ${String(count)}`).join(", ")
    : column.bars
      ? `from ${number(column.low!)} to ${number(column.high!)}, mean ${number(column.mean!)}`
      : `${String(column.distinct ?? 0)} different texts`;
  return (
    <svg class="bars" viewBox="0 0 96 28" role="img" aria-label={told}>
      <title>{told}</title>
      {heights.map((height, i) => {
        const tall = Math.max(height ? 1 : 0, (26 * height) / most);
        return <rect key={i} x={i * wide + 0.4} y={27 - tall} width={Math.max(0.6, wide - 0.8)} height={tall} />;
      })}
      <line x1="0" x2="96" y1="27.5" y2="27.5" />
    </svg>
  );
}

function ticks(low: number, high: number): number[] {
  const span = high - low || 1;
  const rough = span / 4;
  const size = 10 ** Math.floor(Math.log10(rough));
  const every = [1, 2, 5, 10].map((k) => k * size).find((k) => k >= rough) ?? rough;
  const found: number[] = [];
  for (let at = Math.ceil(low / every) * every; at <= high + 1e-9 * span; at += every) found.push(at);
  return found;
}

export interface Line {
  label: string;
  estimate: number;
  lower: number | null;
  upper: number | null;
}

export function Forest({ lines, unit }: { lines: Line[]; unit: string }) {
  const ends = lines.flatMap((one) => [one.estimate, one.lower ?? one.estimate, one.upper ?? one.estimate]);
  const low = Math.min(0, ...ends);
  const high = Math.max(0, ...ends);
  const pad = (high - low || 1) * 0.06;
  const [left, right, top, tall] = [14, 626, 4, 46];
  const x = (value: number) => left + ((value - low + pad) / (high - low + 2 * pad)) * (right - left);
  const bottom = top + tall * lines.length;
  const told = lines.map((one) => `${one.label}: ${number(one.estimate)}`).join("; ");
  return (
    <svg class="chart" viewBox={`0 0 640 ${String(bottom + 40)}`} role="img" aria-label={`Effects side by side. ${told}`}>
      {ticks(low, high).map((at) => (
        <g key={at}>
          <line class="grid" x1={x(at)} x2={x(at)} y1={top} y2={bottom} />
          <text class="tick" x={x(at)} y={bottom + 15} text-anchor="middle">{number(at)}</text>
        </g>
      ))}
      <line class="zero" x1={x(0)} x2={x(0)} y1={top} y2={bottom} />
      {lines.map((one, i) => {
        const y = top + tall * i + 32;
        const short = one.label.length > 90 ? `${one.label.slice(0, 89)}…` : one.label;
        return (
          <g key={i}>
            <title>{one.label}</title>
            <text class="label" x={left} y={y - 14}>{short}</text>
            {one.lower !== null && one.upper !== null && (
              <line class="interval" x1={x(one.lower)} x2={x(one.upper)} y1={y} y2={y} />
            )}
            <circle class="estimate" cx={x(one.estimate)} cy={y} r="5" />
          </g>
        );
      })}
      <text class="tick" x={(left + right) / 2} y={bottom + 33} text-anchor="middle">{unit}</text>
    </svg>
  );
}

/** Which columns of a table a curve is drawn from: its values and the ends of their intervals. */
export interface Drawn { y: string; low: string; high: string }
const MEANS: Drawn = { y: "mean", low: "mean_lower", high: "mean_upper" };

interface CurveProps {
  rows: Record<string, number | null>[];
  along: string;
  outcome: string;
  /** What the column is called, if not by its name. */
  named?: string;
  of?: Drawn;
  /** A second curve, without a band. */
  beside?: { y: string; words: string; own: string };
  zero?: boolean;
}

export function Curve({ rows, along, outcome, named = along, of = MEANS, beside, zero }: CurveProps) {
  const points = rows.map((row) => ({ x: row[along]!, y: row[of.y]!, low: row[of.low] ?? null, high: row[of.high] ?? null }));
  const others = beside ? rows.map((row) => ({ x: row[along]!, y: row[beside.y] ?? 0 })) : [];
  const ys = points.flatMap((one) => [one.y, one.low ?? one.y, one.high ?? one.y]);
  ys.push(...others.map((one) => one.y), ...(zero ? [0] : []));
  const [x0, x1] = [Math.min(...points.map((p) => p.x)), Math.max(...points.map((p) => p.x))];
  const [y0, y1] = [Math.min(...ys), Math.max(...ys)];
  const pad = (y1 - y0 || 1) * 0.08;
  const x = (value: number) => 60 + ((value - x0) / (x1 - x0 || 1)) * 560;
  const y = (value: number) => 220 - ((value - y0 + pad) / (y1 - y0 + 2 * pad)) * 200;
  const line = (of: { x: number; y: number }[]) => of.map((one) => `${x(one.x).toFixed(1)},${y(one.y).toFixed(1)}`).join(" ");
  const path = (at: (one: (typeof points)[number]) => number) =>
    points.map((one) => `${x(one.x).toFixed(1)},${y(at(one)).toFixed(1)}`);
  const banded = points.every((one) => one.low !== null);
  const band = banded ? [...path((p) => p.high!), ...path((p) => p.low!).reverse()].join(" ") : "";
  const told = `${outcome} along ${named}: from ${number(points[0]!.y)} at ${number(x0)} to ${number(points.at(-1)!.y)} at ${number(x1)}`;
  return (
    <svg class="chart" viewBox="0 0 640 262" role="img" aria-label={told}>
      {ticks(y0, y1).map((at) => (
        <g key={at}>
          <line class="grid" x1="60" x2="620" y1={y(at)} y2={y(at)} />
          <text class="tick" x="52" y={y(at) + 4} text-anchor="end">{number(at)}</text>
        </g>
      ))}
      {ticks(x0, x1).map((at) => (
        <text key={at} class="tick" x={x(at)} y="238" text-anchor="middle">{number(at)}</text>
      ))}
      {banded && <polygon class="band" points={band} />}
      {zero && <line class="zero" x1="60" x2="620" y1={y(0)} y2={y(0)} />}
      {beside && <polyline class="curve other" points={line(others)} />}
      {beside && <text class="label" x="64" y="14">{beside.own} (whole line), {beside.words} (dashes)</text>}
      <polyline class="curve" points={line(points)} />
      {points.length < 30 && points.map((one) => <circle key={one.x} class="estimate" cx={x(one.x)} cy={y(one.y)} r="3" />)}
      <text class="tick" x="340" y="256" text-anchor="middle">{named}</text>
    </svg>
  );
}
