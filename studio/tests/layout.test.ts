// Causes stand above their effects, and no two nodes on one another.

import { expect, it } from "vitest";
import { addNode, EMPTY } from "../src/drawing";
import { HEIGHT, isUnplaced, layered, widthOf } from "../src/layout";
import type { Drawing, Edge } from "../src/types";

function drawn(count: number, edges: Edge[]): Drawing {
  const names = [...Array(count).keys()].map((i) => `v${String(i)}`);
  return { ...names.reduce((so, name) => addNode(so, { name }), EMPTY), edges };
}

function overlaps(drawing: Drawing): boolean {
  return drawing.nodes.some((one, i) =>
    drawing.nodes.slice(i + 1).some(
      (two) =>
        Math.abs(one.x - two.x) < (widthOf(one.name) + widthOf(two.name)) / 2 && Math.abs(one.y - two.y) < HEIGHT,
    ),
  );
}

it("puts causes above effects", () => {
  const edges: Edge[] = [...Array(30).keys()].flatMap((i): Edge[] => [
    [`v${String(i)}`, `v${String(i + 1)}`],
    [`v${String(i)}`, `v${String(Math.min(39, i + 5))}`],
  ]);
  const done = layered(drawn(40, edges));
  const height = new Map(done.nodes.map((node) => [node.name, node.y]));
  for (const [cause, effect] of edges) expect(height.get(cause)!).toBeLessThan(height.get(effect)!);
  expect(overlaps(done)).toBe(false);
});

it("keeps the members of a block together, above what they cause", () => {
  const plain = drawn(8, [["w", "v6"], ["w", "v7"], ["v6", "v7"]]);
  const done = layered({ ...plain, blocks: { w: ["v0", "v1", "v2", "v3", "v4", "v5"] } });
  const [members, rest] = [done.nodes.slice(0, 6), done.nodes.slice(6)];
  expect(Math.max(...members.map((node) => node.y))).toBeLessThan(Math.min(...rest.map((node) => node.y)));
  expect(overlaps(done)).toBe(false);
});

it("knows a drawing without places", () => {
  const plain = drawn(2, []);
  expect(isUnplaced({ ...plain, nodes: plain.nodes.map((node) => ({ ...node, x: 0, y: 0 })) })).toBe(true);
  expect(isUnplaced(plain)).toBe(false);
});
