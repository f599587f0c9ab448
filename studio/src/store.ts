// What the page knows, and how it changes. Views read `store.state` and redraw when it changes.

import { useEffect, useState } from "preact/hooks";
import { get, Refused, send, upload } from "./api";
import { EMPTY, meaning } from "./drawing";
import { begin, redo, step, undo, type History } from "./history";
import { isUnplaced, layered } from "./layout";
import type { Drawing, Job, Kind, Project, Question, Report, Table } from "./types";

export type Step = "table" | "graph" | "fit" | "ask" | "report" | "code" | "project";
export const STEPS: Step[] = ["table", "graph", "fit", "ask", "report", "code", "project"];

/** Longer tables are checked on so many rows first, and then whole when it is asked for. */
const QUICK_ROWS = 5000;
const LONG_TABLE = 20000;
/** Of more nodes a quick report comes first, and the whole one when the hand has rested. */
const MANY_NODES = 20;
const REST = 1000;

export interface Check {
  report: Report | null;
  refused: string | null;
  busy: boolean;
}

export interface State {
  project: Project | null;
  table: Table | null;
  kinds: Kind[] | null;
  history: History<Drawing>;
  selected: string[];
  step: Step;
  check: Check;
  job: Job | null;
  notice: string | null;
  conflict: boolean;
  gone: boolean;
  busy: string | null;
}

class Store {
  state: State = {
    project: null,
    table: null,
    kinds: null,
    history: begin(EMPTY),
    selected: [],
    step: "table",
    check: { report: null, refused: null, busy: false },
    job: null,
    notice: null,
    conflict: false,
    gone: false,
    busy: null,
  };
  private readonly listeners = new Set<() => void>();
  private saved = EMPTY;
  private saving = false;
  private checked = "";
  private checking = false;
  private timer: number | undefined;

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  set(change: Partial<State>): void {
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener();
  }

  get drawing(): Drawing {
    return this.state.history.now;
  }

  /** Whether what is drawn is what was fitted. */
  get fitted(): boolean {
    const model = this.state.project?.model;
    return !!model && meaning(model.drawing) === meaning(this.drawing);
  }

  go(to: Step): void {
    this.set({ step: to, notice: null });
    history.replaceState(null, "", `#${to}`);
  }

  async begin(): Promise<void> {
    const asked = location.hash.slice(1) as Step;
    if (STEPS.includes(asked)) this.set({ step: asked });
    await this.load(true);
    const events = new EventSource("/api/events");
    events.onmessage = (event: MessageEvent<string>) => {
      this.hear(JSON.parse(event.data) as { what: string; revision?: number; job?: Job });
    };
    events.onopen = () => {
      if (this.state.gone) void this.load(false);
      this.set({ gone: false });
    };
    events.onerror = () => {
      this.set({ gone: true });
    };
  }

  private hear(message: { what: string; revision?: number; job?: Job | null }): void {
    if (message.what === "job") this.set({ job: message.job ?? null });
    else if (message.what === "opened") void this.load(true);
    else if (message.what === "closed") this.set({ gone: true });
    else if (message.what === "project" || message.revision !== this.state.project?.revision) {
      void this.load(false);
    }
  }

  /** Takes what the server has; a drawing that is being changed here stays. */
  async load(first: boolean): Promise<void> {
    try {
      const project = await get<Project>("/api/project");
      const before = this.state.project;
      const untouched = this.drawing === this.saved && !this.saving;
      this.set({ project, job: project.job });
      if (first || project.table?.path !== before?.table?.path) {
        this.take(project.drawing, true);
        this.set({ table: null, kinds: null });
        if (project.table) await this.loadTable();
      } else if (untouched && project.revision !== before?.revision) {
        this.take(project.drawing, false);
      }
    } catch (error) {
      this.fail(error);
    }
  }

  private take(drawing: Drawing, anew: boolean): void {
    const placed = isUnplaced(drawing) ? layered(drawing) : drawing;
    this.saved = drawing;
    this.set({
      history: anew ? begin(placed) : step(this.state.history, placed),
      selected: anew ? [] : this.state.selected,
      conflict: false,
    });
    if (placed !== drawing) void this.save();
    this.look();
  }

  async loadTable(): Promise<void> {
    this.set({ busy: "reading the table" });
    try {
      this.set({ table: await get<Table>("/api/table") });
      this.look(); // of a long table its kinds take longest
      this.set({ kinds: await send<Kind[]>("/api/kinds", { kinds: this.drawing.kinds }) });
    } catch (error) {
      this.fail(error);
    } finally {
      this.set({ busy: null });
    }
  }

  async drop(file: File): Promise<void> {
    this.set({ busy: `reading ${file.name}`, notice: null });
    try {
      await upload(file);
      await this.load(true);
    } catch (error) {
      this.fail(error);
    } finally {
      this.set({ busy: null });
    }
  }

  async example(): Promise<void> {
    this.set({ busy: "reading the example", notice: null });
    try {
      await send("/api/example", {});
      await this.load(true);
    } catch (error) {
      this.fail(error);
    } finally {
      this.set({ busy: null });
    }
  }

