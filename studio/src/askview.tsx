// A question, and its answers side by side.

import { useState } from "preact/hooks";
import { Curve, Forest, number } from "./charts";
import { Progress } from "./fitview";
import { columnOf } from "./drawing";
import { BLANK, ends, firstQuestion, grid, inWords, rules, sideBySide, worse } from "./question";
import { store, useStore } from "./store";
import type { Answer, Question } from "./types";

export function AskView() {
  const { project, table, history: { now: drawing }, job } = useStore();
  const [asked, setAsked] = useState<Question>(() => firstQuestion(project?.model?.drawing ? { ...project.model.drawing, effect: drawing.effect } : drawing, table));
  if (!project?.model) {
    return (
      <section class="page">
        <h1>Ask</h1>
        <p>There is no fitted model yet.</p>
        <button class="primary" onClick={() => { store.go("fit"); }}>Fit one</button>
      </section>
    );
  }
  const fitted = project.model.drawing;
  const overTime = !!fitted.panel;
  const events = Object.entries(fitted.kinds).filter(([, kind]) => kind === "event").map(([name]) => name);
  const shown = fitted.nodes.filter((node) => !node.latent && !node.name.startsWith("missing(")).map((node) => node.name);
  const names = overTime ? [...new Set(shown.map(columnOf))] : shown;
  const change = (part: Partial<Question>) => { setAsked({ ...asked, ...part }); };
  const running = job?.state === "running";
  const kinds: [Question["kind"], string][] = overTime
    ? [["effect", "Effect"], ["risk", "Risk over time"]]
    : [["effect", "Effect"], ["curve", "Dose and response"], ["sensitivity", "If the loss is worse"], ["row", "One row"]];
  const begun = (kind: Question["kind"]): Partial<Question> => {
    if (kind === "sensitivity") return { kind, ...worse(asked.what, table, asked.on) };
    if (kind === "risk") return { kind, on: events.includes(asked.on) ? asked.on : events[0] ?? "" };
    if (kind === "curve") return { kind, ...(asked.along ? grid(table, asked.along) : {}) };
    return { kind };
  };
  return (
    <section class="page wide ask">
      <form
        class="question"
        onSubmit={(event) => {
          event.preventDefault();
          void store.ask(asked.kind === "curve" ? { ...asked, do: {} } : asked);
        }}
      >
        <h1>Ask</h1>
        {!store.fitted && <p class="flag">Answers are about the fitted graph, not about what was drawn since.</p>}
        <div class="row" role="group" aria-label="kind of question">
          {kinds.map(([kind, words]) => (
            <button type="button" key={kind} aria-pressed={asked.kind === kind} onClick={() => { change(begun(kind)); }}>{words}</button>
          ))}
        </div>
        {overTime && <p class="quiet">What is done is done at every visit: a value, or a rule such as <code>L[t] &lt; 350</code>. An outcome is that of the last visit.</p>}
        {asked.kind === "row" ? (
          <>
            <label class="field">Row of the table
              <input type="number" min="1" max={table?.rows ?? 1} value={asked.row} onInput={(e) => { change({ row: Math.max(1, Math.round(Number(e.currentTarget.value))) }); }} />
            </label>
            <p class="quiet">Without an intervention: what its holes may hide. With one: what it would have been.</p>
            <Arm title="Had it been" values={asked.do} names={names} set={(values) => { change({ do: values }); }} />
          </>
        ) : (
          <>
            <label class="field">{asked.kind === "risk" ? "Event" : "Outcome"}
              <select value={asked.on} required onChange={(e) => { change({ on: e.currentTarget.value }); }}>
                <option value="">choose…</option>
                {(asked.kind === "risk" ? events : names).map((name) => <option key={name} value={name}>{name}</option>)}
              </select>
            </label>
            {asked.kind === "risk" && !events.length && <p class="flag">No column is of the kind event: choose that kind in the table, and fit again.</p>}
            {asked.kind === "curve" ? (
              <fieldset>
                <legend>Along</legend>
                <label class="field">Column
                  <select value={asked.along} required onChange={(e) => { change({ ...grid(table, e.currentTarget.value), versus: {} }); }}>
                    <option value="">choose…</option>
                    {names.map((name) => <option key={name} value={name}>{name}</option>)}
                  </select>
                </label>
                <div class="row">
                  {(["low", "high", "step"] as const).map((part) => (
                    <label class="field short" key={part}>{part === "low" ? "from" : part === "high" ? "to" : "in steps of"}
                      <input type="number" step="any" value={asked[part]} onInput={(e) => { change({ [part]: Number(e.currentTarget.value) }); }} />
                    </label>
                  ))}
                </div>
              </fieldset>
            ) : (
              <Arm title="Do" values={asked.do} names={names} set={(values) => { change({ do: values }); }} />
            )}
            <Arm title="Versus" values={asked.versus} names={names} set={(values) => { change({ versus: values }); }} empty="as it is, without intervention" />
            {asked.kind === "sensitivity" && <Worse asked={asked} names={names} change={change} />}
            {asked.kind === "risk" && (
              <label class="field">Other events
                <select value={asked.competing} onChange={(e) => { change({ competing: e.currentTarget.value as Question["competing"] }); }}>
                  <option value="total">end a course, as they do</option>
                  <option value="removed">are removed</option>
                </select>
              </label>
            )}
            <details>
              <summary>Who, and what of it</summary>
              <label class="field">Only where
                <input placeholder="age > 60" value={asked.where} onInput={(e) => { change({ where: e.currentTarget.value }); }} />
              </label>
              {asked.kind === "effect" && (
                <label class="field">In each group of
                  <select value={asked.by} onChange={(e) => { change({ by: e.currentTarget.value }); }}>
                    <option value="">nobody in particular</option>
                    {names.map((name) => <option key={name} value={name}>{name}</option>)}
                  </select>
                </label>
              )}
              {asked.kind !== "risk" && <label class="field">Averaged over
                <select value={asked.population} onChange={(e) => { change({ population: e.currentTarget.value }); }}>
                  <option value="">what fits the graph</option>
                  <option value="rows">the rows of the table</option>
                  <option value="model">units of the model</option>
                </select>
              </label>}
              {asked.kind !== "risk" && <label class="field">Statistic
                <input value={asked.statistic} list="statistics" onInput={(e) => { change({ statistic: e.currentTarget.value }); }} />
                <datalist id="statistics"><option value="mean" /><option value="median" /><option value="trimmed" /><option value="0.9" /></datalist>
              </label>}
              {asked.kind !== "risk" && <label class="field">Level whose risk is compared
                <input value={asked.event} onInput={(e) => { change({ event: e.currentTarget.value }); }} />
              </label>}
              {asked.kind === "effect" && (
                <label class="choice">
                  <input type="checkbox" checked={asked.treated} onChange={(e) => { change({ treated: e.currentTarget.checked }); }} />
                  <span>only those who take by themselves what is done</span>
                </label>
              )}
            </details>
            <label class="choice">
              <input type="checkbox" checked={asked.interval !== null} onChange={(e) => { change({ interval: e.currentTarget.checked ? 0.95 : null }); }} />
              <span>with an interval, 95 % <span class="quiet">the first takes longest</span></span>
            </label>
          </>
        )}
        <div class="row">
          <button class="primary" type="submit" disabled={running}>Ask</button>
          <button type="button" class="link" onClick={() => { setAsked(firstQuestion(drawing, table)); }}>begin anew</button>
        </div>
        <Progress task="ask" />
      </form>
      <div class="answers" aria-live="polite">
        <Answers answers={project.answers} again={setAsked} />
      </div>
    </section>
  );
}

