// The guided example: five short steps, a strip above the page.

import { store, useStore, type Step } from "./store";

const STEPS: [Step, string, string][] = [
  ["table", "The table", "1,629 smokers were followed from 1971 to 1982. wt82_71 is how much weight they gained; 63 people lack it. Look at what each column is taken for."],
  ["graph", "The graph", "Nine confounders drive who quits (qsmk) and how weight changes. They are a block: no arrow among them is claimed. Beside it stands what the holes leave identified. Delete an arrow and see it change; Undo brings it back."],
  ["fit", "The fit", "Choose linear for a quick answer, or auto to let the rows ask for more. Then press Fit."],
  ["ask", "The question", "Weight gain had all quit (qsmk = 1) against had nobody (qsmk = 0). Press Ask. The book's answer is 3.5 kg, 2.6 to 4.5."],
  ["report", "The report", "One page with the answer and how far to trust it. The step Code has the same as Python and as commands."],
];

export function Guide() {
  const { history: { now }, step } = useStore();
  if (now.guide === null) return null;
  const at = STEPS.findIndex(([where]) => where === step);
  if (at < 0) return null;
  const [, title, words] = STEPS[at]!;
  const next = STEPS[at + 1];
  return (
    <aside class="guide" aria-label="Guided example">
      <p><strong>{at + 1} of {STEPS.length}: {title}.</strong> {words}</p>
      <div class="row">
        {next && <button onClick={() => { store.go(next[0]); }}>Next</button>}
        <button class="link" onClick={() => { store.note({ guide: null }); }}>Close</button>
      </div>
    </aside>
  );
}
