// What the server says and takes, as JSON.

export interface Node {
  name: string;
  x: number;
  y: number;
  latent: boolean;
  classes: number | null;
}

export type Edge = [string, string];

export interface Drawing {
  nodes: Node[];
  edges: Edge[];
  blocks: Record<string, string[]>;
  auxiliary: string[];
  kinds: Record<string, unknown>;
  effect: Edge | null;
  /** The columns that say who and when, of a table with a row a person and visit. */
  panel: [string, string] | null;
  preset: string;
  seed: number;
  guide: number | null;
}

export interface Column {
  name: string;
  holes: number;
  levels: [string, number][] | null;
  bars: number[] | null;
  low?: number;
  high?: number;
  mean?: number;
  distinct?: number;
}

export interface Table {
  name: string;
  path: string;
  rows: number;
  complete: number;
  holes: number;
  columns: Column[];
  patterns: { count: number; shown: { shows: boolean[]; rows: number }[] };
  first: (string | null)[][];
}

export interface Kind {
  column: string;
  kind: string;
  levels: string;
  holes: number;
  why: string;
  offer: string;
}

export interface Report {
  ok: boolean;
  family_positivity: boolean;
  nodes: { node: string; status: string; sentence: string; "rows whole": number; "rows shown": number }[];
  regions: { sentence: string }[];
  needed: string[];
  effect: Edge | null;
  estimand?: { identified: boolean; sentence: string } | null;
  title: string;
  facts: Record<string, string>;
  unlikely: string[];
  structural_holes: { question: string }[];
  recovery: string[];
  full_pattern: string;
  summary: string;
  thin: string[];
  among: number;
  checked: number;
  /** Whether what only boosted trees can confirm is still to come. */
  quick: boolean;
  visits?: Record<string, number>[];
}

export interface Job {
  task: "fit" | "ask" | "report";
  state: "running" | "done" | "stopped" | "refused" | "failed";
  stage: string;
  done: number;
  total: number;
  note: string;
  sentence: string;
  seconds: number;
  left: number | null;
}

export interface Question {
  kind: "effect" | "curve" | "sensitivity" | "risk" | "row";
  on: string;
  do: Record<string, string>;
  versus: Record<string, string>;
  where: string;
  by: string;
  event: string;
  statistic: string;
  treated: boolean;
  population: string;
  interval: number | null;
  seed: number;
  along: string;
  low: number;
  high: number;
  step: number;
  what: "strength" | "shift" | "ratio";
  arm: "" | "do" | "versus";
  loss: string;
  competing: "total" | "removed";
  row: number;
  draws: number;
}

export interface RowCell {
  name: string;
  shown: string | null;
  numbers?: [number, number, number];
  shares?: [string, number][];
}

export interface Found {
  title?: string;
  told?: string;
  estimate?: number | null;
  lower?: number | null;
  upper?: number | null;
  measure?: string;
  outcome?: string;
  curve?: Record<string, number | null>[];
  points?: Record<string, number | null>[];
  table?: Record<string, number | null>[];
  time?: string;
  versus?: Record<string, unknown> | null;
  cells?: RowCell[];
  row?: number;
  draws?: number;
  level?: number | null;
  doubts?: string[];
  notes?: string[];
}

export interface Answer {
  number: number;
  question: Question;
  answer: Found;
}

export interface Model {
  folder: string;
  drawing: Drawing;
  seconds: number;
  card: string;
  forms: Record<string, string>;
  unlikely: string[];
}

export interface Project {
  revision: number;
  table: { path: string; name: string; inside: boolean } | null;
  drawing: Drawing;
  model: Model | null;
  answers: Answer[];
  report: { effect: Edge | null } | null;
  interrupted: boolean;
  job: Job | null;
  folder: string;
}
