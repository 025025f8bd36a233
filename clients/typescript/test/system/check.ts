// What the scenarios share. Each is a program that finds its server by SLUICE_PORT, asserts, and
// prints "all of it holds" last (tests/harness/libraries.py).
import { Redis } from 'ioredis'
import { Queue, Worker, type Handler, type WorkerOptions } from '../../src/index.js'

export const url = `redis://127.0.0.1:${process.env['SLUICE_PORT']}`

/** A connection without the code that is tested. */
export function plain(): Redis {
  return new Redis(url, { maxRetriesPerRequest: null })
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Asks until the condition holds. */
export async function until(what: string, condition: () => unknown): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`${what} did not come about`)
    await pause(5)
  }
}

/** Runs it with a worker, and stops that. */
export async function withWorker<Payload, Result>(
  queues: string | string[], handler: Handler<Payload, Result>,
  options: WorkerOptions<Payload, Result>, use: (worker: Worker<Payload, Result>) => Promise<void>,
): Promise<void> {
  const worker = new Worker<Payload, Result>(
    queues, handler, { url, signals: false, logger: null, ...options })
  const running = worker.run()
  await Promise.race([worker.ready, running])
  try {
    await use(worker)
  } finally {
    await worker.stop({ grace: 0 })
  }
  await running
}

let queues = 0

/** A queue of a name that no other has. */
export function newQueue<Payload, Result>(
  options: ConstructorParameters<typeof Queue>[1] = {},
): Queue<Payload, Result> {
  return new Queue<Payload, Result>(`queue-${++queues}`, { url, ...options })
}

/** Runs the cases one after the other. */
export async function play(cases: Record<string, () => Promise<void>>): Promise<void> {
  for (const [name, run] of Object.entries(cases)) {
    const began = performance.now()
    try {
      await run()
    } catch (error) {
      console.log(`${name}: failed`, error)
      process.exit(1)
    }
    console.log(`${name}: ${((performance.now() - began) / 1000).toFixed(1)} s`)
  }
  console.log('all of it holds')
  process.exit(0)
}
