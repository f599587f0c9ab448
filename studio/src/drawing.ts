// A drawing is never changed: each step makes a new one, so that undo is to keep the old ones.

import type { Drawing, Edge, Node } from "./types";

export const EMPTY: Drawing = {
  nodes: [],
  edges: [],
  blocks: {},
  auxiliary: [],
  kinds: {},
  effect: null,
  panel: null,
  preset: "auto",
  seed: 0,
  guide: null,
};

export function find(drawing: Drawing, name: string): Node | undefined {
  return drawing.nodes.find((node) => node.name === name);
}

export function blockOf(drawing: Drawing, name: string): string | undefined {
  return Object.keys(drawing.blocks).find((block) => drawing.blocks[block]!.includes(name));
}

/** The column whose loss a node like "missing(y)" stands for. */
export function lossOf(name: string): string | undefined {
  return /^missing\((.+)\)$/.exec(name)?.[1];
}

/** The column of a node over time, such as L of "L[t-1]" and of "mean(L)[t]". */
export function columnOf(name: string): string {
  const inner = /^(.+?)\s*\[\s*t(?:\s*[+-]\s*\d+)?\s*\]$/.exec(name)?.[1];
  if (inner === undefined) return name;
  return /^\w+\((.+)\)$/.exec(inner)?.[1] ?? inner;
}

/** Tiers as text: every name causes all names of later tiers. */
export function inTiers(tiers: Record<string, number>): string | null {
  const levels = new Map<number, string[]>();
  for (const [name, tier] of Object.entries(tiers)) {
    if (tier > 0) levels.set(tier, [...(levels.get(tier) ?? []), `"${name}"`]);
  }
  if (levels.size < 2) return null;
  return [...levels].sort(([a], [b]) => a - b).map(([, names]) => names.join(", ")).join(" < ");
}

/** A place near (x, y) that no node covers. */
export function freePlace(drawing: Drawing, x: number, y: number): { x: number; y: number } {
  const taken = (a: number, b: number) =>
    drawing.nodes.some((node) => Math.abs(node.x - a) < 130 && Math.abs(node.y - b) < 70);
  for (let ring = 0; ring < 60; ring++) {
    for (const [dx, dy] of ring === 0 ? [[0, 0]] : [[0, ring], [ring, 0], [ring, ring], [-ring, 0], [0, -ring], [-ring, ring], [ring, -ring], [-ring, -ring]]) {
      const at = { x: x + dx! * 150, y: y + dy! * 90 };
      if (!taken(at.x, at.y)) return at;
    }
  }
  return { x, y };
}

export function addNode(drawing: Drawing, node: Partial<Node> & { name: string }): Drawing {
  if (find(drawing, node.name) || drawing.blocks[node.name]) return drawing;
  const at = freePlace(drawing, node.x ?? 200, node.y ?? 120);
  const made = { latent: false, classes: null, ...node, ...at };
  const auxiliary = drawing.auxiliary.filter((name) => name !== node.name);
  return { ...drawing, nodes: [...drawing.nodes, made], auxiliary };
}

export function removeNode(drawing: Drawing, name: string): Drawing {
  const kept = drawing.nodes.filter((node) => node.name !== name && lossOf(node.name) !== name);
  const names = new Set(kept.map((node) => node.name));
  const blocks: Record<string, string[]> = {};
  for (const [block, members] of Object.entries(drawing.blocks)) {
    const left = members.filter((member) => names.has(member));
    if (left.length > 1) blocks[block] = left;
  }
  const there = (end: string) => names.has(end) || end in blocks;
  const edges = drawing.edges.filter(([cause, effect]) => there(cause) && there(effect));
  const effect = drawing.effect?.includes(name) ? null : drawing.effect;
  return { ...drawing, nodes: kept, blocks, edges, effect };
}

export function move(drawing: Drawing, names: string[], dx: number, dy: number): Drawing {
  const nodes = drawing.nodes.map((node) =>
    names.includes(node.name) ? { ...node, x: node.x + dx, y: node.y + dy } : node,
  );
  return { ...drawing, nodes };
}

/** All arrows between nodes, those of blocks spelled out. */
export function arrows(drawing: Drawing): Edge[] {
  const ends = (name: string) => drawing.blocks[name] ?? [name];
  return drawing.edges.flatMap(([cause, effect]) =>
    ends(cause).flatMap((one) => ends(effect).map((other): Edge => [one, other])),
  );
}

