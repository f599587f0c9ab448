// Steps of a drawing: what they change, and what they refuse.

import { describe, expect, it } from "vitest";
import {
  addNode, arrows, columnOf, connect, disconnect, dissolveBlock, EMPTY, inTiers, leads, lossOf, makeBlock, meaning, move, removeNode, setLatent,
} from "../src/drawing";
import type { Drawing, Edge } from "../src/types";

function drawn(names: string[], edges: Edge[]): Drawing {
  const nodes = names.reduce((so, name) => addNode(so, { name }), EMPTY);
  return { ...nodes, edges };
}

const CHAIN = drawn(["a", "b", "c", "y"], [["a", "b"], ["b", "c"], ["a", "y"], ["b", "y"]]);

describe("nodes", () => {
  it("are added once, and never on one another", () => {
    const twice = addNode(CHAIN, { name: "a" });
    expect(twice).toBe(CHAIN);
    const places = CHAIN.nodes.map((node) => `${String(node.x)} ${String(node.y)}`);
    expect(new Set(places).size).toBe(4);
  });

  it("take their arrows, their loss and their question with them", () => {
    const full = { ...addNode(CHAIN, { name: "missing(b)" }), effect: ["b", "y"] as Edge };
    const less = removeNode(full, "b");
    expect(less.nodes.map((node) => node.name)).toEqual(["a", "c", "y"]);
    expect(less.edges).toEqual([["a", "y"]]);
    expect(less.effect).toBeNull();
  });

  it("keep their meaning when they are moved, and change it when they are hidden", () => {
    expect(meaning(move(CHAIN, ["a"], 5, 5))).toBe(meaning(CHAIN));
    expect(meaning(setLatent(CHAIN, "a", true, null))).not.toBe(meaning(CHAIN));
  });

  it("know whose loss they stand for", () => {
    expect(lossOf("missing(b)")).toBe("b");
    expect(lossOf("b")).toBeUndefined();
  });
});

describe("arrows", () => {
  it("are drawn and deleted", () => {
    const more = connect(CHAIN, "c", "y") as Drawing;
    expect(more.edges).toContainEqual(["c", "y"]);
    expect(disconnect(more, "c", "y").edges).toEqual(CHAIN.edges);
  });

  it.each([["c", "a"], ["a", "a"], ["a", "b"]])("are refused in a sentence: %s to %s", (cause, effect) => {
    expect(connect(CHAIN, cause, effect)).toBeTypeOf("string");
  });

  it("do not leave a loss", () => {
    const full = addNode(CHAIN, { name: "missing(b)" });
    expect(connect(full, "missing(b)", "y")).toBeTypeOf("string");
    expect(connect(full, "b", "missing(b)")).toBeTypeOf("object");
  });
});

describe("blocks", () => {
  const block = makeBlock(CHAIN, "w", ["a", "b"]) as Drawing;

  it("drop the arrows inside, and share those that all members have", () => {
    expect(block.edges).toEqual([["b", "c"], ["w", "y"]]);
    expect(arrows(block)).toEqual([["b", "c"], ["a", "y"], ["b", "y"]]);
  });

  it("claim nothing inside, and may not run in a circle either", () => {
    expect(connect(block, "a", "b")).toBeTypeOf("string");
    expect(connect(block, "w", "a")).toBeTypeOf("string");
    expect(connect(block, "y", "w")).toBeTypeOf("string");
    expect(leads(block, "w", "y")).toBe(true);
  });

  it("leave the arrows of their members when they are dissolved", () => {
    const again = dissolveBlock(block, "w");
    expect(again.blocks).toEqual({});
    expect(meaning({ ...again, blocks: {} })).toBe(meaning({ ...block, blocks: {}, edges: arrows(block) }));
  });

  it("are gone with their last member but one", () => {
    expect(removeNode(block, "a").blocks).toEqual({});
  });
});

describe("over time", () => {
  it.each([["L[t-1]", "L"], ["mean(L)[t]", "L"], ["missing(L)[t]", "L"], ["sex", "sex"], ["L[2]", "L[2]"]])("%s is of the column %s", (name, column) => {
    expect(columnOf(name)).toBe(column);
  });

  it("means something else than the same arrows at one time", () => {
    expect(meaning({ ...CHAIN, panel: ["id", "week"] })).not.toBe(meaning(CHAIN));
  });
});

describe("tiers", () => {
  it("are written in their order, with names in quotes", () => {
    expect(inTiers({ y: 7, "body mass": 1, age: 1, t: 2, out: 0 })).toBe('"body mass", "age" < "t" < "y"');
  });

  it("are two at least", () => {
    expect(inTiers({ a: 1, b: 1, c: 0 })).toBeNull();
  });
});

describe("auxiliary columns", () => {
  it("are no longer auxiliary once they are drawn", () => {
    expect(addNode({ ...EMPTY, auxiliary: ["a", "b"] }, { name: "a" }).auxiliary).toEqual(["b"]);
  });
});
