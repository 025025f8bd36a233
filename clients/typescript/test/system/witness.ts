// Workers that say what becomes of each run (tests/harness/witness.py).
//
//     witness.js URL QUEUE [option=value]...
//
// The payload says how many `ms` a run takes, and how many runs `fail` first; one that is `deaf`
// does not stop when it is told to; `term` sends SIGTERM to this process, "before" the handler or
// "in" it. The result is the lease. The workers stop at "stop" on the standard input, or at the end
// of it.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Worker, type Logger, type WorkerJob } from '../../src/index.js'
import { pause } from './check.js'

const STEP_MS = 10

interface Task {
  ms: number
  fail?: number
  deaf?: true
  term?: 'before' | 'in'
}

function print(...words: unknown[]): void {
  writeSync(1, `${words.join(' ')}\n`)
}

function say(what: string, job: WorkerJob<Task>, ...more: unknown[]): void {
  print(what, job.id, job.lease, ...more)
}

function terminate(job: WorkerJob<Task>, when: Task['term']): void {
  if (job.payload.term === when) process.kill(process.pid, 'SIGTERM')
}

const [url = '', queue = '', ...words] = process.argv.slice(2)
const { workers: count = 1, ...options } = Object.fromEntries(words.map((word) => {
  const [name = '', value] = word.split('=')
  return [name, Number(value)]
}))
const ignore = (): void => undefined
const logger: Logger = {
  debug: ignore, info: ignore, warn: ignore, error: (text) => print('log', text) }

const workers = Array.from({ length: count }, () =>
  new Worker<Task, number>(queue, async (job, { progress, signal }) => {
    say('run', job)
    const until = performance.now() + job.payload.ms
    for (let left = job.payload.ms; left > 0; left = until - performance.now()) {
      if (signal.aborted && !job.payload.deaf) {
        say('heard', job)
        throw signal.reason
      }
      await pause(Math.min(left, STEP_MS))
      progress(left)
    }
    terminate(job, 'in')
    if (job.attempt <= (job.payload.fail ?? 0)) throw new Error(`attempt ${job.attempt}`)
    return job.lease
  }, {
    url, logger, ...options,
    onStarted: (job) => terminate(job, 'before'),
    onCompleted: (job) => say('done', job),
    onFailed: (job, error) => say('failed', job, error),
    onLost: (job) => say('lost', job),
  }))

const input = createInterface({ input: process.stdin })
input.on('line', (text) => { if (text === 'stop') input.close() })
input.on('close', () => {
  for (const worker of workers) void worker.stop()
})
print('ready')
await Promise.all(workers.map((worker) => worker.run()))
process.stdin.destroy()
print('ended')