/** Whether an arrow path leads from one end to the other. */
export function leads(drawing: Drawing, from: string, to: string): boolean {
  const below = new Map<string, string[]>();
  for (const [cause, effect] of arrows(drawing)) {
    below.set(cause, [...(below.get(cause) ?? []), effect]);
  }
  const goal = new Set(drawing.blocks[to] ?? [to]);
  const seen = new Set<string>(drawing.blocks[from] ?? [from]);
  const walk = [...seen];
  while (walk.length) {
    const here = walk.pop()!;
    if (goal.has(here)) return true;
    for (const next of below.get(here) ?? []) {
      if (!seen.has(next)) {
        seen.add(next);
        walk.push(next);
      }
    }
  }
  return false;
}

/** Draws an arrow, or says in a sentence why there can be none. */
export function connect(drawing: Drawing, cause: string, effect: string): Drawing | string {
  if (cause === effect) return "an arrow needs two ends.";
  if (drawing.edges.some(([a, b]) => a === cause && b === effect)) return "that arrow is there already.";
  const members = drawing.blocks[cause] ?? drawing.blocks[effect] ?? [];
  if (members.includes(cause) || members.includes(effect)) return "inside a block no arrow is claimed.";
  const same = blockOf(drawing, cause);
  if (same !== undefined && same === blockOf(drawing, effect)) return "inside a block no arrow is claimed.";
  if (lossOf(cause) !== undefined) return "a loss is no cause; draw arrows into it.";
  if (leads(drawing, effect, cause)) {
    return `${effect} is a cause of ${cause} already: arrows may not run in a circle.`;
  }
  return { ...drawing, edges: [...drawing.edges, [cause, effect]] };
}

export function disconnect(drawing: Drawing, cause: string, effect: string): Drawing {
  const edges = drawing.edges.filter(([a, b]) => a !== cause || b !== effect);
  return { ...drawing, edges };
}

export function setLatent(drawing: Drawing, name: string, latent: boolean, classes: number | null): Drawing {
  const nodes = drawing.nodes.map((node) => (node.name === name ? { ...node, latent, classes } : node));
  return { ...drawing, nodes };
}

/** Makes a block of nodes; arrows among them go, and what all of them share is drawn once. */
export function makeBlock(drawing: Drawing, name: string, members: string[]): Drawing | string {
  if (members.length < 2) return "a block has two members or more.";
  if (find(drawing, name) || drawing.blocks[name]) return `${name} is there already; take another name.`;
  if (members.some((member) => blockOf(drawing, member))) return "a node is in one block only.";
  const inside = new Set(members);
  const edges: Edge[] = [];
  const add = (edge: Edge) => {
    if (!edges.some(([a, b]) => a === edge[0] && b === edge[1])) edges.push(edge);
  };
  for (const [cause, effect] of drawing.edges) {
    if (inside.has(cause) && inside.has(effect)) continue;
    if (inside.has(effect)) add([cause, name]);
    else if (inside.has(cause)) {
      const all = members.every((one) => drawing.edges.some(([a, b]) => a === one && b === effect));
      add([all ? name : cause, effect]);
    } else add([cause, effect]);
  }
  return { ...drawing, blocks: { ...drawing.blocks, [name]: members }, edges };
}

export function dissolveBlock(drawing: Drawing, name: string): Drawing {
  const members = drawing.blocks[name] ?? [];
  const blocks = Object.fromEntries(Object.entries(drawing.blocks).filter(([key]) => key !== name));
  const edges = drawing.edges.flatMap(([cause, effect]): Edge[] => {
    if (cause === name) return members.map((one): Edge => [one, effect]);
    if (effect === name) return members.map((one): Edge => [cause, one]);
    return [[cause, effect]];
  });
  return { ...drawing, blocks, edges };
}

/** What a fit and a check depend on: all but places and the guide. */
export function meaning(drawing: Drawing): string {
  const nodes = drawing.nodes
    .map((node) => [node.name, node.latent, node.classes] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const edges = arrows(drawing).map((edge) => JSON.stringify(edge)).sort();
  const names = new Set(drawing.nodes.map((node) => drawing.panel ? columnOf(node.name) : node.name));
  const kinds = Object.entries(drawing.kinds).filter(([name]) => names.has(name)).sort();
  return JSON.stringify([nodes, edges, drawing.blocks, drawing.auxiliary, kinds, drawing.panel ?? null]);
}
