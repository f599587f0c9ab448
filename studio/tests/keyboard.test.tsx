// @vitest-environment happy-dom
// A graph can be drawn without a mouse: a node has to take the focus before a key can mean it.

import { render } from "preact";
import { beforeEach, expect, it, vi } from "vitest";
import { addNode, EMPTY } from "../src/drawing";
import { begin } from "../src/history";
import { GraphView } from "../src/graphview";
import { store } from "../src/store";

const node = (name: string) => document.querySelector(`[data-node=${name}]`)!;
const later = () => new Promise((done) => { setTimeout(done, 20); });

async function press(name: string, key: string): Promise<void> {
  node(name).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  await later();
}

beforeEach(async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new Error("no server here")));
  document.body.innerHTML = "<div id='here'></div>";
  store.set({ table: null, history: begin(addNode(addNode(EMPTY, { name: "a" }), { name: "b" })), selected: [] });
  render(<GraphView />, document.getElementById("here")!);
  await later();
});

it("reaches every node by Tab", () => {
  // In SVG names of attributes keep their case: a browser knows no tabIndex there.
  for (const name of ["a", "b"]) expect(node(name).getAttributeNames()).toContain("tabindex");
});

it("draws an arrow by A and Enter, and hides by H", async () => {
  await press("a", "a");
  await press("b", "Enter");
  expect(store.drawing.edges).toEqual([["a", "b"]]);
  await press("a", "h");
  expect(store.drawing.nodes.map((one) => one.latent)).toEqual([true, false]);
});