  /** Opens another project beside this one, or begins one there. */
  async open(name: string, anew: boolean): Promise<void> {
    try {
      this.set({ notice: null });
      await this.settled();
      await send("/api/open", { name, new: anew });
      this.go("table");
    } catch (error) {
      this.fail(error);
    }
  }

  /** Draws something else: the one way in which a drawing changes. */
  draw(next: Drawing | string): boolean {
    if (typeof next === "string") {
      this.set({ notice: next });
      return false;
    }
    this.set({ history: step(this.state.history, next), notice: null });
    this.later();
    return true;
  }

  /** Changes what is no part of the drawing proper, past undo: the preset, the guide. */
  note(part: Partial<Pick<Drawing, "preset" | "seed" | "guide">>): void {
    const { history } = this.state;
    this.set({ history: { ...history, now: { ...history.now, ...part } } });
    this.later();
  }

  undo(): void {
    this.set({ history: undo(this.state.history), notice: null });
    this.later();
  }

  redo(): void {
    this.set({ history: redo(this.state.history), notice: null });
    this.later();
  }

  private later(): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      void this.save();
      this.look();
    }, 120);
  }

  async save(): Promise<void> {
    const drawing = this.drawing;
    const project = this.state.project;
    if (!project || drawing === this.saved || this.saving || this.state.conflict) return;
    this.saving = true;
    try {
      const given = { drawing, revision: project.revision };
      const { revision } = await send<{ revision: number }>("/api/drawing", given, "PUT");
      this.saved = drawing;
      this.set({ project: { ...this.state.project!, revision, drawing } });
    } catch (error) {
      if (error instanceof Refused && error.status === 409) this.set({ conflict: true });
      else this.fail(error);
      return;
    } finally {
      this.saving = false;
    }
    if (this.drawing !== drawing) await this.save();
  }

  /** Saves before something is asked about what is drawn. */
  async settled(): Promise<void> {
    window.clearTimeout(this.timer);
    this.look(); // as the timer would have
    while (this.saving) await new Promise((done) => setTimeout(done, 20));
    await this.save();
    if (this.state.conflict) throw new Error("the drawing was changed in another tab: choose above which of the two to keep.");
  }

  async takeTheirs(): Promise<void> {
    this.saved = this.drawing;
    const project = await get<Project>("/api/project");
    this.set({ project });
    this.take(project.drawing, false);
  }

  async keepMine(): Promise<void> {
    const project = await get<Project>("/api/project");
    this.set({ project, conflict: false });
    await this.save();
  }

  /** Checks what is drawn, the newest drawing only; long tables on some rows unless all are asked. */
  look(all = false): void {
    const { table } = this.state;
    const drawing = this.drawing;
    const key = meaning(drawing) + JSON.stringify(drawing.effect) + String(table?.path);
    if (!table || (key === this.checked && !all) || this.checking) return;
    this.checked = key;
    if (!drawing.nodes.length) {
      this.set({ check: { report: null, refused: null, busy: false } });
      return;
    }
    this.checking = true;
    this.set({ check: { ...this.state.check, busy: true } });
    const rows = !all && table.rows > LONG_TABLE ? QUICK_ROWS : null;
    const many = drawing.nodes.length > MANY_NODES;
    this.check(drawing, rows, many, () => {
      if (many) window.setTimeout(() => { this.complete(key, rows); }, REST);
    });
  }

  /** Asks for the whole report on what is still drawn. */
  private complete(key: string, rows: number | null): void {
    if (this.checked !== key || this.checking) return;
    this.checking = true;
    this.check(this.drawing, rows, false, () => undefined);
  }

  private check(drawing: Drawing, rows: number | null, quick: boolean, then: () => void): void {
    send<Report>("/api/check", { drawing, rows, quick })
      .then((report) => {
        this.set({ check: { report, refused: null, busy: false } });
        then();
      })
      .catch((error: unknown) => {
        const sentence = error instanceof Error ? error.message : String(error);
        this.set({ check: { report: null, refused: sentence, busy: false } });
      })
      .finally(() => {
        this.checking = false;
        this.look();
      });
  }

  async setKind(name: string, kind: string | null): Promise<void> {
    const kinds = { ...this.drawing.kinds };
    if (kind === null) Reflect.deleteProperty(kinds, name);
    else kinds[name] = kind;
    try {
      const found = await send<Kind[]>("/api/kinds", { kinds });
      this.draw({ ...this.drawing, kinds });
      this.set({ kinds: found });
    } catch (error) {
      this.fail(error);
    }
  }

  async job(path: "fit" | "report" | "cancel"): Promise<void> {
    try {
      if (path !== "cancel") await this.settled();
      await send(`/api/${path}`, {});
    } catch (error) {
      this.fail(error);
    }
  }

  async ask(question: Question): Promise<void> {
    try {
      this.set({ notice: null });
      await this.settled();
      await send("/api/ask", { question });
    } catch (error) {
      this.fail(error);
    }
  }

  async forget(number: number): Promise<void> {
    try {
      await send("/api/forget", { number });
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error: unknown): void {
    this.set({ notice: error instanceof Error ? error.message : String(error) });
  }
}

export const store = new Store();

export function useStore(): State {
  const [state, setState] = useState(store.state);
  useEffect(() => {
    setState(store.state);
    return store.listen(() => {
      setState(store.state);
    });
  }, []);
  return state;
}
