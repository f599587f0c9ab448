// Questions that suggest themselves, and their words.

import { expect, it } from "vitest";
import { addNode, EMPTY } from "../src/drawing";
import { BLANK, ends, firstQuestion, grid, inWords, rules, shellWord, sideBySide, worse } from "../src/question";
import type { Answer, Column, Drawing, Table } from "../src/types";

const TABLE = {
  name: "a.csv",
  rows: 10,
  columns: [
    { name: "t", holes: 0, levels: [["0", 5], ["1", 5]], bars: null },
    { name: "x", holes: 0, levels: null, bars: [1, 2], low: 1.3, high: 71.8, mean: 40.123 },
    { name: "y", holes: 2, levels: null, bars: [1, 2], low: 0, high: 1, mean: 0.5 },
  ],
} as unknown as Table;
const DRAWN: Drawing = {
  ...["t", "x", "y"].reduce((so, name) => addNode(so, { name }), EMPTY),
  effect: ["t", "y"],
  seed: 3,
};

it("compares the levels at both ends, or a unit around the mean", () => {
  expect(ends(TABLE, "t")).toEqual(["1", "0"]);
  expect(ends(TABLE, "x")).toEqual(["41.1", "40.1"]);
});

it("asks the effect that is marked in the graph, with the seed of the fit", () => {
  const asked = firstQuestion(DRAWN, TABLE);
  expect([asked.on, asked.do, asked.versus, asked.seed]).toEqual(["y", { t: "1" }, { t: "0" }, 3]);
  expect(inWords(asked)).toBe("y: t = 1 against t = 0");
});

it("takes a grid within what was seen", () => {
  const over = grid(TABLE, "x");
  expect(over.low).toBeGreaterThanOrEqual(1.3);
  expect(over.high).toBeLessThanOrEqual(71.8);
  expect((over.high - over.low) / over.step).toBeLessThan(20);
  expect(grid(TABLE, "t")).toEqual({ along: "t", low: 0, high: 1, step: 1 });
});

it("says a question in words", () => {
  expect(inWords({ ...BLANK, kind: "row", row: 4 })).toBe("What row 4 may hide");
  expect(inWords({ ...BLANK, kind: "row", row: 4, do: { t: "1" } })).toBe("Row 4, had it been t = 1");
  expect(inWords({ ...BLANK, kind: "curve", on: "y", along: "x", where: "t == 1" })).toBe("y along x where t == 1");
  expect(inWords({ ...BLANK, on: "y", do: { t: "1" } })).toBe("y: t = 1 against no intervention");
  expect(inWords({ ...BLANK, kind: "risk", on: "ill", do: { A: "1" } })).toBe("Risk of ill: A = 1 against the natural course");
  expect(inWords({ ...BLANK, kind: "sensitivity", on: "y", do: { t: "1" }, versus: { t: "0" }, arm: "do" })).toBe(
    "y: t = 1 against t = 0, if lost values are shifted, in the first arm",
  );
});

it("offers rules with the column's own name, in backticks where it needs them", () => {
  expect(rules("dose").map(([, rule]) => rule)).toContain("min(dose, 2)");
  expect(rules("blood-pressure").map(([, rule]) => rule)).toContain("`blood-pressure` + 1");
  expect(rules("x", TABLE.columns[1]).map(([, rule]) => rule)).toContain("min(x, 40)");
});

it("offers levels a draw, and no sum", () => {
  expect(rules("t", TABLE.columns[0])).toEqual([["by chance, for 3 of 10", "bernoulli(0.3)"]]);
  const drug: Column = { name: "drug", holes: 0, levels: [["old", 7], ["new", 3]], bars: null };
  expect(rules("drug", drug)).toEqual([["by chance, 3 of 10 new", 'choose("new", 0.3, "old", 0.7)']]);
});

it("begins where nothing is changed", () => {
  expect(worse("shift", TABLE, "x")).toEqual({ what: "shift", low: 0, high: 8, step: 2 });
  expect(worse("ratio", TABLE, "x").low).toBe(1);
  expect(worse("strength", TABLE, "x")).toEqual({ what: "strength", low: -1, high: 1, step: 0.5 });
});

it("asks about columns where the graph is over time", () => {
  const drawn = { ...DRAWN, effect: ["t[t]", "y[t]"] as [string, string], panel: ["id", "week"] as [string, string] };
  expect(firstQuestion(drawn, TABLE)).toMatchObject({ on: "y", do: { t: "1" } });
});

it("draws numbers of one measure side by side, and no others", () => {
  const answer = (number: number, on: string, estimate: number | null): Answer => ({
    number,
    question: { ...BLANK, on },
    answer: { estimate, measure: "mean difference" },
  });
  const groups = sideBySide([answer(1, "y", 1), answer(2, "y", 2), answer(3, "x", 1), answer(4, "y", null)]);
  expect([...groups].map(([key, of]) => [key, of.map((one) => one.number)])).toEqual([
    ["mean difference of y", [1, 2]],
    ["mean difference of x", [3]],
  ]);
});

it("quotes what a shell would take apart", () => {
  expect(shellWord("/home/me/misscnf-studio")).toBe("/home/me/misscnf-studio");
  expect(shellWord("second <i>")).toBe("'second <i>'");
  expect(shellWord("it's")).toBe(`'it'"'"'s'`);
});