interface WorseProps { asked: Question; names: string[]; change: (part: Partial<Question>) => void }

/** What cannot be known of a loss: who is lost, or what the lost values would have been. */
function Worse({ asked, names, change }: WorseProps) {
  const { table } = useStore();
  return (
    <fieldset>
      <legend>If</legend>
      <label class="field whole">what is not known is
        <select value={asked.what} onChange={(e) => { change(worse(e.currentTarget.value as Question["what"], table, asked.on)); }}>
          <option value="shift">lost values are shifted by</option>
          <option value="ratio">lost values are multiplied by</option>
          <option value="strength">log-odds of a loss, a standard deviation</option>
        </select>
      </label>
      <div class="row">
        {(["low", "high", "step"] as const).map((part) => (
          <label class="field short" key={part}>{part === "low" ? "from" : part === "high" ? "to" : "in steps of"}
            <input type="number" step="any" value={asked[part]} onInput={(e) => { change({ [part]: Number(e.currentTarget.value) }); }} />
          </label>
        ))}
      </div>
      {asked.what === "strength" ? (
        <label class="field">Column that is lost
          <select value={asked.loss} onChange={(e) => { change({ loss: e.currentTarget.value }); }}>
            <option value="">the outcome</option>
            {names.filter((name) => name !== asked.on).map((name) => <option key={name} value={name}>{name}</option>)}
          </select>
        </label>
      ) : (
        <label class="field">In
          <select value={asked.arm} onChange={(e) => { change({ arm: e.currentTarget.value as Question["arm"] }); }}>
            <option value="">both arms</option>
            <option value="do">the first arm</option>
            <option value="versus">the second arm</option>
          </select>
        </label>
      )}
    </fieldset>
  );
}

