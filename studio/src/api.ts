// Requests to the server: JSON in, JSON out; what is refused is an error with its sentence.

export class Refused extends Error {
  constructor(
    sentence: string,
    readonly status: number,
  ) {
    super(sentence);
  }
}

async function read<T>(answer: Response): Promise<T> {
  if (answer.ok) return (await answer.json()) as T;
  let sentence = `the server answered with ${String(answer.status)}`;
  try {
    sentence = ((await answer.json()) as { refused: string }).refused;
  } catch {
    // not one of ours
  }
  throw new Refused(sentence, answer.status);
}

async function reach(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, { ...init, credentials: "same-origin" });
  } catch {
    throw new Refused("the studio does not answer; is it still running in its terminal?", 0);
  }
}

export async function get<T>(path: string): Promise<T> {
  return read<T>(await reach(path, {}));
}

export async function send<T>(path: string, given: unknown, method = "POST"): Promise<T> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify(given);
  // What is on its way arrives though the tab is closed, as far as browsers grant it.
  return read<T>(await reach(path, { method, headers, body, keepalive: body.length < 60000 }));
}

export async function upload(file: File): Promise<void> {
  const path = `/api/table?name=${encodeURIComponent(file.name)}`;
  await read(await reach(path, { method: "PUT", body: file }));
}
