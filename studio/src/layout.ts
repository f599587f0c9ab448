// Causes above effects: a layered layout by dagre, with a block as one wide node.

import { Graph, layout as dagre } from "@dagrejs/dagre";
import { blockOf } from "./drawing";
import type { Drawing } from "./types";

export const WIDTH = 112;
export const HEIGHT = 36;

/** The width of a node by the letters of its name. */
export function widthOf(name: string): number {
  return Math.max(70, Math.min(220, 30 + 7.6 * name.length));
}

interface Box {
  width: number;
  height: number;
  x: number;
  y: number;
}

export function layered(drawing: Drawing): Drawing {
  const graph = new Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 36, ranksep: 64, marginx: 40, marginy: 40 });
  graph.setDefaultEdgeLabel(() => ({}));
  const place = (name: string) => blockOf(drawing, name) ?? name;
  const grids = new Map<string, { columns: number; wide: number }>();
  for (const [block, members] of Object.entries(drawing.blocks)) {
    const columns = Math.ceil(Math.sqrt(members.length));
    const wide = Math.max(...members.map(widthOf)) + 18;
    grids.set(block, { columns, wide });
    const rows = Math.ceil(members.length / columns);
    graph.setNode(`block ${block}`, { width: columns * wide + 30, height: rows * 50 + 44 });
  }
  const key = (name: string) => (grids.has(place(name)) ? `block ${place(name)}` : `node ${name}`);
  for (const node of drawing.nodes) {
    if (!grids.has(place(node.name))) graph.setNode(key(node.name), { width: widthOf(node.name), height: HEIGHT });
  }
  for (const [cause, effect] of drawing.edges) {
    if (key(cause) !== key(effect)) graph.setEdge(key(cause), key(effect));
  }
  dagre(graph);
  const nodes = drawing.nodes.map((node) => {
    const block = blockOf(drawing, node.name);
    const at = graph.node(key(node.name)) as unknown as Box;
    if (block === undefined) return { ...node, x: at.x, y: at.y };
    const { columns, wide } = grids.get(block)!;
    const i = drawing.blocks[block]!.indexOf(node.name);
    const x = at.x - at.width / 2 + 15 + wide * ((i % columns) + 0.5);
    const y = at.y - at.height / 2 + 30 + 50 * (Math.floor(i / columns) + 0.5);
    return { ...node, x, y };
  });
  return { ...drawing, nodes };
}

/** Whether nodes have no places yet, as after the reading of a text. */
export function isUnplaced(drawing: Drawing): boolean {
  return drawing.nodes.length > 1 && drawing.nodes.every((node) => node.x === 0 && node.y === 0);
}
