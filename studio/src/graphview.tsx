// The graph, drawn by hand, and what the holes leave identified beside it.

import { useEffect, useRef, useState } from "preact/hooks";
import { memo } from "preact/compat";
import { arrow, bend, type Box } from "./bows";
import { CheckView } from "./checkview";
import {
  addNode, blockOf, connect, disconnect, dissolveBlock, find, inTiers, lossOf, makeBlock, move, removeNode, setLatent,
} from "./drawing";
import { HEIGHT, layered, widthOf } from "./layout";
import { Exchange, readText } from "./exchange";
import { store, useStore } from "./store";
import type { Drawing, Edge, Node } from "./types";

interface View { x: number; y: number; zoom: number }

type Gesture =
  | { kind: "move"; names: string[]; fromX: number; fromY: number; dx: number; dy: number }
  | { kind: "arrow"; from: string; x: number; y: number }
  | { kind: "pan"; fromX: number; fromY: number; view: View };

function nodeBox(node: Node): Box {
  const width = widthOf(node.name);
  return { x: node.x - width / 2, y: node.y - HEIGHT / 2, width, height: HEIGHT };
}

function blockBox(drawing: Drawing, name: string): Box {
  const boxes = drawing.blocks[name]!.map((member) => find(drawing, member)).filter((one) => !!one).map(nodeBox);
  const left = Math.min(...boxes.map((b) => b.x)) - 14;
  const top = Math.min(...boxes.map((b) => b.y)) - 30;
  const right = Math.max(...boxes.map((b) => b.x + b.width)) + 14;
  const bottom = Math.max(...boxes.map((b) => b.y + b.height)) + 14;
  return { x: left, y: top, width: right - left, height: bottom - top };
}

function boxOf(drawing: Drawing, name: string): Box | null {
  if (drawing.blocks[name]) return blockBox(drawing, name);
  const node = find(drawing, name);
  return node ? nodeBox(node) : null;
}

/** More nodes than these are not read arrow by arrow, and none bows. */
const MOST_BOWED = 40;

/** Whether a node is this end of an arrow, or a member of the block that is. */
function inside(drawing: Drawing, name: string, end: string): boolean {
  return name === end || (drawing.blocks[end]?.includes(name) ?? false);
}

export function GraphView() {
  const { history: { now }, table } = useStore();
  return (
    <section class="draw">
      <Palette drawing={now} />
      <Canvas />
      <aside class="beside" aria-label="What the holes leave identified">
        <Selected />
        {table ? <CheckView /> : <p class="quiet">Open a table, and what its holes leave identified stands here.</p>}
      </aside>
    </section>
  );
}

function Palette({ drawing }: { drawing: Drawing }) {
  const { table } = useStore();
  const [open, setOpen] = useState(false);
  const drawn = new Set(drawing.nodes.map((node) => node.name));
  const [tiers, setTiers] = useState(false);
  const columns = (table?.columns ?? []).map((column) => column.name).filter((name) => !drawing.panel?.includes(name));
  const rest = columns.filter((name) => !drawn.has(name) && !drawing.auxiliary.includes(name));
  const add = (name: string, more: Partial<Node> = {}) => {
    if (store.draw(addNode(drawing, { name, ...more }))) store.set({ selected: [name] });
  };
  const hidden = () => {
    let i = 1;
    while (drawn.has(`u${String(i)}`)) i++;
    add(`u${String(i)}`, { latent: true });
  };
  return (
    <nav class="palette" aria-label="Columns">
      <h2>Columns</h2>
      {drawing.panel ? (
        <ul>
          {columns.map((name) => (
            <li key={name} class="visit">
              <span>{name}</span>
              {visitNodes(name, drawn).map((node) => (
                <button key={node} class="small" title={`add ${node} to the graph`} onClick={() => { add(node); }}>
                  {node === name ? "once" : node.slice(name.length)}
                </button>
              ))}
            </li>
          ))}
        </ul>
      ) : rest.length ? (
        <ul>
          {rest.map((name) => (
            <li key={name}>
              <button title={`add ${name} to the graph`} onClick={() => { add(name); }}>+ {name}</button>
            </li>
          ))}
        </ul>
      ) : (
        <p class="quiet">{table ? "All are in the graph or auxiliary." : "No table is open."}</p>
      )}
      {!drawing.panel && rest.length > 1 && rest.length <= 60 && (
        <button class="link" onClick={() => store.draw(layeredIfNew(drawing, rest))}>add all</button>
      )}
      <button onClick={hidden} title="a cause that nobody measures">+ hidden cause</button>
      {!drawing.panel && columns.length > 1 && <button onClick={() => { setTiers(true); }}>In tiers…</button>}
      <button onClick={() => { setOpen(true); }}>Import, export…</button>
      {open && <Exchange close={() => { setOpen(false); }} />}
      {tiers && <Tiers names={columns} close={() => { setTiers(false); }} />}
      {!drawing.panel && (rest.length > 0 || drawing.auxiliary.length > 0) && <Auxiliary drawing={drawing} rest={rest} />}
    </nav>
  );
}

