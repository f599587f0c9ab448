// A question as it is typed, before it is sent.

import { columnOf } from "./drawing";
import type { Answer, Column, Drawing, Question, Table } from "./types";

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
  what: "shift",
  arm: "",
  loss: "",
  competing: "total",
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
  const [treatment, outcome] = drawing.panel ? [columnOf(drawing.effect[0]), columnOf(drawing.effect[1])] : drawing.effect;
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

/** A first grid for what cannot be known of a loss: from where nothing changes to a standard size. */
export function worse(what: Question["what"], table: Table | null, name: string): Pick<Question, "what" | "low" | "high" | "step"> {
  if (what === "strength") return { what, low: -1, high: 1, step: 0.5 };
  if (what === "ratio") return { what, low: 1, high: 2, step: 0.25 };
  const column = table?.columns.find((of) => of.name === name);
  const span = column?.low !== undefined && column.high !== undefined ? (column.high - column.low) / 10 : 1;
  const step = Number((span / 4).toPrecision(1)) || 1;
  return { what, low: 0, high: Number((4 * step).toPrecision(6)), step };
}

/** Rules that are asked for often, as texts that the library reads: of levels a draw, of numbers a shift or an end. */
export function rules(name: string, column?: Column): [string, string][] {
  const levels = column?.levels?.map(([level]) => level).sort();
  if (levels?.length) {
    if (levels.join() === "0,1") return [["by chance, for 3 of 10", "bernoulli(0.3)"]];
    if (levels.some((level) => Number.isNaN(Number(level)))) {
      const [one, other] = levels;
      if (other === undefined) return [];
      return [[`by chance, 3 of 10 ${one!}`, `choose(${JSON.stringify(one)}, 0.3, ${JSON.stringify(other)}, 0.7)`]];
    }
  }
  const own = /^[A-Za-z_]\w*$/.test(name) ? name : `\`${name}\``;
  const end = String(Number((column?.mean ?? 2).toPrecision(2)));
  return [
    ["one more than by itself", `${own} + 1`],
    ["a tenth less than by itself", `${own} * 0.9`],
    [`at most ${end}`, `min(${own}, ${end})`],
    [`at least ${end}`, `max(${own}, ${end})`],
  ];
}

function arm(values: Record<string, string>): string {
  return Object.entries(values).map(([name, value]) => `${name} = ${value}`).join(", ");
}

/** A text as one word of a command line. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
}

/** A question in words. */
export function inWords(asked: Question): string {
  if (asked.kind === "row") {
    const would = arm(asked.do);
    return would ? `Row ${String(asked.row)}, had it been ${would}` : `What row ${String(asked.row)} may hide`;
  }
  const within = asked.where ? ` where ${asked.where}` : "";
  if (asked.kind === "sensitivity") {
    const lost = asked.loss || asked.on;
    const how = { strength: `the loss of ${lost} follows its own value`, shift: "lost values are shifted", ratio: "lost values are multiplied" };
    const where = asked.arm && asked.what !== "strength" ? (asked.arm === "do" ? ", in the first arm" : ", in the second arm") : "";
    return `${asked.on}: ${arm(asked.do)} against ${arm(asked.versus) || "no intervention"}${within}, if ${how[asked.what]}${where}`;
  }
  if (asked.kind === "risk") {
    const first = arm(asked.do) || "the natural course";
    const second = arm(asked.versus) || (arm(asked.do) ? "the natural course" : "");
    return `Risk of ${asked.on}: ${first}${second ? ` against ${second}` : ""}${within}`;
  }
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