interface ArmProps { title: string; values: Record<string, string>; names: string[]; set: (values: Record<string, string>) => void; empty?: string }

/** What is set to what: a level, a number, or a rule such as min(dose, 2). */
function Arm({ title, values, names, set, empty }: ArmProps) {
  const { table } = useStore();
  const left = names.filter((name) => !(name in values));
  return (
    <fieldset class="arm">
      <legend>{title}</legend>
      {!Object.keys(values).length && <p class="quiet">{empty ?? "nothing yet"}</p>}
      {Object.entries(values).map(([name, value]) => {
        const column = table?.columns.find((one) => one.name === columnOf(name));
        const levels = column?.levels ?? [];
        const frequent = rules(name, column);
        return (
          <label class="field" key={name}>
            {name}
            <input aria-label={`${title} ${name}`} required list={`levels-${name}`} value={value} onInput={(e) => { set({ ...values, [name]: e.currentTarget.value }); }} />
            <datalist id={`levels-${name}`}>{levels.map(([level]) => <option key={level} value={level} />)}</datalist>
            {frequent.length > 0 && (
              <select class="rules" aria-label={`${title} ${name}: a rule`} value="" onChange={(event) => {
                const rule = event.currentTarget.value;
                event.currentTarget.value = "";
                if (rule) set({ ...values, [name]: rule });
              }}>
                <option value="">rule…</option>
                {frequent.map(([words, rule]) => <option key={rule} value={rule}>{words}: {rule}</option>)}
              </select>
            )}
            <button type="button" class="small" aria-label={`leave out ${name}`} onClick={() => { set(Object.fromEntries(Object.entries(values).filter(([key]) => key !== name))); }}>×</button>
          </label>
        );
      })}
      <select aria-label={`${title}: add a column`} value="" onChange={(event) => {
        const name = event.currentTarget.value;
        event.currentTarget.value = "";
        if (name) set({ ...values, [name]: ends(table, name)[title === "Versus" ? 1 : 0] });
      }}>
        <option value="">set a column…</option>
        {left.map((name) => <option key={name} value={name}>{name}</option>)}
      </select>
    </fieldset>
  );
}

function Answers({ answers, again }: { answers: Answer[]; again: (question: Question) => void }) {
  if (!answers.length) return <p class="quiet">Answers stay here, side by side.</p>;
  const groups = [...sideBySide(answers)].filter(([, of]) => of.length > 1);
  return (
    <>
      {groups.map(([measure, of]) => (
        <figure key={measure}>
          <Forest
            unit={measure}
            lines={of.map((one) => ({
              label: `${String(one.number)}. ${inWords(one.question)}`,
              estimate: one.answer.estimate!,
              lower: one.answer.lower ?? null,
              upper: one.answer.upper ?? null,
            }))}
          />
        </figure>
      ))}
      {[...answers].reverse().map((one) => <Card key={one.number} one={one} again={again} />)}
    </>
  );
}