/** The nodes that a column can still be: at every visit, or once a person. */
function visitNodes(name: string, drawn: Set<string>): string[] {
  if (drawn.has(name)) return [];
  const indexed = [`${name}[t]`, `${name}[t-1]`];
  return indexed.some((node) => drawn.has(node)) ? indexed.filter((node) => !drawn.has(node)) : [...indexed, name];
}

/** Columns that tell of what is lost and have no place in the graph. */
function Auxiliary({ drawing, rest }: { drawing: Drawing; rest: string[] }) {
  return (
    <details class="auxiliary" open={drawing.auxiliary.length > 0}>
      <summary>Auxiliary</summary>
      <p class="quiet">Columns that tell of lost values, without a place in the graph.</p>
      {[...drawing.auxiliary, ...rest].map((name) => (
        <label class="choice" key={name}>
          <input
            type="checkbox"
            checked={drawing.auxiliary.includes(name)}
            onChange={(event) => {
              const others = drawing.auxiliary.filter((one) => one !== name);
              store.draw({ ...drawing, auxiliary: event.currentTarget.checked ? [...others, name] : others });
            }}
          />
          <span>{name}</span>
        </label>
      ))}
    </details>
  );
}

/** A graph by order alone: every column of a tier causes all of later tiers, and a tier is a block. */
function Tiers({ names, close }: { names: string[]; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [tiers, setTiers] = useState<Record<string, number>>({});
  const [said, setSaid] = useState<string | null>(null);
  useEffect(() => { dialog.current?.showModal(); }, []);
  const text = inTiers(tiers);
  return (
    <dialog ref={dialog} onClose={close} class="exchange" aria-label="Tiers">
      <h2>In tiers</h2>
      <p class="quiet">
        Give each column the number of its tier, the earliest first. Each tier causes all later ones; within a tier no arrow is
        claimed. What has no number stays out.
      </p>
      <div class="tiers">
        {names.map((name) => (
          <label class="field" key={name}>{name}
            <input
              type="number" min="1" max="99" step="1" value={tiers[name] || ""}
              onInput={(event) => { setTiers({ ...tiers, [name]: Math.max(0, Math.round(Number(event.currentTarget.value))) }); }}
            />
          </label>
        ))}
      </div>
      {said && <p role="alert" class="flag">{said}</p>}
      <div class="row">
        <button
          class="primary"
          disabled={text === null}
          onClick={() => {
            readText(text ?? "").then(() => dialog.current?.close()).catch((error: unknown) => {
              setSaid(error instanceof Error ? error.message : String(error));
            });
          }}
        >
          Draw these tiers
        </button>
        {text === null && <span class="quiet">Two tiers or more.</span>}
        <span class="gap" />
        <button onClick={() => dialog.current?.close()}>Close</button>
      </div>
    </dialog>
  );
}

function layeredIfNew(drawing: Drawing, names: string[]): Drawing {
  const next = names.reduce((so, name) => addNode(so, { name }), drawing);
  return drawing.nodes.length ? next : layered(next);
}

function Selected() {
  const { selected, history: { now: drawing } } = useStore();
  const [block, setBlock] = useState("");
  if (selected.length > 1) {
    return (
      <form
        class="selected"
        onSubmit={(event) => {
          event.preventDefault();
          const name = block.trim() || "w";
          if (store.draw(makeBlock(drawing, name, selected))) store.set({ selected: [name] });
          setBlock("");
        }}
      >
        <h2>{selected.length} nodes</h2>
        <p class="quiet">A block: no arrow among its members is claimed.</p>
        <input aria-label="name of the block" placeholder="w" value={block} onInput={(e) => { setBlock(e.currentTarget.value); }} />
        <button type="submit">Make a block</button>
      </form>
    );
  }
  const name = selected[0];
  if (name === undefined) return null;
  const edge = name.startsWith("→") ? (JSON.parse(name.slice(1)) as Edge) : null;
  if (edge) {
    return (
      <div class="selected">
        <h2>{edge[0]} → {edge[1]}</h2>
        <div class="row">
          <button onClick={() => { removeSelected(); }}>Delete the arrow</button>
          <button
            onClick={() => {
              const turned = connect(disconnect(drawing, ...edge), edge[1], edge[0]);
              if (store.draw(turned)) store.set({ selected: [edgeKey([edge[1], edge[0]])] });
            }}
          >
            Turn it round
          </button>
        </div>
      </div>
    );
  }
  if (drawing.blocks[name]) {
    return (
      <div class="selected">
        <h2>Block {name}</h2>
        <p class="quiet">{drawing.blocks[name].join(", ")}: no arrow among them is claimed.</p>
        <Ends name={name} drawing={drawing} />
        <button onClick={() => { store.draw(dissolveBlock(drawing, name)); store.set({ selected: [] }); }}>Dissolve the block</button>
      </div>
    );
  }
  const node = find(drawing, name);
  if (!node) return null;
  const role = drawing.effect?.[0] === name ? "treatment" : drawing.effect?.[1] === name ? "outcome" : "";
  const loss = lossOf(name);
  return (
    <div class="selected">
      <h2>{name}</h2>
      {loss !== undefined && <p class="quiet">Stands for the loss of {loss}: draw arrows into it from what drives it.</p>}
      <Ends name={name} drawing={drawing} />
      <div class="row">
        {loss === undefined && !node.latent && (
          <>
            <button aria-pressed={role === "treatment"} onClick={() => { setRole(drawing, name, 0); }}>Treatment</button>
            <button aria-pressed={role === "outcome"} onClick={() => { setRole(drawing, name, 1); }}>Outcome</button>
          </>
        )}
        {loss === undefined && (
          <button aria-pressed={node.latent} onClick={() => store.draw(setLatent(drawing, name, !node.latent, null))}>Hidden</button>
        )}
        {loss === undefined && !node.latent && !find(drawing, `missing(${name})`) && (
          <button
            title="a node for the loss of its values, to say what drives it"
            onClick={() => store.draw(addNode(drawing, { name: `missing(${name})`, x: node.x + 150, y: node.y + 60 }))}
          >
            Its loss
          </button>
        )}
        <button onClick={() => { removeSelected(); }}>Delete</button>
      </div>
    </div>
  );
}

/** The arrows of a node in words, with a way to draw one without a mouse. */
function Ends({ name, drawing }: { name: string; drawing: Drawing }) {
  const causes = drawing.edges.filter(([, effect]) => effect === name).map(([cause]) => cause);
  const effects = drawing.edges.filter(([cause]) => cause === name).map(([, effect]) => effect);
  const others = [...Object.keys(drawing.blocks), ...drawing.nodes.map((node) => node.name)].filter(
    (other) => other !== name && !effects.includes(other) && !(drawing.blocks[name] ?? []).includes(other),
  );
  const chip = (edge: Edge, other: string) => (
    <li key={other}>
      {other}{" "}
      <button class="small" aria-label={`delete the arrow ${edge[0]} to ${edge[1]}`} onClick={() => store.draw(disconnect(drawing, ...edge))}>×</button>
    </li>
  );
  return (
    <>
      {causes.length > 0 && <p class="chips"><span class="quiet">causes</span></p>}
      {causes.length > 0 && <ul class="chips">{causes.map((other) => chip([other, name], other))}</ul>}
      {effects.length > 0 && <p class="chips"><span class="quiet">effects</span></p>}
      {effects.length > 0 && <ul class="chips">{effects.map((other) => chip([name, other], other))}</ul>}
      {others.length > 0 && lossOf(name) === undefined && (
        <select
          aria-label={`draw an arrow from ${name} to`}
          value=""
          onChange={(event) => {
            const to = event.currentTarget.value;
            event.currentTarget.value = "";
            if (to) store.draw(connect(drawing, name, to));
          }}
        >
          <option value="">draw an arrow to…</option>
          {others.map((other) => <option key={other} value={other}>{other}</option>)}
        </select>
      )}
    </>
  );
}

function setRole(drawing: Drawing, name: string, at: 0 | 1): void {
  const pair: Edge = drawing.effect ? [...drawing.effect] : ["", ""];
  if (pair[at] === name) {
    store.draw({ ...drawing, effect: null });
    return;
  }
  if (pair[1 - at] === name) pair[1 - at] = "";
  pair[at] = name;
  if (!pair[1 - at]) {
    const other = drawing.nodes.find((node) => node.name !== name && !node.latent && (at === 0
      ? drawing.edges.some(([a, b]) => a === name && b === node.name)
      : drawing.edges.some(([a, b]) => a === node.name && b === name)));
    if (!other) {
      store.set({ notice: `draw the ${at === 0 ? "outcome" : "treatment"} first: an arrow between the two.` });
      return;
    }
    pair[1 - at] = other.name;
  }
  store.draw({ ...drawing, effect: pair });
}

function edgeKey(edge: Edge): string {
  return `→${JSON.stringify(edge)}`;
}

function removeSelected(): void {
  let drawing = store.drawing;
  for (const name of store.state.selected) {
    if (name.startsWith("→")) drawing = disconnect(drawing, ...(JSON.parse(name.slice(1)) as Edge));
    else if (drawing.blocks[name]) drawing = dissolveBlock(drawing, name);
    else drawing = removeNode(drawing, name);
  }
  store.draw(drawing);
  store.set({ selected: [] });
}

function fitted(drawing: Drawing, width: number, height: number): View {
  const boxes = [...drawing.nodes.map(nodeBox), ...Object.keys(drawing.blocks).map((name) => blockBox(drawing, name))];
  if (!boxes.length) return { x: 0, y: 0, zoom: 1 };
  const left = Math.min(...boxes.map((b) => b.x)) - 30;
  const top = Math.min(...boxes.map((b) => b.y)) - 30;
  const right = Math.max(...boxes.map((b) => b.x + b.width)) + 30;
  const bottom = Math.max(...boxes.map((b) => b.y + b.height)) + 30;
  const zoom = Math.min(1.15, width / (right - left), height / (bottom - top));
  return { zoom, x: (width - (right - left) * zoom) / 2 - left * zoom, y: (height - (bottom - top) * zoom) / 2 - top * zoom };
}

const STATUS: Record<string, string> = { covered: "fine" };

interface NodeProps {
  name: string;
  x: number;
  y: number;
  latent: boolean;
  classes: number | null;
  loss: boolean;
  selected: boolean;
  status: string;
  role: string;
}

const NodeShape = memo(function NodeShape({ name, x, y, latent, classes, loss, selected, status, role }: NodeProps) {
  const width = widthOf(name);
  const words = [name, latent ? "hidden" : "", role, status === "careful" ? "not covered" : status === "fine" ? "covered" : ""];
  return (
    <g
      class={`node ${status} ${role} ${latent ? "latent" : ""} ${selected ? "selected" : ""}`}
      data-node={name}
      transform={`translate(${String(x)} ${String(y)})`}
      tabindex={0}
      role="button"
      aria-label={words.filter(Boolean).join(", ")}
      aria-pressed={selected}
    >
      <rect x={-width / 2} y={-HEIGHT / 2} width={width} height={HEIGHT} rx={loss ? 3 : 18} />
      <text dy="0.34em" text-anchor="middle">{name}</text>
      {role && <text class="role" y={HEIGHT / 2 + 17} text-anchor="middle">{role}</text>}
      {classes !== null && <text class="role" x={width / 2 - 4} y={-HEIGHT / 2 - 5} text-anchor="end">{classes} classes</text>}
      {status === "careful" && <text class="mark" x={width / 2 - 10} y={-HEIGHT / 2 + 3}>!</text>}
      {!loss && <circle class="handle" data-handle={name} cx="0" cy={HEIGHT / 2} r="7"><title>draw an arrow from {name}</title></circle>}
    </g>
  );
});

interface EdgeProps { from: string; to: string; path: string; selected: boolean; asked: boolean }

const EdgeShape = memo(function EdgeShape({ from, to, path, selected, asked }: EdgeProps) {
  return (
    <g class={`edge ${selected ? "selected" : ""} ${asked ? "asked" : ""}`} data-from={from} data-to={to}>
      <path class="reach" d={path}><title>{from} → {to}</title></path>
      <path class="line" d={path} marker-end={selected ? "url(#tip-selected)" : asked ? "url(#tip-asked)" : "url(#tip)"} />
    </g>
  );
});

function Canvas() {
  const { history: { now: stored, past, future }, selected, check, notice, table } = useStore();
  const ground = useRef<SVGSVGElement>(null);
  const [view, setView] = useState<View>({ x: 0, y: 0, zoom: 1 });
  const [gesture, setGesture] = useState<Gesture | null>(null);
  const [arrowFrom, setArrowFrom] = useState<string | null>(null);
  const live = useRef<Gesture | null>(null);
  live.current = gesture;

  const size = () => {
    const box = ground.current?.getBoundingClientRect();
    return { width: box?.width ?? 800, height: box?.height ?? 600, left: box?.left ?? 0, top: box?.top ?? 0 };
  };
  const show = (drawing: Drawing) => {
    const { width, height } = size();
    setView(fitted(drawing, width, height));
  };
  useEffect(() => { show(stored); }, [stored.nodes.length === 0, table?.path]);

  const drawing = gesture?.kind === "move" ? move(stored, gesture.names, gesture.dx, gesture.dy) : stored;
  const at = (event: PointerEvent | MouseEvent) => {
    const { left, top } = size();
    return { x: (event.clientX - left - view.x) / view.zoom, y: (event.clientY - top - view.y) / view.zoom };
  };
  const statuses = new Map<string, string>();
  for (const family of check.report?.nodes ?? []) statuses.set(family.node, STATUS[family.status] ?? "careful");

  const under = (x: number, y: number): string | null => {
    const node = [...drawing.nodes].reverse().find((one) => {
      const box = nodeBox(one);
      return x >= box.x - 6 && x <= box.x + box.width + 6 && y >= box.y - 6 && y <= box.y + box.height + 10;
    });
    if (node) return node.name;
    const block = Object.keys(drawing.blocks).find((name) => {
      const box = blockBox(drawing, name);
      return x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height;
    });
    return block ?? null;
  };

  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const target = event.target as Element;
    const where = at(event);
    ground.current?.setPointerCapture(event.pointerId);
    const handle = target.closest("[data-handle]")?.getAttribute("data-handle");
    const name = target.closest("[data-node]")?.getAttribute("data-node") ?? target.closest("[data-block]")?.getAttribute("data-block");
    const edge = target.closest("[data-from]");
    if (handle) setGesture({ kind: "arrow", from: handle, ...where });
    else if (name) {
      if (arrowFrom !== null) {
        store.draw(connect(stored, arrowFrom, name));
        setArrowFrom(null);
        return;
      }
      const more = event.shiftKey || event.ctrlKey || event.metaKey;
      const block = stored.blocks[name];
      const chosen = more
        ? selected.includes(name) ? selected.filter((one) => one !== name) : [...selected.filter((one) => find(stored, one)), name]
        : selected.includes(name) ? selected : [name];
      store.set({ selected: chosen, notice: null });
      const names = block ?? (chosen.length > 1 ? chosen : [name]);
      setGesture({ kind: "move", names, fromX: where.x, fromY: where.y, dx: 0, dy: 0 });
    } else if (edge) {
      store.set({ selected: [edgeKey([edge.getAttribute("data-from")!, edge.getAttribute("data-to")!])], notice: null });
      ground.current?.focus();
    } else {
      setArrowFrom(null);
      store.set({ selected: [], notice: null });
      setGesture({ kind: "pan", fromX: event.clientX, fromY: event.clientY, view });
    }
  };
  const moved = (event: PointerEvent) => {
    const held = live.current;
    if (!held) return;
    const where = at(event);
    if (held.kind === "move") setGesture({ ...held, dx: where.x - held.fromX, dy: where.y - held.fromY });
    else if (held.kind === "arrow") setGesture({ ...held, ...where });
    else setView({ ...held.view, x: held.view.x + event.clientX - held.fromX, y: held.view.y + event.clientY - held.fromY });
  };
  const up = (event: PointerEvent) => {
    const held = live.current;
    setGesture(null);
    if (held?.kind === "move" && Math.hypot(held.dx, held.dy) > 2) store.draw(move(stored, held.names, held.dx, held.dy));
    if (held?.kind === "arrow") {
      const where = at(event);
      const to = under(where.x, where.y);
      if (to !== null && to !== held.from) {
        if (store.draw(connect(stored, held.from, to))) store.set({ selected: [] });
      }
    }
  };
  const zoomBy = (factor: number, x?: number, y?: number) => {
    const { width, height } = size();
    const [cx, cy] = [x ?? width / 2, y ?? height / 2];
    setView((old) => {
      const zoom = Math.max(0.15, Math.min(2.5, old.zoom * factor));
      const by = zoom / old.zoom;
      return { zoom, x: cx - (cx - old.x) * by, y: cy - (cy - old.y) * by };
    });
  };
  const key = (event: KeyboardEvent) => {
    const name = (event.target as Element).getAttribute("data-node") ?? selected[0];
    const steps: Record<string, [number, number]> = { ArrowLeft: [-10, 0], ArrowRight: [10, 0], ArrowUp: [0, -10], ArrowDown: [0, 10] };
    const by = steps[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      setArrowFrom(null);
      store.set({ selected: [] });
    } else if ((event.key === "Delete" || event.key === "Backspace") && selected.length) removeSelected();
    else if (name === undefined) return;
    else if (event.key === "Enter" || event.key === " ") {
      if (arrowFrom !== null) {
        store.draw(connect(stored, arrowFrom, name));
        setArrowFrom(null);
      } else store.set({ selected: [name] });
    } else if (event.key.toLowerCase() === "a" && (find(stored, name) || stored.blocks[name])) setArrowFrom(name);
    else if (event.key.toLowerCase() === "h" && find(stored, name)) store.draw(setLatent(stored, name, !find(stored, name)!.latent, null));
    else if (by) store.draw(move(stored, stored.blocks[name] ?? [name], ...by));
    else return;
    event.preventDefault();
  };
  const keys = useRef(key);
  keys.current = key;
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      const target = event.target as Element;
      if (target === document.body || target.closest(".ground")) keys.current(event);
    };
    document.addEventListener("keydown", hear);
    return () => { document.removeEventListener("keydown", hear); };
  }, []);
  const wheel = (event: WheelEvent) => {
    event.preventDefault();
    const { left, top } = size();
    zoomBy(Math.exp(-event.deltaY / 500), event.clientX - left, event.clientY - top);
  };
  useEffect(() => {
    const area = ground.current;
    area?.addEventListener("wheel", wheel, { passive: false });
    return () => area?.removeEventListener("wheel", wheel);
  }, []);

  const from = gesture?.kind === "arrow" ? boxOf(drawing, gesture.from) : null;
  const boxes = drawing.nodes.length <= MOST_BOWED ? drawing.nodes.map((node): [string, Box] => [node.name, nodeBox(node)]) : [];
  return (
    <div class="canvas">
      <div class="tools" role="toolbar" aria-label="Drawing">
        <button disabled={!past.length} onClick={() => { store.undo(); }} title="Ctrl+Z">Undo</button>
        <button disabled={!future.length} onClick={() => { store.redo(); }} title="Ctrl+Shift+Z">Redo</button>
        <button
          disabled={drawing.nodes.length < 2}
          onClick={() => {
            const next = layered(stored);
            store.draw(next);
            show(next);
          }}
        >
          Arrange
        </button>
        <span class="gap" />
        <button aria-label="zoom out" onClick={() => { zoomBy(1 / 1.25); }}>−</button>
        <button aria-label="zoom in" onClick={() => { zoomBy(1.25); }}>+</button>
        <button onClick={() => { show(stored); }}>Fit in</button>
      </div>
      <svg
        ref={ground}
        class={`ground ${gesture?.kind ?? ""}`}
        tabindex={0}
        role="application"
        aria-label="The graph. Tab goes from node to node; Enter selects, A begins an arrow and Enter on another node ends it, arrow keys move, Delete deletes."
        onPointerDown={down}
        onPointerMove={moved}
        onPointerUp={up}
        onPointerCancel={() => { setGesture(null); }}
      >
        <defs>
          {["tip", "tip-selected", "tip-asked"].map((id) => (
            <marker key={id} id={id} viewBox="0 0 10 10" refX="9" refY="5" markerWidth="12" markerHeight="12" markerUnits="userSpaceOnUse" orient="auto-start-reverse">
              <path d="M0 1 L10 5 L0 9 z" />
            </marker>
          ))}
        </defs>
        <g transform={`translate(${String(view.x)} ${String(view.y)}) scale(${String(view.zoom)})`}>
          {Object.keys(drawing.blocks).map((name) => {
            const box = blockBox(drawing, name);
            return (
              <g key={name} class={`block ${selected.includes(name) ? "selected" : ""}`} data-block={name} tabindex={0} data-node={name} role="button" aria-label={`block ${name}`}>
                <rect {...box} rx="12" />
                <text x={box.x + 14} y={box.y + 20}>{name}</text>
                <circle class="handle" data-handle={name} cx={box.x + box.width / 2} cy={box.y + box.height} r="7" />
              </g>
            );
          })}
          {drawing.edges.map(([cause, effect]) => {
            const [one, two] = [boxOf(drawing, cause), boxOf(drawing, effect)];
            if (!one || !two) return null;
            const by = bend(one, two, boxes.filter(([name]) => !inside(drawing, name, cause) && !inside(drawing, name, effect)).map(([, box]) => box));
            const path = arrow(one, two, by);
            const asked = drawing.effect?.[0] === cause && drawing.effect[1] === effect;
            return (
              <EdgeShape key={`${cause}\n${effect}`} from={cause} to={effect} path={path}
                selected={selected.includes(edgeKey([cause, effect]))} asked={asked} />
            );
          })}
          {from && gesture?.kind === "arrow" && (
            <line class="growing" x1={from.x + from.width / 2} y1={from.y + from.height} x2={gesture.x} y2={gesture.y} marker-end="url(#tip-selected)" />
          )}
          {drawing.nodes.map((node) => (
            <NodeShape
              key={node.name}
              name={node.name}
              x={node.x}
              y={node.y}
              latent={node.latent}
              classes={node.classes}
              loss={lossOf(node.name) !== undefined}
              selected={selected.includes(node.name)}
              status={statuses.get(node.name) ?? (check.report && !node.latent ? "open" : "")}
              role={drawing.effect?.[0] === node.name ? "treatment" : drawing.effect?.[1] === node.name ? "outcome" : ""}
            />
          ))}
        </g>
      </svg>
      {!drawing.nodes.length && (
        <p class="hint">
          Add columns from the left. Then draw an arrow from each cause to its effect: pull at the small circle below a
          node, or select it and press A.
        </p>
      )}
      {arrowFrom !== null && <p class="hint low" role="status">Arrow from {arrowFrom}: choose its effect and press Enter, or Escape.</p>}
      {notice && <p class="hint low careful" role="alert">{notice}</p>}
      <p class="visually-hidden" role="status">{blockOf(drawing, selected[0] ?? "") ?? ""}</p>
    </div>
  );
}
