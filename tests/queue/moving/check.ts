// What the TypeScript scenarios share: a client of the server under test, and checks.
import { deepStrictEqual } from "node:assert";
import Redis from "ioredis";

export const url = `redis://127.0.0.1:${process.env.SLUICE_PORT}`;

export const connect = () => new Redis(url);

export const equal: (got: unknown, expected: unknown) => void = deepStrictEqual;

/** The call fails with this error of the queue; its text is returned. */
export async function refused(code: string, call: () => Promise<unknown>): Promise<string> {
  let got: unknown;
  try {
    got = await call();
  } catch (error: any) {
    equal(error.message.split(" ")[0], code);
    return error.message;
  }
  throw new Error(`${JSON.stringify(got)}, expected ${code}`);
}

/** Pops that wait at the queue. */
export async function waiters(client: Redis, queue: string): Promise<number> {
  const stats: any = await client.call("Q.STATS", queue);
  return stats[stats.indexOf("waiting_pops") + 1];
}

export async function waitUntil(condition: () => Promise<boolean>, what: string) {
  const deadline = performance.now() + 30_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`${what} did not come about`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A failure ends the process at once, open connections or not. */
export function play(scenario: () => Promise<void>) {
  scenario().then(() => {
    console.log("all of it holds");
    process.exit(0);
  }, (error) => {
    console.error(error);
    process.exit(1);
  });
}
