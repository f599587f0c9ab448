// A question as it is typed, before it is sent.

import type { Answer, Drawing, Question, Table } from "./types";

export const BLANK: Question = {
  kind: "effect",
  on: "",
  do: {},
  versus: {},
  where: "",
  by: "",
  event: "",
  statistic: "mean",
  treated: false,
  population: "",
  interval: 0.95,
  seed: 0,
  along: "",
  low: 0,
  high: 1,
  step: 1,
  row: 1,
  draws: 20,
};

/** Two values of a column to compare: its levels at the ends, or a unit around its mean. */
export function ends(table: Table | null, name: string): [string, string] {
  const column = table?.columns.find((one) => one.name === name);
  if (column?.levels?.length) return [column.levels.at(-1)![0], column.levels[0]![0]];
  const mean = Number((column?.mean ?? 0).toPrecision(3));
  return [String(Number((mean + 1).toPrecision(6))), String(mean)];
}

/** A grid over what was seen of a column. */
export function grid(table: Table | null, name: string): Pick<Question, "along" | "low" | "high" | "step"> {
  const column = table?.columns.find((of) => of.name === name);
  const values = (column?.levels ?? []).map(([level]) => Number(level)).filter((level) => !Number.isNaN(level));
  const low = column?.low ?? Math.min(...values, 0);
  const high = column?.high ?? Math.max(...values, 1);
  const step = Number(((high - low) / 10).toPrecision(1)) || 1;
  const few = values.length > 1 && values.every((value) => Number.isInteger(value));
  if (few) return { along: name, low, high, step: 1 };
  const tidy = (value: number, round: (x: number) => number) => Number((round(value / step) * step).toPrecision(12));
  return { along: name, low: tidy(low, Math.ceil), high: tidy(high, Math.floor), step };
}

/** A first question about the asked effect. */
export function firstQuestion(drawing: Drawing, table: Table | null): Question {
  if (!drawing.effect) return { ...BLANK, seed: drawing.seed };
  const [treatment, outcome] = drawing.effect;
  const [one, other] = ends(table, treatment);
  return {
    ...BLANK,
    seed: drawing.seed,
    on: outcome,
    do: { [treatment]: one },
    versus: { [treatment]: other },
    ...grid(table, treatment),
  };
}

function arm(values: Record<string, string>): string {
  return Object.entries(values).map(([name, value]) => `${name} = ${value}`).join(", ");
}

/** A question in words. */
export function inWords(asked: Question): string {
  if (asked.kind === "row") {
    const would = arm(asked.do);
    return would ? `Row ${String(asked.row)}, had it been ${would}` : `What row ${String(asked.row)} may hide`;
  }
  const within = asked.where ? ` where ${asked.where}` : "";
  if (asked.kind === "curve") return `${asked.on} along ${asked.along}${within}`;
  if (!Object.keys(asked.do).length) return `${asked.on} as it is${within}`;
  const against = arm(asked.versus) || "no intervention";
  const on = asked.statistic === "mean" ? asked.on : `the ${asked.statistic} of ${asked.on}`;
  return `${on}: ${arm(asked.do)} against ${against}${within}${asked.treated ? ", among the treated" : ""}`;
}

/** Answers with one number, by what they measure, to be drawn side by side. */
export function sideBySide(answers: Answer[]): Map<string, Answer[]> {
  const groups = new Map<string, Answer[]>();
  for (const one of answers) {
    if (one.question.kind !== "effect" || typeof one.answer.estimate !== "number") continue;
    const key = `${one.answer.measure ?? "difference"} of ${one.question.on}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return groups;
}
