// An arrow goes round a node that stands between its ends.

import { expect, it } from "vitest";
import { arrow, bend } from "../src/bows";

const box = (x: number, y: number) => ({ x: x - 35, y: y - 18, width: 70, height: 36 });

it("is straight where nothing is in its way", () => {
  expect(bend(box(0, 0), box(0, 200), [box(200, 100)])).toEqual([0, 100]);
});

it("bows round a node, and no further than it has to", () => {
  const [x, y] = bend(box(0, 0), box(0, 200), [box(0, 100)]);
  expect(y).toBe(100);
  expect(Math.abs(x)).toBe(110);
  expect(Math.abs(bend(box(0, 0), box(0, 200), [box(20, 100)])[0])).toBe(60);
});

it("takes the other side where one is taken", () => {
  const [x] = bend(box(0, 0), box(0, 200), [box(0, 100), box(80, 100)]);
  expect(x).toBe(-110);
});

it("is straight where there is no way round", () => {
  const wall = { x: -900, y: 90, width: 1800, height: 20 };
  expect(bend(box(0, 0), box(0, 200), [wall])).toEqual([0, 100]);
});

it("leaves a wide box at its rim, although the middle of the way lies inside", () => {
  const wide = { x: -200, y: -90, width: 400, height: 180 };
  expect(bend(wide, box(300, 0), [])).toEqual([150, 0]);
  expect(arrow(wide, box(300, 0), [150, 0])).toBe("M 201 0 L 261 0");
  expect(arrow(box(0, 0), box(0, 200), [0, 100])).toBe("M 0 19 Q 0 100 0 178");
});