function Card({ one, again }: { one: Answer; again: (question: Question) => void }) {
  const { answer, question } = one;
  return (
    <article class="answer" data-answer={one.number}>
      <h2>{one.number}. {inWords(question)}</h2>
      {typeof answer.estimate === "number" && (
        <>
          <p class="figure">{number(answer.estimate)}</p>
          <p class="unit">{answer.measure}</p>
          {typeof answer.lower === "number" && typeof answer.upper === "number" && (
            <p class="interval">{((answer.level ?? 0.95) * 100).toFixed(0)} % interval {number(answer.lower)} to {number(answer.upper)}</p>
          )}
        </>
      )}
      {answer.told && <p class="told">{answer.told}</p>}
      {answer.curve && <CurveAnswer one={one} rows={answer.curve} />}
      {answer.points && <CurveAnswer one={one} rows={answer.points} />}
      {answer.table && <CurveAnswer one={one} rows={answer.table} />}
      {answer.cells && <RowAnswer one={one} />}
      <div class="row">
        <button class="link" onClick={() => { again({ ...BLANK, ...question }); }}>change and ask again</button>
        <button class="link" onClick={() => void store.forget(one.number)}>take off</button>
      </div>
    </article>
  );
}

const EFFECTS = { y: "estimate", low: "lower", high: "upper" };
const RISKS = { y: "risk", low: "risk_lower", high: "risk_upper" };

function CurveAnswer({ one, rows }: { one: Answer; rows: Record<string, number | null>[] }) {
  const { kind, on } = one.question;
  const columns = Object.keys(rows[0] ?? {});
  const along = kind === "curve" ? one.question.along : columns[0] ?? "";
  const named = kind === "risk" ? one.answer.time ?? along : along;
  const drawable = typeof rows[0]?.[along] === "number" && !columns.includes("level");
  const beside = columns.includes("versus") ? { y: "versus", own: "first arm", words: "second arm" } : undefined;
  return (
    <>
      {drawable && (
        <figure>
          {kind === "curve" && <Curve rows={rows} along={along} outcome={on} />}
          {kind === "sensitivity" && <Curve rows={rows} along={along} outcome={`the effect on ${on}`} of={EFFECTS} zero />}
          {kind === "risk" && <Curve rows={rows} along={along} named={named} outcome={`the risk of ${on}`} of={RISKS} {...(beside ? { beside } : {})} />}
        </figure>
      )}
      <details>
        <summary>The numbers</summary>
        <div class="scroll">
          <table>
            <thead><tr>{columns.map((name) => <th scope="col" key={name}>{name.replace("_", " ")}</th>)}</tr></thead>
            <tbody>{rows.map((row, i) => <tr key={i}>{columns.map((name) => <td key={name} class="number">{typeof row[name] === "number" ? number(row[name]) : String(row[name])}</td>)}</tr>)}</tbody>
          </table>
        </div>
      </details>
    </>
  );
}

function RowAnswer({ one }: { one: Answer }) {
  const { cells = [], draws = 0 } = one.answer;
  return (
    <div class="scroll">
      <table>
        <thead><tr><th scope="col">Column</th><th scope="col">The row shows</th><th scope="col">{Object.keys(one.question.do).length ? "It would have been" : "It may be"}</th></tr></thead>
        <tbody>
          {cells.map((cell) => (
            <tr key={cell.name}>
              <th scope="row">{cell.name}</th>
              <td>{cell.shown ?? <span class="flag">a hole</span>}</td>
              <td>
                {cell.numbers ? `${number(cell.numbers[1])} (${number(cell.numbers[0])} to ${number(cell.numbers[2])})` : (cell.shares ?? []).map(([level, share]) => share > 0.999 ? level : `${level} (${(100 * share).toFixed(0)} %)`).join(", ")}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="quiet">Medians of {draws} draws, with where nine tenths of them lie.</p>
    </div>
  );
}
