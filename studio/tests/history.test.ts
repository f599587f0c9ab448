// Undo and redo are each other's reverse, and a new step ends what could be redone.

import { expect, it } from "vitest";
import { begin, redo, step, undo } from "../src/history";

it("goes back and forth over the same steps", () => {
  const three = [1, 2, 3].reduce(step<number>, begin(0));
  expect([three.now, undo(three).now, undo(undo(three)).now]).toEqual([3, 2, 1]);
  expect(redo(undo(three))).toEqual(three);
  expect(undo(redo(undo(three)))).toEqual(undo(three));
});

it("stops at both ends", () => {
  const one = begin(0);
  expect(undo(one)).toBe(one);
  expect(redo(one)).toBe(one);
});

it("forgets what was taken back at a new step, and nothing at a step that is none", () => {
  const back = undo(step(step(begin(0), 1), 2));
  expect(step(back, 9).future).toEqual([]);
  expect(step(back, back.now)).toBe(back);
});

it("keeps two hundred steps", () => {
  let long = begin(0);
  for (let i = 1; i <= 500; i++) long = step(long, i);
  expect(long.past.length).toBe(200);
  expect(long.past[0]).toBe(300);
});
