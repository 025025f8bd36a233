#!/usr/bin/env node
// sluice-worker: runs a worker whose handler is the default export of a module.
import { lstatSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { Worker, type Handler, type Logger, type WorkerOptions } from './index.js'

const HELP = `sluice-worker FILE --queue NAME [option]...

Runs the default export of FILE, a function (job, { signal, progress, log }), for each job.

  --queue NAME       a queue; several are tried in this order
  --server URL       the server (SLUICE_URL, else redis://localhost:6379)
  --concurrency N    runs at once (1)
  --match KEY        only jobs that carry one of these keys; may be repeated
  --codec NAME       json or raw (json)
  --lease MS         the term of the leases
  --heartbeat MS     the longest time between heartbeats (1000)
  --grace MS         how long runs may take to end after SIGTERM (30000)
  --burst            end when the queue has no job
  --max-jobs N       end after that many jobs
  --ready-file PATH  written when the worker takes jobs, and removed when it stops
  --verbose          say more
  --help             this text

Exit codes: 0 the worker has ended, 1 it could not work or a handler did not end, 2 wrong usage.
`

class UsageError extends Error {}

const OPTIONS = {
  queue: { type: 'string', multiple: true },
  server: { type: 'string' },
  codec: { type: 'string' },
  concurrency: { type: 'string' },
  match: { type: 'string', multiple: true },
  lease: { type: 'string' },
  heartbeat: { type: 'string' },
  grace: { type: 'string' },
  burst: { type: 'boolean' },
  'max-jobs': { type: 'string' },
  'ready-file': { type: 'string' },
  verbose: { type: 'boolean' },
  help: { type: 'boolean' },
} as const

type Values = ReturnType<typeof parse>['values']

function parse(): ReturnType<typeof parseArgs<{
  options: typeof OPTIONS, allowPositionals: true,
}>> {
  try {
    return parseArgs({ options: OPTIONS, allowPositionals: true })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function numberOption(values: Values, name: keyof typeof OPTIONS): number | undefined {
  const text = values[name]
  if (text === undefined) return undefined
  if (typeof text !== 'string' || !/^\d+$/.test(text)) {
    throw new UsageError(`--${name} takes a number`)
  }
  return Number(text)
}

function codecOption({ codec }: Values): 'json' | 'raw' | undefined {
  if (codec === undefined || codec === 'json' || codec === 'raw') return codec
  throw new UsageError('--codec is json or raw')
}

function workerOptions(values: Values): WorkerOptions {
  const line = (level: string) => (message: string): void => {
    process.stderr.write(`${new Date().toISOString()} ${level} ${message}\n`)
  }
  const ignore = (): void => undefined
  const logger: Logger = {
    debug: values.verbose ? line('debug') : ignore,
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
  }
  const given = {
    url: values.server,
    codec: codecOption(values),
    concurrency: numberOption(values, 'concurrency'),
    match: values.match,
    lease: numberOption(values, 'lease'),
    heartbeat: numberOption(values, 'heartbeat'),
    grace: numberOption(values, 'grace'),
    burst: values.burst,
    maxJobs: numberOption(values, 'max-jobs'),
  }
  const known = Object.entries(given).filter(([, value]) => value !== undefined)
  return { ...Object.fromEntries(known), logger }
}

interface Module {
  default?: unknown
}

async function load(file: string): Promise<Module> {
  try {
    return await import(pathToFileURL(resolve(file)).href) as Module
  } catch (error) {
    // Node shows the file and the line of what nobody catches, and exits with 1.
    return await new Promise(() => setImmediate(() => { throw error }))
  }
}

async function handlerOf(file: string): Promise<Handler<unknown, unknown>> {
  const module = await load(file)
  // What a compiler makes of `export default` for require() is one level deeper.
  const handlers = [module.default, (module.default as Module | undefined)?.default]
  const handler = handlers.find((each) => typeof each === 'function')
  if (handler === undefined) {
    throw new UsageError(`${file} has no function as its default export`)
  }
  return handler as Handler<unknown, unknown>
}

function isFileOrNone(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? true
}

async function main(): Promise<void> {
  const { values, positionals } = parse()
  if (values.help) return void process.stdout.write(HELP)
  const [file, ...others] = positionals
  if (file === undefined || others.length > 0) throw new UsageError('one file is expected')
  if (values.queue === undefined) throw new UsageError('--queue is missing')
  const worker = new Worker(values.queue, await handlerOf(file), workerOptions(values))
  const readyFile = values['ready-file']
  if (readyFile === undefined) return await worker.run()
  if (!isFileOrNone(readyFile)) {  // such as a FIFO
    void worker.ready.then(
      () => writeFileSync(readyFile, `${worker.name}\n`), () => undefined)  // run() says why.
    return await worker.run()
  }
  const remove = (path: string): void => rmSync(path, { force: true })
  const written = `${readyFile}.${process.pid}`
  remove(readyFile)  // of a worker that was killed
  writeFileSync(written, `${worker.name}\n`)
  void worker.ready.then(() => renameSync(written, readyFile), () => undefined)  // run() says why.
  try {
    await worker.run()
  } finally {
    remove(written)
    remove(readyFile)
  }
}

// What a handler has left behind (timers, connections) does not keep the process.
main().then(() => process.exit(), (error: unknown) => {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`sluice-worker: ${message}\n`)
  process.exit(error instanceof UsageError ? 2 : 1)
})
